"""The oracle's plain descriptions as the library's objects, and the library's witnesses as plain data sets."""

from collections import Counter
from fractions import Fraction

from oracles.census import Data, Record, Small, Strata, Table
from oracles.promises import Law, Promise
from stirred.spec import (
    Approximate,
    Budget,
    BudgetFunction,
    Domain,
    Hamming,
    InputPremetric,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    Neighbours,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    SizeLaw,
    Specification,
    SymmetricDifference,
    Variable,
)
from stirred.spec.verdict import DataSet

UNIT = "household"
REALISED = 500  # b of the universe where a budget function was taken: more records than are enumerated


def domain_of(small: Small, spine: tuple[str, ...] = ()) -> Domain:
    levels = [tuple(sorted({record[i] for record in small.records})) for i in range(len(small.names))]
    variables = tuple(Variable(name=n, levels=v) for n, v in zip(small.names, levels, strict=True))
    return Domain(name="small", record_types=(RecordType(name=UNIT, variables=variables),), spine=spine)


def margin_of(table: Table) -> Margin:
    return Margin(UNIT, table.by, dict(table.where) or None)


def budget_of(text: str) -> Budget:
    if text.startswith("sqrt("):
        return Budget.sqrt(text[5:-1])
    return Budget.log(Fraction(text[3:-1])) if text.startswith("ln(") else Budget.of(text)


def input_of(distance: str) -> InputPremetric:
    inner = Hamming(UNIT) if distance.startswith("ham") else SymmetricDifference(UNIT)
    return Neighbours(inner) if distance.endswith("neighbours") else inner


def output_of(promise: Promise) -> OutputPremetric:
    if promise.output == "approximate":
        return Approximate(Fraction(*promise.delta))
    return Multiplicative() if promise.output == "pure" else NormalizedRenyi()


def statistic_of(strata: Strata) -> LargestStratum:
    return LargestStratum(UNIT, strata.match, strata.hold, strata.swap)


def law_of(law: Law) -> SizeLaw:
    return SizeLaw(law.kind, Fraction(*law.rate))


def specification(promise: Promise, domain: Domain) -> Specification:
    varies = None
    if isinstance(promise.budget, Law):
        law = law_of(promise.budget)
        statistic = None if promise.strata is None else statistic_of(promise.strata)
        varies = BudgetFunction(law=law, statistic=statistic, b=REALISED, realised="where it was taken")
        budget = law.at(REALISED)
    else:
        budget = budget_of(promise.budget)
    return Specification(
        domain=domain,
        multiverse=Multiverse.of(*map(margin_of, promise.tables)),
        input_premetric=input_of(promise.distance),
        output_premetric=output_of(promise),
        budget=budget,
        varies=varies,
    )


def data_of(found: DataSet, small: Small, copies: int = 1) -> Data:
    """A witness as a multiset of whole records; a variable that it leaves out is equal in all records."""
    data: Counter[Record] = Counter()
    for kind, values, number in found.rows:
        assert kind == UNIT
        at = dict(values)
        record = tuple(at.get(name, small.records[0][i]) for i, name in enumerate(small.names))
        data[record] += number * copies
    return data
