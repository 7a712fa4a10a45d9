"""Forgers: for each rule of the checker a maker of derivations that prove nothing.

Wrong is decided here, by construction or by a rank over the rationals, and never by the checker:

- a *false yes*: the two promises have one flavor and the first budget is larger, and the variable z, which no invariant
  reads, lets one record change alone; so the first allows more at some pair. Or the units differ by a known example.
- a *false no*: the first budget is not larger and its invariants are among the second's, so that no pair refutes.
- a *false table*: the wanted table is not in the row space of the given ones.
- a *wrong step* of a true claim: a number, a table or a premise of a real derivation is changed so that it proves no more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

from oracles.census import Table
from oracles.rank import determines
from stirred.spec import (
    Approximate,
    AtLeast,
    Budget,
    BudgetFunction,
    Constraint,
    Custom,
    Dependency,
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
    Part,
    RecordType,
    SizeLaw,
    Specification,
    SymmetricDifference,
    Variable,
    Verdict,
)
from stirred.spec.verdict import DataSet, Derivation, Witness

UNIT = "household"
BITS = ("0", "1")


@dataclass(frozen=True)
class Implication:
    """A verdict on two specifications whose derivation proves nothing."""

    first: Specification
    second: Specification
    verdict: Verdict


@dataclass(frozen=True)
class Refinement:
    """A verdict on two multiverses whose derivation proves nothing."""

    finer: Multiverse
    coarser: Multiverse
    domain: Domain
    verdict: Verdict


Forgery = Implication | Refinement
Forger = Callable[[Random], Forgery]
FORGERS: dict[str, list[Forger]] = {}


def forges(rule: str) -> Callable[[Forger], Forger]:
    def kept(forger: Forger) -> Forger:
        FORGERS.setdefault(rule, []).append(forger)
        return forger

    return kept


def forgeries(rule: str, number: int, seed: int = 1) -> Iterator[tuple[str, Forgery]]:
    """So many forgeries of one rule, its forgers in turn."""
    rng = Random(f"{rule} {seed}")
    for place in range(number):
        forger = FORGERS[rule][place % len(FORGERS[rule])]
        yield forger.__name__, forger(rng)


# --- plain material


def variables(*names: str) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, levels=BITS) for name in names)


def domain(*names: str, **more: Any) -> Domain:
    return Domain(name="toy", record_types=(RecordType(name=UNIT, variables=variables(*names)),), **more)


FREE, PLAIN = domain("a", "b", "z"), domain("a", "b")  # with z one record can change alone
LINKED = Domain(
    name="linked",
    record_types=(
        RecordType(name=UNIT, variables=variables("a")),
        RecordType(name="person", variables=variables("sex")),
    ),
    largest_household=5,
)
PEOPLED = replace(
    PLAIN, record_types=(*PLAIN.record_types, RecordType(name="person", variables=variables("sex")))
)
UNLISTED = Domain(name="toy", record_types=(RecordType(name=UNIT),))
A, B, AB, TOTAL = (Margin(UNIT, tuple(by)) for by in ("a", "b", "ab", ""))
HAM, SYM = Hamming(UNIT), SymmetricDifference(UNIT)


def step(rule: str, *premises: Derivation, witness: Witness | None = None, **facts: Any) -> Derivation:
    return Derivation(rule=rule, claim="forged", premises=premises, witness=witness, facts=facts)


def spec(
    budget: Budget | Fraction | int,
    *kept: Any,
    output: OutputPremetric | None = None,
    unit: InputPremetric = HAM,
    on: Domain = FREE,
    **more: Any,
) -> Specification:
    return Specification(
        domain=on,
        multiverse=Multiverse.of(*kept),
        input_premetric=unit,
        output_premetric=output or Multiplicative(),
        budget=budget if isinstance(budget, Budget) else Budget.of(budget),
        **more,
    )


def amount(rng: Random, most: int = 4) -> Fraction:
    return Fraction(rng.randint(1, 12 * most), 12)


def more_than(rng: Random, budget: Fraction) -> Fraction:
    """A larger budget: sometimes by very little."""
    return budget + rng.choice([Fraction(1, 10**12), Fraction(1, 10**35), Fraction(1, 7), amount(rng)])


def premetric(rng: Random) -> OutputPremetric:
    return rng.choice([Multiplicative(), NormalizedRenyi(), Approximate(Fraction(1, rng.randint(50, 10**6)))])


def linear(rng: Random) -> OutputPremetric:
    return rng.choice([Multiplicative(), NormalizedRenyi()])


def junk(rng: Random) -> dict[str, Any]:
    """Facts that a hostile derivation may bring."""
    values = [1, 2, 0, -1, 100, Fraction(1, 1000), "1", "2.5", None, True, (), (A,), AB, 10**40]
    names = ["first", "second", "factor", "least", "fixed", "wanted", "given", "copies", "part", "axes"]
    return {name: rng.choice(values) for name in rng.sample(names, rng.randint(0, 4))}


def kept_tables(rng: Random) -> tuple[Margin, ...]:
    return tuple(rng.sample([A, B, AB, TOTAL], rng.randint(0, 2)))


def nested(*tables: Any) -> Derivation:
    return step("all of", *(step("kept", wanted=table) for table in tables))


def yes(*premises: Derivation) -> Verdict:
    return Verdict.yes("forged", step("implication", *premises))


def larger(rng: Random, **more: Any) -> tuple[Specification, Specification, tuple[Margin, ...]]:
    """Two promises of one flavor, the first with the larger budget: the first does not imply the second."""
    kept, output, small = kept_tables(rng), more.pop("output", None) or linear(rng), amount(rng)
    second = spec(small, *kept, output=output, **more)
    return replace(second, budget=Budget.of(more_than(rng, small))), second, kept


def data(*records: str, names: str = "abz", times: int = 1) -> DataSet:
    return DataSet.of(UNIT, [(dict(zip(names, record, strict=True)), times) for record in records])


def swap(
    rate: str, b: int | None = 500, kind: str = "theorem-1", on: Domain = PLAIN, **more: Any
) -> Specification:
    law = SizeLaw(kind, rate)  # type: ignore[arg-type]
    statistic = more.pop("statistic", LargestStratum(UNIT, (), ("a",), ("b",)))
    varies = BudgetFunction(
        law=law, statistic=statistic, b=b, realised=more.pop("realised", f"{rate} at {b}")
    )
    budget = more.pop("budget", law.at(2 if b is None else b))
    return spec(budget, *more.pop("kept", (A, B)), on=on, varies=varies, **more)


def bounded(rng: Random, least: Fraction, most: Budget) -> BudgetFunction:
    del rng
    return BudgetFunction(words="it differs", least=Budget.of(least), most=most)


@dataclass(frozen=True, slots=True)
class Elsewhere(InputPremetric):
    """Somebody else's distance: 0 between data sets with equal tables by a and b, infinite between all others."""

    whole = True

    @property
    def unit(self) -> str:
        return UNIT


@dataclass(frozen=True, slots=True)
class Turnover(InputPremetric):
    """Somebody else's distance that takes any value, however small."""

    @property
    def unit(self) -> str:
        return UNIT


@dataclass(frozen=True, slots=True)
class Halved(Hamming):
    """Somebody else's distance that is built on a known one and is another."""


@dataclass(frozen=True, slots=True)
class Bounded(NormalizedRenyi):
    """Somebody else's measure, built on a known one, which no Gaussian keeps."""


@dataclass(frozen=True, slots=True)
class Lenient(Multiplicative):
    """Somebody else's measure, built on a known one, which allows more."""


class Unknown(OutputPremetric):
    """Somebody else's measure, of which nothing is said."""

    __slots__ = ()


class Stern(Approximate):
    """Somebody else's measure, built on a known one, whose δ does not grow."""

    __slots__ = ()


NOTHING_KNOWN = Unknown()


# --- a yes at once


@forges("nothing promised")
def promises_something(rng: Random) -> Forgery:
    first, second, _ = larger(rng)
    return Implication(first, second, Verdict.yes("forged", step("nothing promised", **junk(rng))))


@forges("nothing promised")
def promises_something_elsewhere(rng: Random) -> Forgery:
    """Infinite where it was taken, and finite in other universes."""
    second = swap("1/20", budget=Budget.infinite())
    first = spec(amount(rng) + 50, A, B, on=PLAIN)
    return Implication(first, second, Verdict.yes("forged", step("nothing promised", **junk(rng))))


@forges("same")
def not_the_same(rng: Random) -> Forgery:
    first, second, _ = larger(rng)
    return Implication(first, second, Verdict.yes("forged", step("same", **junk(rng))))


@forges("same")
def the_same_words(rng: Random) -> Forgery:
    """Two budgets that differ by universe, both known by the same words only, may be different functions."""
    kept, small = kept_tables(rng), amount(rng)
    pair = [spec(small, *kept, varies=bounded(rng, Fraction(0), Budget.infinite())) for _ in range(2)]
    return Implication(pair[0], pair[1], Verdict.yes("forged", step("same")))


@forges("same")
def the_same_law_taken_elsewhere(rng: Random) -> Forgery:
    """The same law, and nothing says that the sharper budgets were taken at one universe."""
    value, rate = amount(rng, 1), f"1/{rng.randint(2, 40)}"
    first = swap(rate, rng.choice([None, 9]), realised="", budget=value)
    return Implication(first, replace(first), Verdict.yes("forged", step("same")))


@forges("singletons")
def several_data_sets(rng: Random) -> Forgery:
    """z is free in every universe."""
    first, second, kept = larger(rng)
    full = Margin(UNIT, ("a", "b", "z"))
    proofs = [
        step("kept", wanted=full),
        step("read off", given=rng.choice([A, AB, *kept]), wanted=full),
        step("all of"),
        step("finite distance", step("kept", wanted=full), fixed=(full,)),
    ]
    return Implication(first, second, Verdict.yes("forged", step("singletons", rng.choice(proofs))))


@forges("singletons")
def a_free_number(rng: Random) -> Forgery:
    """One kind of record only, and records may be added: d_Sym fixes no number."""
    one = Domain(
        name="one", record_types=(RecordType(name=UNIT, variables=(Variable(name="a", levels=("0",)),)),)
    )
    value = amount(rng)
    second = spec(value, on=one, unit=rng.choice([SYM, Neighbours(SYM)]), output=linear(rng))
    first = replace(second, budget=Budget.of(more_than(rng, value)))
    full = Margin(UNIT, ("a",))
    total = step("sums", given=(TOTAL,), wanted=full, axes=(), combinations={(): {(0, ()): Fraction(1)}})
    proof = rng.choice([step("finite distance", total, fixed=(TOTAL,)), total])
    return Implication(first, second, Verdict.yes("forged", step("singletons", proof)))


@forges("singletons")
def who_lives_where(rng: Random) -> Forgery:
    """All tables are exact, and persons may still live in other households: d_Ham(household) > 0."""
    full = [Margin(UNIT, ("a",)), Margin("person", ("sex",))]
    small, output = amount(rng), linear(rng)
    second = spec(small, *full, on=LINKED, output=output)
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("singletons", nested(*full))))


@forges("singletons")
def persons_come_and_go(rng: Random) -> Forgery:
    """d_Ham(household) does not fix the number of persons; d_Ham(person) of the joint file counts vacant homes too."""
    kind = Domain(
        name="d",
        record_types=(
            RecordType(name=UNIT, variables=variables("a")),
            RecordType(name="person", variables=(Variable(name="c", levels=("0",)),)),
        ),
    )
    small = amount(rng)
    unit = rng.choice([HAM, Hamming("person")])
    second = spec(small, A, on=kind, unit=unit)
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    person = step(
        "sums",
        given=(Margin("person"),),
        wanted=Margin("person", ("c",)),
        axes=(),
        combinations={(): {(0, ()): Fraction(1)}},
    )
    proof = step("all of", step("kept", wanted=A), rng.choice([person, step("finite distance", person)]))
    return Implication(first, second, Verdict.yes("forged", step("singletons", proof)))


@forges("singletons")
def unlisted_variables(rng: Random) -> Forgery:
    empty = Domain(name="toy", record_types=(RecordType(name=UNIT),))
    on = rng.choice([Domain(name="toy"), empty])
    value = amount(rng)
    second = spec(value, TOTAL, on=on)
    first = replace(second, budget=Budget.of(more_than(rng, value)))
    return Implication(first, second, Verdict.yes("forged", step("singletons", nested(TOTAL))))


@forges("no neighbours")
def one_record_changes(rng: Random) -> Forgery:
    """z can change alone."""
    first, second, _ = larger(rng, unit=Neighbours(HAM))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours", **junk(rng))))


@forges("no neighbours")
def not_about_neighbours(rng: Random) -> Forgery:
    """Two records can exchange b, at distance 2; no two data sets are neighbours."""
    small, output = amount(rng), linear(rng)
    second = spec(small, A, B, on=PLAIN, output=output)
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("no neighbours")
def two_copies_change(rng: Random) -> Forgery:
    """One contributor has two records, which may exchange b."""
    unit = Neighbours(Hamming(UNIT, copies=2))
    small, output = amount(rng), linear(rng)
    second = spec(small, A, B, on=PLAIN, output=output, unit=unit)
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("no neighbours")
def records_that_cannot_be_written_out(rng: Random) -> Forgery:
    """A distance of somebody else; records whose variables are not listed."""
    empty = Domain(name="toy", record_types=(RecordType(name=UNIT),))
    value, output = amount(rng), linear(rng)
    cases = [
        spec(value, A, B, on=PLAIN, output=output, unit=Neighbours(Halved(UNIT))),
        spec(value, TOTAL, on=empty, output=output, unit=Neighbours(HAM)),
        spec(value, A, B, on=PLAIN, output=output, unit=Neighbours(Elsewhere())),
    ]
    second = rng.choice(cases)
    first = replace(second, budget=Budget.of(more_than(rng, value)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("no neighbours")
def an_uncounted_record_is_added(rng: Random) -> Forgery:
    """Only records with a = 0 are counted."""
    only = Margin(UNIT, rng.choice([(), ("b",)]), {"a": ["0"]})
    small, output = amount(rng), linear(rng)
    second = spec(small, only, on=PLAIN, output=output, unit=Neighbours(SYM))
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("no neighbours")
def what_tables_do_not_show(rng: Random) -> Forgery:
    """An inequality, or a declared statistic of all tables together, lets a record change alone."""
    parity = Custom("parity", determined_by=(Margin(UNIT, ("a", "b", "z")),))
    kept = rng.choice([(AtLeast(A, 1), AtLeast(B, 1)), (parity,)])
    small, output = amount(rng), linear(rng)
    second = spec(small, *kept, output=output, unit=Neighbours(HAM))
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("no neighbours")
def another_type_changes(rng: Random) -> Forgery:
    """Households by a are exact, and the person of a household changes."""
    small, output = amount(rng), linear(rng)
    second = spec(small, A, on=LINKED, output=output, unit=Neighbours(HAM))
    first = replace(second, budget=Budget.of(more_than(rng, small)))
    return Implication(first, second, Verdict.yes("forged", step("no neighbours")))


@forges("void")
def not_void(rng: Random) -> Forgery:
    """δ stays below 1 at distance 1, where z changes alone, and a larger δ is asked of the second."""
    kept, delta = kept_tables(rng), Fraction(rng.randint(1, 999), 1000)
    # e^ε(1 − δ) is what a pure promise can lose: far more is allowed by the first
    second = spec(amount(rng), *kept, output=Approximate(delta))
    first = spec(amount(rng) + 40, *kept)
    return Implication(first, second, Verdict.yes("forged", step("void", **junk(rng))))


@forges("void")
def no_delta_at_all(rng: Random) -> Forgery:
    first, second, _ = larger(rng, output=rng.choice([Multiplicative(), NormalizedRenyi(), Approximate(0)]))
    return Implication(first, second, Verdict.yes("forged", step("void")))


@forges("void")
def a_delta_of_somebody_else(rng: Random) -> Forgery:
    """By the known formula δ would reach 1 at distance 2, the smallest one."""
    second = spec(amount(rng) + 5, A, B, on=PLAIN, output=Stern("9/10"))
    return Implication(spec(amount(rng) + 40, A, B, on=PLAIN), second, Verdict.yes("forged", step("void")))


@forges("void")
def void_where_it_was_taken(rng: Random) -> Forgery:
    """Nothing is promised where the budget was taken, and something where b = 2."""
    del rng
    second = swap("1/2", 500, budget=Budget.of(40), output=Approximate("1/100"))
    first = spec(30, A, B, on=PLAIN)
    return Implication(first, second, Verdict.yes("forged", step("void")))


# --- the budget of one promise


@forges("budget")
def a_larger_budget(rng: Random) -> Forgery:
    first, second, kept = larger(rng)
    return Implication(first, second, yes(nested(*kept), step("budget", **junk(rng))))


@forges("budget")
def a_larger_budget_of_somebody_else(rng: Random) -> Forgery:
    """A measure of which nothing is known but its name; a distance that may be so small that ε²/2 is needed."""
    first, second, kept = larger(rng, output=NOTHING_KNOWN)
    if rng.random() < 0.5:
        near = {"unit": Turnover(), "on": PLAIN}
        limit = Budget.sqrt(Fraction(rng.randint(153, 199), 100))  # 2·tanh(1) = 1.52 ≤ ρ² < ε²/2 = 2
        first, second, kept = spec(2, **near), spec(limit, output=NormalizedRenyi(), **near), ()
    return Implication(first, second, yes(nested(*kept), step("budget", least=1)))


@forges("budget")
def a_larger_delta(rng: Random) -> Forgery:
    """Revealing with probability δ keeps the first and breaks the second at distance 1."""
    kept, delta = kept_tables(rng), Fraction(rng.randint(1, 400), 1000)
    more = delta + rng.choice([Fraction(1, 10**12), Fraction(1, 10)])
    small = amount(rng, 1) / 4  # so small that δ of the second stays below 1
    second = spec(small, *kept, output=Approximate(delta / 8))
    first = replace(second, output_premetric=Approximate(more / 8))
    return Implication(first, second, yes(nested(*kept), step("budget", **junk(rng))))


@forges("budget")
def another_measure(rng: Random) -> Forgery:
    """A Gaussian has no bounded ratio; a revealed data set no finite loss; ε·tanh(ε/2) may exceed ρ²."""
    kept, value = kept_tables(rng), amount(rng)
    concentrated, loose = NormalizedRenyi(), Approximate("1/1000")
    pairs = [
        (spec(value, *kept, output=concentrated), spec(value + 9, *kept)),
        (spec(value, *kept, output=loose), spec(value + 9, *kept)),
        (spec(value, *kept, output=loose), spec(value + 9, *kept, output=concentrated)),
        (spec(value + 2, *kept), spec(Budget.sqrt((value + 2) / 2), *kept, output=concentrated)),
    ]
    first, second = rng.choice(pairs)
    return Implication(first, second, yes(nested(*kept), step("budget", **junk(rng))))


@forges("budget")
def distances_that_do_not_occur(rng: Random) -> Forgery:
    """ε = 10 loses about 10 at distance 1, whatever a smallest distance is said to be."""
    kept, value = kept_tables(rng), 10 + amount(rng)
    second = spec(Budget.sqrt(amount(rng, 1)), *kept, output=NormalizedRenyi())
    least = rng.choice([-100, -1, 0, 2, 3, 100, 10**9, "2.5", True, Fraction(2), None, 2.0])
    return Implication(spec(value, *kept), second, yes(nested(*kept), step("budget", least=least)))


@forges("budget")
def a_smallest_distance_of_two(rng: Random) -> Forgery:
    """ε = 2 loses 2·tanh(1) = 1.52 at distance 1, where z changes alone, and 2·tanh(2)/2 = 0.96 at distance 2."""
    kept = kept_tables(rng)
    second = spec(Budget.sqrt(Fraction(rng.randint(98, 152), 100)), *kept, output=NormalizedRenyi())
    return Implication(spec(2, *kept), second, yes(nested(*kept), step("budget", least=2)))


@forges("budget")
def another_unit(rng: Random) -> Forgery:
    """The first distance is up to twice the second one, and the budget is used up there."""
    value, output = amount(rng), linear(rng)
    homes = Margin(UNIT)
    cases = [
        (SYM, HAM, FREE, ()),  # one changed record is two added or removed
        (Hamming("person"), Hamming("person", link="free"), LINKED, ()),  # a move counts twice
        (HAM, Hamming("person", link="free"), LINKED, (homes,)),  # a move alters two households
        (SYM, Hamming("person"), LINKED, (homes,)),  # a household is replaced
        (HAM, Hamming(UNIT, copies=3), FREE, ()),  # three records of one contributor
        (SymmetricDifference("person"), Hamming("person", link="free"), LINKED, ()),
        (HAM, Hamming("person", copies=2), LINKED, (homes,)),  # two copies in two households
        (HAM, Halved(UNIT), FREE, ()),
        (Halved(UNIT), HAM, FREE, ()),
        (Halved(UNIT), SYM, FREE, (TOTAL,)),
        (HAM, Elsewhere(), FREE, ()),
        (Elsewhere(), HAM, FREE, ()),
        (Hamming("business"), Hamming("person"), Domain(name="toy"), (Margin("business"),)),
        (HAM, Hamming("business"), Domain(name="toy"), (homes,)),
        (Hamming("person"), HAM, LINKED, (Margin("person"),)),
    ]
    mine, theirs, on, kept = rng.choice(cases)
    limit = value * Fraction(rng.randint(100, 199), 100)
    first, second = (
        spec(v, *kept, unit=u, on=on, output=output) for v, u in ((value, mine), (limit, theirs))
    )
    facts = junk(rng) | {"least": 1}
    return Implication(first, second, yes(nested(*kept), step("budget", nested(*kept), **facts)))


@forges("budget")
def a_number_that_is_free(rng: Random) -> Forgery:
    """d_Ham is infinite between files of different sizes, and the second distance is not: ε = 0 allows to publish them."""
    value, output = amount(rng) * rng.choice([0, 1]), linear(rng)
    kind = Domain(
        name="homes",
        record_types=(
            RecordType(name=UNIT, variables=variables("a")),
            RecordType(name="housing unit", variables=variables("a")),
            RecordType(name="person", variables=variables("sex")),
        ),
    )
    lived_in = replace(
        kind,
        record_types=(
            kind.record_types[0],
            RecordType(
                name="housing unit", variables=(Variable(name="occupancy", levels=("occupied", "vacant")),)
            ),
            kind.record_types[2],
        ),
    )
    vacant = Margin("housing unit", (), {"occupancy": ["vacant"]})
    seasonal = replace(
        lived_in,
        record_types=(
            lived_in.record_types[0],
            RecordType(
                name="housing unit",
                variables=(Variable(name="occupancy", levels=("occupied", "vacant", "seasonal")),),
            ),
            lived_in.record_types[2],
        ),
    )
    with_facilities = replace(
        lived_in,
        record_types=(*lived_in.record_types, RecordType(name="group quarters", variables=variables("a"))),
    )
    facility = replace(
        LINKED,
        record_types=(*LINKED.record_types, RecordType(name="group quarters", variables=variables("a"))),
    )
    people = rng.choice([Hamming("person"), SymmetricDifference("person"), Hamming("person", link="free")])
    cases = [
        (HAM, SYM, FREE, ()),
        (HAM, people, LINKED, ()),
        (HAM, people, LINKED, (Margin("person"),)),
        (HAM, Neighbours(Hamming("person", link="free")), LINKED, ()),
        (HAM, Neighbours(SymmetricDifference("person")), LINKED, ()),
        (HAM, people, kind, (Margin(UNIT),)),  # vacant units count as homes
        (HAM, people, lived_in, (Margin(UNIT),)),
        (HAM, people, lived_in, (vacant,)),
        (HAM, people, seasonal, (Margin(UNIT), vacant)),  # seasonal ones are neither
        (HAM, people, with_facilities, (Margin(UNIT), vacant)),
        (HAM, people, kind, (Margin(UNIT), Margin("housing unit", (), {"a": ["0"]}))),
        (HAM, people, facility, (Margin(UNIT),)),  # so do facilities
    ]
    mine, theirs, on, kept = rng.choice(cases)
    first = spec(value, *kept, unit=mine, on=on, output=output)
    second = spec(4 * value + amount(rng), *kept, unit=theirs, on=on, output=output)
    proofs = (step("kept", wanted=TOTAL), step("finite distance", step("kept", wanted=TOTAL), fixed=(TOTAL,)))
    return Implication(first, second, yes(nested(*kept), step("budget", *proofs, nested(*kept), **junk(rng))))


@forges("budget")
def neighbours_that_do_not_connect(rng: Random) -> Forgery:
    """Under {a, b} two records exchange b; no path of neighbours leads there, so the first promises nothing."""
    value, output = amount(rng), linear(rng)
    custom = Custom("parity", determined_by=(AB,))
    cases = [
        (Neighbours(HAM), HAM, PLAIN, (A, B)),
        (Neighbours(SYM), Neighbours(HAM), PLAIN, (TOTAL,)),  # nothing can be added
        (Neighbours(SYM), SYM, PLAIN, (TOTAL,)),
        (Neighbours(SYM), SYM, PLAIN, (A,)),
        (Neighbours(HAM), HAM, domain("a", "b", constraints=(Constraint(words="unknown"),)), ()),
        (
            Neighbours(HAM),
            HAM,
            replace(
                PLAIN, dependencies=(Dependency(record_type=UNIT, of=("a",), determines=("b",), fixed=False),)
            ),
            (),
        ),
        (Neighbours(HAM), HAM, PLAIN, (custom, A)),
        (Neighbours(Hamming("person")), Hamming("person"), LINKED, (A,)),
        (Neighbours(Hamming(UNIT, copies=2)), Hamming(UNIT, copies=2), PLAIN, ()),
    ]
    mine, theirs, on, kept = rng.choice(cases)
    if rng.random() < 0.1:  # nothing says that somebody else's measure adds up along a path
        mine, theirs, on, kept, output = Neighbours(HAM), HAM, PLAIN, (), NOTHING_KNOWN
    first = spec(value, *kept, unit=mine, on=on, output=output)
    second = spec(value * 8 + 1, *kept, unit=theirs, on=on, output=output)
    return Implication(first, second, yes(nested(*kept), step("budget", nested(*kept), least=1)))


@forges("budget")
def a_budget_that_differs(rng: Random) -> Forgery:
    """The first is larger, or the second smaller, in some other universe."""
    value = amount(rng)
    cases = [
        (spec(value, varies=bounded(rng, Fraction(0), Budget.infinite())), spec(value + 1)),
        (spec(value, varies=bounded(rng, Fraction(0), Budget.of(value + 2))), spec(value + 1)),
        (spec(value), spec(value + 1, varies=bounded(rng, value / 2, Budget.infinite()))),
        (spec(value + 1, varies=bounded(rng, Fraction(0), Budget.of(value))), spec(value)),
        (swap("1/2"), spec(100, A, B, on=PLAIN)),
        (spec(Fraction(1, 10), A, B), swap("1/20", on=FREE)),  # b = 0 in a universe where z is free
        (spec(Fraction(1, 10), A, B, on=PEOPLED), swap("1/20", on=PEOPLED)),  # or where persons are
        (spec(Fraction(1, 10), A, B, on=UNLISTED), swap("1/20", on=UNLISTED)),  # or anything else
        (spec(2, A, B, on=PLAIN), swap("1/2")),  # the law is smaller at b = 2
        (spec(Fraction(1, 10), A, B, on=PLAIN), swap("1/20", budget=Fraction(1, 20))),
    ]
    first, second = rng.choice(cases)
    return Implication(first, second, yes(nested(*first.multiverse), step("budget", **junk(rng))))


@forges("budget")
def a_delta_of_each_universe(rng: Random) -> Forgery:
    """ε is small somewhere; for c < 1 the δ of the other unit is largest there."""
    delta = Fraction(rng.randint(1, 40), 100)
    function = bounded(rng, Fraction(0), Budget.log(9))
    first = spec(Budget.log(9), TOTAL, output=Approximate(delta), varies=function)
    second = spec(Budget.log(3), TOTAL, output=Approximate(delta / 4), unit=SYM)
    return Implication(first, second, yes(nested(TOTAL), step("budget", nested(TOTAL), least=1)))


@forges("budget")
def universes_that_are_not_nested(rng: Random) -> Forgery:
    """The first publishes a table exactly that the second leaves open."""
    table = rng.choice([A, B, AB, Margin(UNIT, ("z",)), Margin(UNIT, (), {"a": ["1"]})])
    other = [t for t in (TOTAL, Margin(UNIT, ("b", "z"))) if t != table]
    kept = tuple(rng.sample(other, rng.randint(0, 1))) if table != B else ()
    first, second = spec(amount(rng), table), spec(9, *kept)
    proofs = [
        (),
        (nested(table),),
        (step("read off", given=table, wanted=table),),
        (step("finite distance", nested(table), fixed=(table,)),),
        (step("all of", step("finite distance", step("kept", wanted=table), fixed=(table, TOTAL))),),
        (step("function of", nested(table), wanted=table),),
    ]
    return Implication(first, second, yes(*rng.choice(proofs), step("budget", **junk(rng))))


@forges("implication")
def nothing_about_budgets(rng: Random) -> Forgery:
    first, second, kept = larger(rng)
    last = step(
        rng.choice(["kept", "all of", "size", "void", "same", "mechanism", "because", ""]), **junk(rng)
    )
    return Implication(first, second, yes(nested(*kept), last))


@forges("implication")
def a_real_budget_under_no_rule(rng: Random) -> Forgery:
    """The budget is smaller, and the step names no rule that says so."""
    second, first, kept = larger(rng)
    last = step(rng.choice(["because", "", "smaller", "same", "void", "Budget"]))
    return Implication(first, second, yes(nested(*kept), last))


@forges("implication")
def another_domain(rng: Random) -> Forgery:
    """The same numbers about other data sets."""
    value = amount(rng)
    first, second = spec(value, on=domain("a", "b", "z", "y")), spec(value)
    return Implication(first, second, yes(nested(), step(rng.choice(["budget", "parts", "laws"]))))


@forges("implication")
def no_such_rule(rng: Random) -> Forgery:
    first, second, kept = larger(rng)
    names = [
        "because",
        "",
        "Implication",
        "implied",
        "mechanism",
        "budget",
        "parts",
        "kept",
        "all of",
        "pair",
    ]
    proofs = (nested(*kept), step("budget"))
    return Implication(first, second, Verdict.yes("forged", step(rng.choice(names), *proofs, **junk(rng))))


# --- several parts


def composed(*parts: Part, on: Domain = FREE, kept: tuple[Any, ...] = (), **more: Any) -> Specification:
    """A specification of these parts; its own budget is no part of the claim."""
    return spec(more.pop("budget", Budget.infinite()), *kept, on=on, parts=parts, **more)


def part(
    budget: Budget | Fraction | int, output: OutputPremetric, unit: InputPremetric = HAM, **more: Any
) -> Part:
    exact = budget if isinstance(budget, Budget) else Budget.of(budget)
    return Part(input_premetric=unit, output_premetric=output, budget=exact, **more)


def parts_yes(kept: tuple[Any, ...], rng: Random, *proofs: Derivation) -> Verdict:
    return yes(nested(*kept), step("parts", *proofs, nested(*kept), **junk(rng)))


@forges("parts")
def parts_that_add_up_to_more(rng: Random) -> Forgery:
    """Mechanisms that use up each part together use up the sum, or the root of the sum of squares."""
    kept, output = kept_tables(rng), linear(rng)
    values = [amount(rng) for _ in range(rng.randint(1, 3))]
    less = 1 - rng.choice([Fraction(1, 10**12), Fraction(1, 10**35), Fraction(1, 9)])
    limit = Budget.of(sum(values) * less)
    if isinstance(output, NormalizedRenyi):
        limit = Budget.sqrt(sum((v * v for v in values), Fraction(0)) * less)
    first = composed(*(part(v, output) for v in values), kept=kept, output=output)
    return Implication(first, spec(limit, *kept, output=output), parts_yes(kept, rng))


@forges("parts")
def a_delta_that_is_not_scaled(rng: Random) -> Forgery:
    """At a factor of 2 the truth is δ(1 + e^ε): the chain 0, δ, δ(1 + e^ε) is a mechanism of one part alone."""
    value, delta = amount(rng, 2), Fraction(1, rng.randint(500, 5000))
    low = sum((value**i / _factorial(i) for i in range(12)), Fraction(0))  # below e^ε
    limit = delta * (1 + low) * Fraction(rng.randint(500, 999), 1000)
    mine, theirs, on, kept = rng.choice(
        [(SYM, HAM, FREE, ()), (Hamming("person"), Hamming("person", link="free"), LINKED, ())]
    )
    both = (part(value, Approximate(delta), mine), part(amount(rng), Multiplicative(), mine))
    first = composed(*both[: rng.randint(1, 2)], kept=kept, on=on, unit=mine, output=Approximate(delta))
    second = spec(
        99 if len(first.parts) == 2 else 2 * value, *kept, on=on, unit=theirs, output=Approximate(limit)
    )
    if len(first.parts) == 2:
        second = replace(second, budget=Budget.of(2 * value), output_premetric=Approximate(limit))
    return Implication(first, second, parts_yes(kept, rng))


def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)


@forges("parts")
def deltas_that_add_up_to_more(rng: Random) -> Forgery:
    """Each part reveals with its own δ, at ε = 0: together more than the second allows at distance 1."""
    kept = kept_tables(rng)
    deltas = [Fraction(rng.randint(1, 50), 10**4) for _ in range(2)]
    limit = max(deltas)  # less than 1 − (1 − δ)(1 − δ')
    first = composed(*(part(0, Approximate(d)) for d in deltas), kept=kept, output=Approximate(limit))
    return Implication(first, spec(0, *kept, output=Approximate(limit)), parts_yes(kept, rng))


@forges("parts")
def parts_in_other_measures(rng: Random) -> Forgery:
    """No finite ratio for a Gaussian, no finite loss for a revealed data set; ε²/2 of pure DP for a small ε."""
    kept, value = kept_tables(rng), amount(rng)
    concentrated, loose = NormalizedRenyi(), Approximate("1/1000")
    cases = [
        (part(value, concentrated), spec(value + 9, *kept)),
        (part(value, loose), spec(value + 9, *kept)),
        (part(value, loose), spec(value + 9, *kept, output=concentrated)),
        (part(value, concentrated), spec(0, *kept, output=Approximate("1/100000"))),
        (part(value + 4, Multiplicative()), spec(Budget.sqrt((value + 4) / 2), *kept, output=concentrated)),
    ]
    one, second = rng.choice(cases)
    return Implication(composed(one, kept=kept, output=one.output_premetric), second, parts_yes(kept, rng))


@forges("parts")
def parts_in_other_units(rng: Random) -> Forgery:
    found = rng.choice([another_unit, a_number_that_is_free, neighbours_that_do_not_connect])(rng)
    assert isinstance(found, Implication)
    mine = part(found.first.budget, found.first.output_premetric, found.first.input_premetric)
    proofs = (step("kept", wanted=TOTAL), step("finite distance", step("kept", wanted=TOTAL), fixed=(TOTAL,)))
    first = replace(found.first, parts=(mine,))
    return Implication(first, found.second, parts_yes(tuple(found.second.multiverse), rng, *proofs))


@forges("parts")
def a_part_that_differs_by_universe(rng: Random) -> Forgery:
    value = amount(rng)
    law = swap("1/2")
    varying = bounded(rng, Fraction(0), Budget.infinite())
    cases = [
        (law, spec(100, A, B, on=PLAIN)),
        (spec(value, A, B, on=PLAIN), law),
        (spec(value, varies=varying), spec(value + 1)),
        (composed(part(value, Multiplicative(), varies=varying)), spec(value + 1)),
        (spec(value), spec(value + 1, varies=bounded(rng, Fraction(0), Budget.infinite()))),
    ]
    first, second = rng.choice(cases)
    return Implication(first, second, parts_yes(tuple(second.multiverse), rng))


@forges("parts")
def a_part_of_smaller_universes(rng: Random) -> Forgery:
    """The part was stated inside universes of a table that the second leaves open: it may publish that table."""
    value = amount(rng)
    own = Multiverse.of(rng.choice([A, B, AB]))
    first = composed(part(value, Multiplicative(), multiverse=own))
    proofs = [(), (nested(*own),), (step("finite distance", nested(*own), fixed=tuple(own)),)]
    return Implication(first, spec(value + 9), parts_yes((), rng, *rng.choice(proofs)))


@forges("parts")
def a_part_that_is_not_free(rng: Random) -> Forgery:
    """It is computed from a table that the invariants do not fix."""
    value, kept = amount(rng), tuple(rng.sample([A, B, TOTAL], rng.randint(0, 2)))
    table = rng.choice([Margin(UNIT, ("z",)), Margin(UNIT, ("a", "z")), Margin(UNIT, (), {"z": ["1"]})])
    tables = (table,) if rng.random() < 0.5 else (TOTAL, table)
    first = composed(part(value + 5, Multiplicative(), measures=tables), kept=kept)
    proofs = (nested(table), step("read off", given=TOTAL, wanted=table))
    return Implication(first, spec(value, *kept), parts_yes(kept, rng, *proofs))


# --- laws of b


@forges("laws")
def laws_that_are_larger(rng: Random) -> Forgery:
    """Theorem 1 at odds o < o' ≤ 1 is ln((b + 1)/o): larger for the smaller odds, at every b."""
    low, high = sorted(rng.sample(range(2, 60), 2))
    return Implication(swap(f"1/{high}"), swap(f"1/{low}"), yes(nested(A, B), step("laws", **junk(rng))))


@forges("laws")
def laws_that_cross(rng: Random) -> Forgery:
    """ln o' at odds o' > 1 is larger for small b, and ln(b + 1) − ln o for b above o·o', however large."""
    much = rng.choice([10, 100, 10**4, 10**10, 10**15])
    near = f"{much - 1}/{much}"
    pair = (swap("1/2"), swap(near)) if rng.random() < 0.5 else (swap(near), swap("1/2"))
    kind = rng.choice([(swap("1/2", kind="by-size"), swap("3/4", kind="by-size")), pair])
    return Implication(*kind, yes(nested(A, B), step("laws", **junk(rng))))


@forges("laws")
def laws_in_other_units(rng: Random) -> Forgery:
    """The same law of another distance or measure."""
    rate = f"1/{rng.randint(2, 40)}"
    other = rng.choice([{"unit": SYM}, {"output": NormalizedRenyi()}, {"output": Approximate("1/100")}])
    return Implication(swap(rate, **other), swap(rate), yes(nested(A, B), step("laws")))


@forges("laws")
def laws_of_other_strata(rng: Random) -> Forgery:
    """b of the first is the larger number in some data set."""
    cube = domain("a", "b", "c")
    coarse, fine = LargestStratum(UNIT, (), ("a",), ("b",)), LargestStratum(UNIT, ("c",), ("a",), ("b",))
    tables = tuple(Margin(UNIT, by) for by in (("a", "c"), ("b", "c")))
    cases = [
        (coarse, fine),
        (coarse, LargestStratum(UNIT, (), ("a",), ("b",), where={"c": ["1"]})),
        (coarse, LargestStratum(UNIT, (), ("a",), ("b",), without=[{"c": ["1"]}])),
        (coarse, None),
    ]
    one, other = rng.choice(cases)
    rate = f"1/{rng.randint(2, 40)}"
    if (
        rng.random() < 0.4
    ):  # where a (or b) is the same in all records the second loses nothing, and c is free
        wide, tables = rng.choice(
            [
                (LargestStratum(UNIT, (), ("a", "c"), ("b",)), (Margin(UNIT, ("a", "c")), B)),
                (LargestStratum(UNIT, (), ("a",), ("b", "c")), (A, Margin(UNIT, ("b", "c")))),
            ]
        )
        one, other = wide, coarse
    first, second = (swap(rate, on=cube, statistic=s, kept=tables) for s in (one, other))
    return Implication(first, second, yes(nested(*tables), step("laws")))


@forges("laws")
def a_budget_at_the_realised_universe(rng: Random) -> Forgery:
    """The second is sharper, or the first raised, where it was taken."""
    value = Fraction(1, 10)
    small = rng.choice([2, 9, 500])
    cases = [
        (swap("1/2"), swap("1/20", small, budget=value)),
        (swap("1/2", realised="here"), swap("1/20", 500, realised="here", budget=value)),
        (swap("1/2", None), swap("1/20", None, budget=value)),
        (swap("1/2", None, realised="x"), swap("1/20", None, realised="x", budget=value)),
        (swap("1/2", small, budget=Budget.of(60)), swap("1/20", small, realised="")),
        (swap("1/2", 0, budget=Budget.of(60), on=FREE), swap("1/20", on=FREE)),
        (
            swap("1/2", 0, budget=Budget.of(1), on=FREE, realised="x"),
            swap("1/20", 0, budget=0, on=FREE, realised="x"),
        ),
    ]
    return Implication(*rng.choice(cases), yes(nested(A, B), step("laws", **junk(rng))))


@forges("laws")
def a_range_from_nothing_to_everything(rng: Random) -> Forgery:
    value = amount(rng)
    wide = bounded(rng, Fraction(0), Budget.infinite())
    some = bounded(rng, value, Budget.of(value + 2))
    cases = [
        (spec(value, varies=wide), spec(value + 1)),
        (spec(value), spec(value + 1, varies=wide)),
        (spec(value, varies=some), spec(value + 1)),
        (spec(value, varies=some), spec(value, varies=replace(some))),
        (spec(value + 2, varies=bounded(rng, value, Budget.of(value))), spec(value + 1)),
        (spec(value), spec(value / 2, varies=bounded(rng, value, Budget.infinite()))),
        (swap("1/2"), spec(100, A, B, on=PLAIN)),
        (swap("1/2"), spec(100, A, B, on=PLAIN, varies=bounded(rng, Fraction(100), Budget.infinite()))),
        (spec(Fraction(1, 10), A, B), swap("1/20", on=FREE)),
        (spec(2, A, B, on=PLAIN), swap("1/2")),
        (spec(Fraction(1, 10), A, B, on=PLAIN), swap("1/20", budget=Fraction(1, 20))),
        (spec(0, A, B, on=PLAIN, varies=bounded(rng, Fraction(0), Budget.of(2))), swap("1/2")),
        (spec(value + 1), spec(value)),
    ]
    first, second = rng.choice(cases)
    return Implication(first, second, yes(nested(*second.multiverse), step("laws", **junk(rng))))


# --- tables


def tables(rng: Random, names: tuple[str, ...]) -> Table:
    by = tuple(name for name in names if rng.random() < 0.5)
    where = tuple((name, (rng.choice(BITS),)) for name in names if rng.random() < 0.25)
    return Table(by, where)


def margin(table: Table, kind: str = UNIT) -> Margin:
    return Margin(kind, table.by, dict(table.where) or None)


def undetermined(rng: Random) -> tuple[list[Margin], Margin]:
    """Tables that do not determine another one, by rank."""
    names = ("a", "b", "z")
    records = [*product(BITS, repeat=3)]
    while True:
        given, wanted = [tables(rng, names) for _ in range(rng.randint(1, 3))], tables(rng, names)
        if not determines(given, wanted, names, records):
            return [margin(table) for table in given], margin(wanted)


def refinement(given: list[Any], wanted: Any, proof: Derivation, on: Domain = FREE) -> Refinement:
    return Refinement(Multiverse.of(*given), Multiverse.of(wanted), on, Verdict.yes("forged", proof))


@forges("kept")
def a_table_that_is_not_given(rng: Random) -> Forgery:
    given, wanted = undetermined(rng)
    return refinement(given, wanted, step("kept", wanted=rng.choice([wanted, *given]), **_less(junk(rng))))


def _less(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in {"wanted", "given", "axes"}}


@forges("read off")
def a_table_that_does_not_show_it(rng: Random) -> Forgery:
    given, wanted = undetermined(rng)
    source = rng.choice([*given, wanted, Margin(UNIT, ("a", "b", "z")), None, "a", (wanted,)])
    return refinement(given, wanted, step("read off", given=source, wanted=wanted))


@forges("read off")
def a_table_of_other_records(rng: Random) -> Forgery:
    """Households are no persons; and a table of some records does not count all."""
    part = Margin(UNIT, (), {"a": ["0"]})
    cases = [
        (LINKED, Margin(UNIT), Margin("person")),
        (FREE, part, TOTAL),
        (FREE, Margin(UNIT, ("b",), {"a": ["0"]}), B),
        (FREE, TOTAL, part),
        (FREE, B, Margin(UNIT, ("b",), {"a": ["0"]})),
        (FREE, Margin(UNIT, (), {"a": ["0"], "b": ["0"]}), part),
        (Domain(name="toy"), part, TOTAL),
    ]
    on, given, wanted = rng.choice(cases)
    return refinement([given], wanted, step("read off", given=given, wanted=wanted), on)


class Liar(Margin):
    """A table that claims to be equal to every other one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(A)


@forges("read off")
def a_table_of_a_class_that_lies(rng: Random) -> Forgery:
    """Only households by a are given."""
    liar = Liar(UNIT, ("a", "b", "z"))
    wanted = margin(Table(("b",), (("a", (rng.choice(BITS),)),)))
    proof = rng.choice(
        [
            step("read off", given=liar, wanted=wanted),
            step("sums", given=(liar,), wanted=wanted, axes=_axis("a"), combinations=_identity(wanted)),
        ]
    )
    return refinement([A], wanted, proof)


@dataclass(frozen=True)
class Axis:
    """Variables written out with their joint levels."""

    variables: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]


def _axis(*names: str) -> tuple[Axis, ...]:
    return tuple(Axis((name,), tuple((level,) for level in BITS)) for name in names)


def _identity(wanted: Margin, names: str = "abz") -> dict[Any, Any]:
    cells = product(*(BITS for name in wanted.by if name in names))
    return {cell: {(0, cell): Fraction(1)} for cell in cells}


@forges("sums")
def sums_of_other_tables(rng: Random) -> Forgery:
    """No combination of the given tables is the wanted one, whatever numbers, levels and axes are written."""
    given, wanted = undetermined(rng)
    names = rng.sample(["a", "b", "z"], rng.randint(0, 3))
    axes = [Axis((name,), tuple((level,) for level in rng.sample(BITS, rng.randint(1, 2)))) for name in names]
    if rng.random() < 0.3 and len(names) > 1:
        axes = [Axis(tuple(names), tuple(rng.sample([*product(BITS, repeat=len(names))], 2)))]
    shown = [name for name in wanted.by if name in names]
    combinations = {}
    for cell in product(BITS, repeat=len(shown)):
        terms = {}
        for place, table in enumerate(given):
            key = tuple(rng.choice(BITS) for name in table.by if name in names)
            if rng.random() < 0.7:
                terms[place, key] = Fraction(rng.choice([1, 1, -1, 0, 2]))
        if rng.random() < 0.95:
            combinations[cell] = terms
    source = tuple(given) if rng.random() < 0.9 else (*given, wanted)
    if rng.random() < 0.2:
        combinations = {cell: {(len(given), cell): Fraction(1)} for cell in combinations}
        source = (*given, wanted)
    return refinement(
        given, wanted, step("sums", given=source, wanted=wanted, axes=tuple(axes), combinations=combinations)
    )


@forges("sums")
def a_sum_that_hides_something(rng: Random) -> Forgery:
    """Written out on too few levels, without an axis, twice, of another record type or of too much: never the table."""
    only = Margin(UNIT, (), {"a": ["0"]})
    one = {(): {(0, ()): Fraction(1)}}
    half = (Axis(("a",), (("0",),)),)
    crossed = (Axis(("a",), (("0",), ("1",))), Axis(("a", "b"), (("0", "0"), ("0", "1"))))
    wide = Domain(
        name="wide",
        record_types=(RecordType(name=UNIT, variables=(Variable(name="a", levels=4), *variables("b"))),),
    )
    cases = [
        (FREE, [TOTAL], only, half, one),  # all records are said to have a = 0
        (FREE, [TOTAL], only, (), one),  # the restriction is not written out
        (FREE, [TOTAL], only, crossed, one),  # a is written out twice, and the second time only as 0
        (FREE, [A], Margin(UNIT, ("a", "b")), (), one),  # b is not shown
        (FREE, [A], Margin(UNIT, ("a", "b")), _axis("a", "b"), _identity(AB)),
        (LINKED, [Margin(UNIT)], Margin("person"), (), one),  # households are no persons
        (wide, [TOTAL], only, (Axis(("a",), (("0",),)),), one),
        (wide, [TOTAL], only, (Axis(("a",), (("0",), ("more",))),), {(): {(0, ()): Fraction(1)}}),
        (FREE, [Margin(UNIT, (), {"a": ["0"]})], TOTAL, half, one),  # a level is missing
        (FREE, [Margin(UNIT, ("b",), {"a": ["0"]})], B, half, _identity(B)),
        (domain("a"), [A], Margin(UNIT, (), {"a": ["1"]}), _axis("a"), {(): {(0, ("0",)): Fraction(1)}}),
        (
            domain("a"),
            [A],
            Margin(UNIT, ("a",), {"a": ["0", "1"]}),
            _axis("a"),
            {("0",): {(0, ("0",)): Fraction(1)}},
        ),
        (FREE, [TOTAL], A, _axis("a"), {(): {(0, ()): Fraction(1)}}),
    ]
    on, given, wanted, axes, combinations = rng.choice(cases)
    facts = {"given": tuple(given), "wanted": wanted, "axes": axes, "combinations": combinations}
    return refinement(list(given), wanted, step("sums", **facts), on)


@forges("sums")
def areas_of_which_nothing_is_listed(rng: Random) -> Forgery:
    """Counties do not tell their tracts, however many there are of each."""
    on = Domain(
        name="areas",
        record_types=(
            RecordType(
                name=UNIT,
                variables=(Variable(name="county", levels=rng.choice([None, 2])), Variable(name="tract")),
            ),
        ),
        spine=("county", "tract"),
    )
    given, wanted = Margin(UNIT, ("county",)), Margin(UNIT, ("tract",))
    facts = {"given": (given,), "wanted": wanted, "axes": (), "combinations": {(): {(0, ()): Fraction(1)}}}
    return refinement([given], wanted, step("sums", **facts), on)


@forges("sums")
def a_real_sum_with_a_change(rng: Random) -> Forgery:
    """a = 1 is all less a = 0; another weight, place, key or cell proves nothing."""
    given = (B, Margin(UNIT, ("b",), {"a": ["0"]}))
    wanted = Margin(UNIT, ("b",), {"a": ["1"]})
    weights = [Fraction(1), Fraction(-1)]
    kind = rng.choice(["weight", "missing", "place", "type", "key"])
    place = rng.randrange(2)
    if kind == "weight":
        weights[place] += rng.choice([1, -1, Fraction(1, 10**9), 2])
    terms: dict[Any, Any] = {(0, ()): weights[0], (1, ()): weights[1]}
    if kind == "missing":
        terms.pop((place, ()))
    elif kind == "place":
        terms = {(1, ()): weights[0], (0, ()): weights[1]}
    elif kind == "type":
        terms = {(rng.choice([0.0, -1, 7, "0"]), ()): weights[0], (1, ()): float(weights[1])}
    elif kind == "key":
        terms = {(0, ("0",)): weights[0], (1, ()): weights[1]}
    facts = {"given": given, "wanted": wanted, "axes": _axis("a"), "combinations": {(): terms}}
    return refinement(list(given), wanted, step("sums", **facts))


AREAS = Domain(
    name="areas",
    record_types=(
        RecordType(
            name=UNIT,
            variables=(
                Variable(name="county", levels=("A", "B")),
                Variable(name="tract", levels=("1", "2", "3")),
                *variables("z"),
            ),
        ),
    ),
    spine=("county", "tract"),
)
MAPS = [way for way in product("AB", repeat=3) if len({*way}) == 2]


def _way(way: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(way, ("1", "2", "3"), strict=True))


@forges("every map")
def maps_that_leave_one_out(rng: Random) -> Forgery:
    """Tracts 1 and 2 are county A in one way only; in the others the table does not follow."""
    have, want = Margin(UNIT, (), {"tract": ["1", "2"]}), Margin(UNIT, (), {"county": ["A"]})
    right = _way(("A", "A", "B"))
    ways = [right]
    kind = rng.choice(["one", "permuted", "twice", "broken", "six", "renamed", "partial", "tangled", "named"])
    if kind == "permuted":  # the same map, its rows in another order, as often as there are maps
        ways = [tuple(rng.sample(right, 3)) for _ in range(40)]
    elif kind == "twice":
        ways = [right] * 6
    elif kind == "broken":  # joint levels that are no map: a tract in two counties
        ways = [tuple(rng.sample([*right, ("A", "3"), ("B", "1")], rng.randint(2, 5))) for _ in range(6)]
    elif kind == "six":
        ways = [_way(way) for way in MAPS]
    elif kind == "partial":  # six different pieces of one map
        ways = [piece for size in (1, 2) for piece in combinations(right, size)]
    elif kind == "tangled":  # county A within tracts 1 and 2; six relations without A3 that are no maps
        have = Margin(UNIT, (), {"county": ["A"], "tract": ["1", "2"]})
        rows = [("A", "1"), ("A", "2"), ("B", "3"), ("B", "1"), ("B", "2")]
        ways = [
            tuple(rows),
            tuple(rows[:3]),
            tuple(rows[:4]),
            (rows[0], *rows[2:]),
            tuple(rows[1:4]),
            (*rows[:3], rows[4]),
        ]
    elif kind == "named":  # a real proof whose steps name another rule
        have, want = (
            Margin(UNIT, (), {"tract": ["1"]}),
            Margin(UNIT, (), {"tract": ["1"], "county": ["A", "B"]}),
        )
        ways = [_way(way) for way in MAPS]
    facts = {"given": (have,), "wanted": want, "combinations": {(): {(0, ()): Fraction(1)}}}
    names = ("county", "tract") if kind != "renamed" else ("tract", "county")
    levels = [way if kind != "renamed" else tuple((t, c) for c, t in way) for way in ways]
    named = "sums" if kind != "named" else rng.choice(["kept", "sum", ""])
    proofs = [step(named, axes=(Axis(names, level),), **facts) for level in levels]
    proof = step("every map", *proofs) if kind != "one" or rng.random() < 0.5 else proofs[0]
    return refinement([have], want, proof, AREAS)


@forges("every map")
def maps_between_variables_that_are_not_nested(rng: Random) -> Forgery:
    """a and b are independent: a says nothing about b."""
    bijections = [(("0", "0"), ("1", "1")), (("0", "1"), ("1", "0"))]
    wanted = rng.choice([AB, B])
    proofs = []
    for levels in bijections:
        at = {tuple(dict(zip("ab", level, strict=True))[n] for n in wanted.by): level[0] for level in levels}
        combinations = {cell: {(0, (a,)): Fraction(1)} for cell, a in at.items()}
        facts = {
            "given": (A,),
            "wanted": wanted,
            "axes": (Axis(("a", "b"), levels),),
            "combinations": combinations,
        }
        proofs.append(step("sums", **facts))
    rng.shuffle(proofs)
    proof = rng.choice([step("every map", *proofs), step("every map", proofs[0]), step("every map")])
    return refinement([A], wanted, proof)


@forges("every map")
def maps_about_something_else(rng: Random) -> Forgery:
    """The steps speak of other tables, or are of another rule."""
    given, wanted = undetermined(rng)
    facts = {"given": tuple(given), "wanted": given[0], "axes": (), "combinations": {}}
    proofs = [
        step("sums", **facts),
        step("kept", wanted=wanted),
        step("every map"),
        step("sums", **{**facts, "wanted": wanted}),
    ]
    return refinement(given, wanted, step("every map", *rng.sample(proofs, rng.randint(0, 3))))


@forges("function of")
def a_function_of_something_else(rng: Random) -> Forgery:
    """A declared statistic, one of whose tables is not determined; or one that declares none."""
    given, open_one = undetermined(rng)
    needs = rng.choice([(open_one,), (given[0], open_one), (open_one, given[0]), ()])
    wanted = Custom("statistic", determined_by=needs)
    proofs = [step("kept", wanted=table) for table in (*given, open_one)]
    chosen = rng.sample(proofs, rng.randint(0, len(proofs)))
    return refinement(given, wanted, step("function of", *chosen, wanted=wanted))


@forges("some part")
def parts_that_do_not_tell(rng: Random) -> Forgery:
    """Whether tracts have 2 records does not say whether their county has; nor do other records or coarser areas."""
    tract, county, z = Margin(UNIT, ("tract",)), Margin(UNIT, ("county",)), {"z": ["1"]}
    cases = [
        (AtLeast(tract, 2), AtLeast(county, 2)),
        (AtLeast(tract, 1), AtLeast(county, 2)),
        (AtLeast(tract, 2), AtLeast(county, 1)),
        (AtLeast(county, 1), AtLeast(tract, 1)),
        (AtLeast(Margin(UNIT, ("tract",), z), 1), AtLeast(county, 1)),
        (AtLeast(tract, 1), AtLeast(Margin(UNIT, ("county",), z), 1)),
    ]
    have, want = rng.choice(cases)
    given = rng.choice([have, have, want, tract, "nothing"])
    return refinement([have], want, step("some part", given=given, wanted=want), AREAS)


@forges("finite distance")
def numbers_that_the_distance_leaves_open(rng: Random) -> Forgery:
    """d_Ham fixes the number of its records and no table; d_Sym fixes nothing; of refinements nothing is fixed."""
    table = rng.choice([A, B, AB, Margin(UNIT, ("z",))])
    proof = step("finite distance", step("kept", wanted=table), fixed=rng.choice([(table,), (TOTAL, table)]))
    value = amount(rng)
    cases: list[Forgery] = [
        Implication(spec(value, table), spec(value + 1), yes(proof, step("budget"))),
        Implication(
            spec(value, TOTAL, unit=SYM),
            spec(value + 1, unit=SYM),
            yes(step("finite distance", step("kept", wanted=TOTAL), fixed=(TOTAL,)), step("budget")),
        ),
        Implication(
            spec(value, Margin("person"), on=LINKED, unit=Hamming("person")),
            spec(value + 1, on=LINKED, unit=Hamming("person")),
            yes(step("finite distance", nested(Margin("person")), fixed=(Margin("person"),)), step("budget")),
        ),
        Implication(
            spec(value, Margin("person"), on=LINKED),
            spec(value + 1, on=LINKED),
            yes(step("finite distance", nested(Margin("person")), fixed=(Margin("person"),)), step("budget")),
        ),
        refinement([B], TOTAL if False else A, step("finite distance", nested(A), fixed=(A,))),
        refinement(
            [Margin(UNIT, (), {"a": ["0"]})], TOTAL, step("finite distance", nested(TOTAL), fixed=(TOTAL,))
        ),
    ]
    return rng.choice(cases)


SIZED = Domain(
    name="sized",
    record_types=(
        RecordType(name=UNIT, variables=(*variables("county", "race"), Variable(name="size"))),
        RecordType(name="person", variables=variables("county", "race")),
    ),
    spine=("county",),
    size_variable="size",
)
QUARTERS = replace(
    SIZED,
    record_types=(
        SIZED.record_types[0],
        RecordType(
            name="person",
            variables=(*variables("county", "race"), Variable(name="quarters", levels=("household", "gq"))),
        ),
        RecordType(name="group quarters", variables=variables("county")),
    ),
)


PETS = replace(
    SIZED, record_types=(*SIZED.record_types, RecordType(name="pet", variables=variables("county")))
)
UNSEEN = replace(
    SIZED,
    record_types=(*SIZED.record_types, RecordType(name="group quarters", variables=variables("county"))),
)


@forges("size")
def persons_that_sizes_do_not_count(rng: Random) -> Forgery:
    """Persons in group quarters; persons by race; households without their size; another area."""
    sized = Margin(UNIT, ("county", "size"))
    cases = [
        (QUARTERS, sized, Margin("person", ("county",))),
        (SIZED, Margin(UNIT, ("county", "race", "size")), Margin("person", ("race",))),
        (PETS, sized, Margin("pet", ("county",))),
        (SIZED, Margin(UNIT, ("county",)), Margin("person", ("county",))),
        (SIZED, Margin(UNIT, ("size",)), Margin("person", ("county",))),
        (replace(SIZED, size_variable=""), sized, Margin("person", ("county",))),
        (SIZED, Margin(UNIT, ("county", "size"), {"county": ["0"]}), Margin("person", ("county",))),
    ]
    on, given, wanted = rng.choice(cases)
    source = rng.choice([given, sized, wanted])
    asked = Margin(UNIT, (*wanted.by, "size"), wanted.where)
    inner = rng.choice(
        [
            step("kept", wanted=source),
            step("read off", given=given, wanted=sized),
            step("kept"),
            step("read off", given=given, wanted=asked),
        ]
    )
    return refinement([given], wanted, step("size", inner, given=source, wanted=wanted), on)


@forges("homes")
def persons_that_homes_do_not_count(rng: Random) -> Forgery:
    """One of the two tables is missing, or they are not by area."""
    sized = Margin(UNIT, ("county", "size"))
    outside = Margin("person", ("county",), {"quarters": ["gq"]})
    inside = Margin("person", ("county",), {"quarters": ["household"]})
    by_race = Margin("person", ("race",), {"quarters": ["gq"]})
    cases = [
        (QUARTERS, [sized], Margin("person", ("county",))),
        (QUARTERS, [outside], Margin("person", ("county",))),
        (QUARTERS, [Margin(UNIT, ("county",)), outside], Margin("person", ("county",))),
        (QUARTERS, [Margin(UNIT, ("race", "size")), by_race], Margin("person", ("race",))),
        (replace(QUARTERS, size_variable=""), [sized, outside], Margin("person", ("county",))),
        (SIZED, [Margin(UNIT, ("county",))], Margin("person", ("county",))),
        (QUARTERS, [Margin(UNIT, ("size",)), inside], Margin("person", ("county",))),
        (UNSEEN, [sized, Margin("person", ("county",), {"quarters": []})], Margin("person", ("county",))),
        (
            replace(QUARTERS, record_types=(*QUARTERS.record_types, PETS.record_types[-1])),
            [sized, Margin("person", ("county",), {"quarters": ["gq"]})],
            Margin("pet", ("county",)),
        ),
    ]
    on, given, wanted = rng.choice(cases)
    proofs = [step("kept", wanted=table) for table in (*given, sized, outside)]
    chosen = proofs if rng.random() < 0.5 else rng.sample(proofs, rng.randint(1, len(proofs)))
    return refinement(given, wanted, step("homes", *chosen, wanted=wanted, given=tuple(given)), on)


@forges("all of")
def nothing_that_concludes(rng: Random) -> Forgery:
    given, wanted = undetermined(rng)
    proofs = [step("kept", wanted=table) for table in given] + [step("all of"), step("kept"), step("pair")]
    found = step("all of", *rng.sample(proofs, rng.randint(0, len(proofs))))
    for _ in range(rng.randint(0, 3)):
        found = step("all of", found, **_less(junk(rng)))
    return refinement(given, wanted, found)


# --- a no

MECHANISMS = (
    "randomised response",
    "gaussian",
    "reveal",
    "reveal or randomised response",
    "publish",
    "",
    "coin",
)


def witness(rng: Random, names: str = "abz") -> Witness:
    sides = []
    for _ in range(2):
        records = [tuple(rng.choice(BITS) for _ in names) for _ in range(rng.randint(1, 3))]
        sides.append(data(*("".join(record) for record in records), names=names))
    return Witness(sides[0], sides[1])


CHANGED = Witness(data("000"), data("001"))


def no(pair: Witness, mechanism: Any, **facts: Any) -> Verdict:
    return Verdict.no("forged", step("mechanism", witness=pair, mechanism=mechanism, **facts))


@forges("mechanism")
def a_budget_that_is_not_larger(rng: Random) -> Forgery:
    """The first has one flavor with the second and no larger budget: no pair refutes."""
    kept, output, value = kept_tables(rng), premetric(rng), amount(rng)
    second = spec(value, *kept, output=output)
    first = replace(second, budget=Budget.of(value * Fraction(rng.randint(0, 100), 100)))
    pair = rng.choice([CHANGED, witness(rng)])
    return Implication(first, second, no(pair, rng.choice(MECHANISMS), **junk(rng)))


@forges("mechanism")
def measures_that_follow(rng: Random) -> Forgery:
    """Pure DP gives (ε, δ) and zCDP with ε²/2; the same holds for any larger second budget."""
    kept, value = kept_tables(rng), amount(rng)
    output = rng.choice([Approximate("1/100"), NormalizedRenyi()])
    limit = Budget.of(value) if isinstance(output, Approximate) else Budget.of(value) * Budget.sqrt("1/2")
    first, second = spec(value, *kept), spec(limit, *kept, output=output)
    return Implication(
        first,
        second,
        no(rng.choice([CHANGED, witness(rng)]), rng.choice(MECHANISMS), copies=rng.choice([1, 2, 5])),
    )


@forges("mechanism")
def pairs_that_are_none(rng: Random) -> Forgery:
    """Every universe of the second is one data set, so it promises nothing, and no pair can break it."""
    full = Margin(UNIT, ("a", "b", "z"))
    value = amount(rng)
    bad: list[Any] = [
        Witness(data("000"), data("000")),
        Witness(data("000"), data("001")),
        Witness(data("000"), data("002")),
        Witness(data("000"), data("000") + data("001", times=0)),
        Witness(data("0000", names="abzy"), data("0001", names="abzy")),
        Witness(data("000", "011"), data("001", "010")),
        Witness(DataSet(((UNIT, (("a", "0"),), -1),)), DataSet(((UNIT, (("a", "1"),), -1),))),
        Witness(DataSet(((UNIT, (("a", "0"), ("b", "0"), ("z", "0")), Fraction(3, 2)),)), data("000")),  # type: ignore[arg-type]
        Witness(DataSet((("person", (("sex", "0"),), 1),)), DataSet((("person", (("sex", "1"),), 1),))),
        Witness(DataSet(((UNIT, (("a", "0"), ("a", "1")), 1),)), data("000")),
        witness(rng),
        None,
        "a pair",
    ]
    first, second = spec(value + 5, full), spec(value, full)
    return Implication(first, second, no(rng.choice(bad), rng.choice(MECHANISMS), **junk(rng)))


@forges("mechanism")
def pairs_infinitely_far_apart(rng: Random) -> Forgery:
    """Under d_Ham nothing is promised between files of other sizes, and for neighbours only not at distance 2."""
    value = amount(rng)
    more = Witness(data("000"), data("000", "001"))
    two = Witness(data("000", "111"), data("001", "110"))
    kept = (Margin(UNIT, ("a", "b")), Margin(UNIT, ("z",)))  # two records exchange z; none changes alone
    cases = [
        (
            spec(value + 5, TOTAL, AB, on=PLAIN),
            spec(value, AB, on=PLAIN),
            Witness(data("00", names="ab"), data("00", "01", names="ab")),
        ),
        (spec(value), spec(value), more),
        (spec(value + 5, *kept, unit=Neighbours(HAM)), spec(value, *kept, unit=Neighbours(HAM)), two),
        (spec(value, A, unit=SYM), spec(value, A, unit=SYM), more),
    ]
    first, second, pair = rng.choice(cases)
    return Implication(first, second, no(pair, rng.choice(MECHANISMS), **junk(rng)))


@forges("mechanism")
def distances_that_are_not_known(rng: Random) -> Forgery:
    """A move is one change (free) or two (kept): ε per free move gives ε per kept change. So do copies."""
    value = amount(rng)
    homes = Domain(
        name="homes",
        record_types=(
            RecordType(name=UNIT, variables=variables("block")),
            RecordType(name="person", variables=variables("block", "sex")),
        ),
        spine=("block",),
    )

    def person(block: str) -> DataSet:
        return DataSet.of("person", [({"block": block, "sex": "0"}, 1)])

    moved = Witness(person("0"), person("1"))
    first = spec(value * Fraction(3, 2), on=homes, unit=Hamming("person", link="free"), output=linear(rng))
    second = replace(first, input_premetric=Hamming("person"), budget=Budget.of(value * Fraction(3, 2)))
    # by sex everything is fixed: all that is left are moves, one change each where they are free and two where not
    fixed = Multiverse.of(Margin("person", ("sex",)))
    third = replace(first, multiverse=fixed, budget=Budget.of(value))
    fourth = replace(second, multiverse=fixed, budget=Budget.of(value * Fraction(rng.randint(50, 99), 100)))
    cases = [
        (
            replace(first, output_premetric=Multiplicative()),
            spec(
                Budget.sqrt(value * value * Fraction(9, 4) / 2),
                on=homes,
                unit=Hamming("person"),
                output=NormalizedRenyi(),
            ),
            moved,
        ),
        (first, second, moved),
        (third, fourth, moved),
        (third, fourth, moved),
    ]
    one, other, pair = rng.choice(cases)
    mechanism = "gaussian" if isinstance(one.output_premetric, NormalizedRenyi) else "randomised response"
    return Implication(one, other, no(pair, rng.choice([mechanism, *MECHANISMS[:4]])))


@forges("mechanism")
def parts_that_do_not_refute(rng: Random) -> Forgery:
    """Each part and their sum are within the second."""
    kept, output, values = kept_tables(rng), linear(rng), [amount(rng) for _ in range(2)]
    first = spec(values[0], *kept, output=output) + spec(values[1], *kept, output=output)
    second = spec(sum(values), *kept, output=output)
    place = rng.choice([0, 1, 2, -1, -2, 7, "0", None, True])
    return Implication(first, second, no(CHANGED, rng.choice(MECHANISMS), part=place))


@forges("mechanism")
def a_part_that_differs(rng: Random) -> Forgery:
    """The part's budget is one of its own universe, and 0 in that of the pair; the second loses as much as it states."""
    value = amount(rng)
    varying = BudgetFunction(words="0 in small universes", least=Budget.zero(), most=Budget.of(value + 5))
    first = composed(
        part(value + 5, Multiplicative(), varies=varying),
        part(0, Multiplicative()),
        budget=Budget.of(value + 5),
        varies=replace(varying),
    )
    return Implication(first, spec(value), no(CHANGED, rng.choice(MECHANISMS), part=rng.choice([0, 1])))


@forges("mechanism")
def levels_that_stand_in_no_area(rng: Random) -> Forgery:
    """Which tract lies in which county is not listed: the pair may be no data set of the domain."""
    tracts = [("A", "1"), ("B", "2"), ("A", "3")]
    one, other = rng.sample(tracts, 2)
    sides = [DataSet.of(UNIT, [({"county": c, "tract": t, "z": "0"}, 1)]) for c, t in (one, other)]
    first, second = spec(amount(rng) + 5, on=AREAS), spec(5, on=AREAS)
    kept = (Margin(UNIT, ("z",)),)
    first, second = (replace(s, multiverse=Multiverse.of(*kept)) for s in (first, second))
    return Implication(first, second, no(Witness(sides[0], sides[1]), "randomised response"))


@forges("mechanism")
def the_realised_universe_by_a_pair(rng: Random) -> Forgery:
    """Where the budget was taken it may be sharper than the law; a pair there says nothing by the law."""
    b = 2
    first = swap("1/20", b, budget=Fraction(1, 100))
    second = spec(Fraction(1, 50), A, B, on=PLAIN)
    pair = Witness(data("00", "11", names="ab"), data("01", "10", names="ab"))
    if rng.random() < 0.5:
        second = swap("1/20", 4, budget=Budget.of(50))
        first = spec(20, A, B, on=PLAIN)
        records = ["00", "11", "00", "00"]
        pair = Witness(data(*records, names="ab"), data("01", "10", "00", "00", names="ab"))
    return Implication(first, second, no(pair, "randomised response"))


@forges("mechanism")
def distances_of_somebody_else(rng: Random) -> Forgery:
    """Nothing says which data sets are at finite distance."""
    value, kept = amount(rng), (AB,)
    cases = [
        (spec(value, *kept, output=NormalizedRenyi()), spec(value + 9, *kept, unit=Elsewhere()), "gaussian"),
        (spec(value, *kept, output=NormalizedRenyi(), unit=Elsewhere()), spec(value + 9, *kept), "gaussian"),
        (spec(value + 9, *kept, unit=Halved(UNIT)), spec(value, *kept), "randomised response"),
        (spec(value + 9, *kept), spec(value, *kept, unit=Halved(UNIT)), "randomised response"),
    ]
    first, second, mechanism = rng.choice(cases)
    return Implication(first, second, no(CHANGED, mechanism))


@forges("mechanism")
def measures_of_somebody_else(rng: Random) -> Forgery:
    """Nothing says which mechanisms keep the first promise, or break the second."""
    value, kept = amount(rng), (AB,)
    cases = [
        (spec(value, *kept, output=Bounded()), spec(value + 9, *kept), "gaussian"),
        (spec(value, *kept, output=NormalizedRenyi()), spec(value + 9, *kept, output=Lenient()), "gaussian"),
        (spec(value + 9, *kept, output=NOTHING_KNOWN), spec(value, *kept, output=NOTHING_KNOWN), "gaussian"),
    ]
    first, second, mechanism = rng.choice(cases)
    return Implication(first, second, no(CHANGED, mechanism))


@forges("mechanism")
def a_gaussian_of_nothing(rng: Random) -> Forgery:
    """With a budget of 0 the output does not depend on the data."""
    kept = kept_tables(rng)
    first = spec(0, *kept, output=linear(rng))
    second = spec(amount(rng), *kept, output=premetric(rng))
    if rng.random() < 0.5:
        first, second = spec(0, *kept, output=NormalizedRenyi()), spec(amount(rng), *kept)
    pair = Witness(data("000"), data("001"))
    return Implication(first, second, no(pair, rng.choice(["gaussian", *MECHANISMS])))


@forges("mechanism")
def a_real_pair_under_no_rule(rng: Random) -> Forgery:
    """The pair refutes, and the step names no rule that says so."""
    first, second, _ = larger(rng)
    first, second = (replace(s, multiverse=Multiverse.none()) for s in (first, second))
    rule = rng.choice(["pair", "refuted", "budget", "", "singletons"])
    proof = step(rule, witness=CHANGED, mechanism="randomised response")
    return Implication(first, second, Verdict.no("forged", proof))


@forges("publish")
def a_promise_that_nothing_breaks(rng: Random) -> Forgery:
    """The second budget is infinite, or its measure may allow that two data sets are told apart."""
    cases = [
        spec(Budget.infinite()),
        spec(amount(rng), output=NOTHING_KNOWN),
        spec(amount(rng), unit=Elsewhere()),
    ]
    pair = Witness(data("000"), data("100"))
    return Implication(spec(amount(rng), A), rng.choice(cases), no(pair, "publish", **_less(junk(rng))))


@forges("publish")
def a_table_that_the_second_fixes(rng: Random) -> Forgery:
    """All that the first keeps is kept by the second."""
    kept = kept_tables(rng)
    more = rng.choice([(), (Margin(UNIT, ("a",), {"b": ["1"]}),)])
    value = amount(rng)
    first, second = spec(value, *kept), spec(value + 1, *kept, *more)
    pair = rng.choice([CHANGED, witness(rng), Witness(data("000"), data("000", "001"))])
    return Implication(first, second, no(pair, "publish", **junk(rng)))


@forges("publish")
def a_number_that_may_not_be_published(rng: Random) -> Forgery:
    """In the joint file vacant homes count for d_Ham(person), so it does not fix the number of persons alone."""
    value = amount(rng)
    people = [DataSet.of("person", [({"sex": "0"}, n)]) for n in (1, 2)]
    first = spec(value, on=LINKED, unit=Hamming("person"))
    second = spec(2 * value, on=LINKED, unit=SymmetricDifference("person"))
    pair = Witness(people[0], people[1])
    if rng.random() < 0.5:  # where δ_k reaches 1 nothing is promised
        first = spec(value, TOTAL, unit=SYM)
        second = spec(9, unit=SYM, output=Approximate("1/2"))
        pair = Witness(data("000"), data("000", "001", "010"))
    return Implication(first, second, no(pair, "publish"))


@forges("realised universe")
def another_universe(rng: Random) -> Forgery:
    """Taken at other universes, in one data set, in other units, under other invariants, or not larger."""
    full = (A, B, AB)
    cases = [
        (swap("1/2", 100), swap("1/20", 2)),
        (spec(60, A, B, on=PLAIN), swap("1/20", kept=full)),  # every universe of the second is one data set
        (spec(2, AB, on=PLAIN), spec(1, AB, on=PLAIN)),
        (spec(1, A, B, on=PLAIN), swap("1/20", 0, budget=0)),
        (spec(1, A, on=PLAIN), spec(Fraction(1, 2), AB, on=PLAIN)),
        (spec(60, *full, on=PLAIN), swap("1/20", kept=full)),  # every universe is one data set
        (
            spec(2, A, B, on=PLAIN, output=Approximate("9/10")),
            swap("1/2", budget=1, output=Approximate("9/10")),
        ),
        (spec(60, A, B, on=PLAIN, unit=Neighbours(HAM)), swap("1/20", unit=Neighbours(HAM))),
        (spec(1, A, B, on=PLAIN), swap("1/20", 500)),
        (spec(60, A, B, on=PLAIN, unit=HAM), swap("1/20", unit=SYM)),
        (
            spec(1, A, B, on=PLAIN),
            spec(2, A, B, on=PLAIN, varies=bounded(rng, Fraction(1), Budget.infinite())),
        ),
        (swap("1/20", 500, realised=""), swap("1/20", 500, realised="", budget=1)),
        (spec(9, A, B, on=PLAIN), swap("1/20", None, budget=1)),
        (spec(60, A, B, AtLeast(AB, 1), on=PLAIN), swap("1/20", kept=(A, B, AtLeast(AB, 1)))),
        (spec(60, A, B, Custom("all"), on=PLAIN), swap("1/20", kept=(A, B, Custom("all")))),
        (
            spec(60, A, B, on=domain("a", "b", constraints=(Constraint(words="a = b"),))),
            swap("1/20", on=domain("a", "b", constraints=(Constraint(words="a = b"),))),
        ),
        (
            spec(
                60, A, B, on=domain("a", "b", constraints=(Constraint(words="a = b", variables=("a", "b")),))
            ),
            swap("1/20", on=domain("a", "b", constraints=(Constraint(words="a = b", variables=("a", "b")),))),
        ),
    ]
    first, second = rng.choice(cases)
    return Implication(first, second, Verdict.no("forged", step("realised universe", **junk(rng))))


@forges("pair")
def a_pair_that_shows_nothing(rng: Random) -> Forgery:
    """The wanted table is determined, by rank, so no pair differs in it alone."""
    names = ("a", "b", "z")
    records = [*product(BITS, repeat=3)]
    while True:
        given, wanted = [tables(rng, names) for _ in range(rng.randint(1, 3))], tables(rng, names)
        if determines(given, wanted, names, records):
            break
    pair = rng.choice([witness(rng), CHANGED, Witness(data("000"), data("002")), None])
    proof = step(rng.choice(["pair", "pair", "kept", "mechanism"]), witness=pair, wanted=margin(wanted))
    if rng.random() < 0.3:
        proof = step("every map", *([proof] * rng.randint(0, 2)))
    kept = Multiverse.of(*map(margin, given))
    return Refinement(kept, Multiverse.of(margin(wanted)), FREE, Verdict.no("forged", proof))


@forges("pair")
def a_real_pair_under_no_rule_of_pairs(rng: Random) -> Forgery:
    """The pair differs in z, and the step names no rule that says so."""
    wanted = Margin(UNIT, ("z",))
    proof = step(rng.choice(["kept", "mechanism", "", "pairs", "all of"]), witness=CHANGED, wanted=wanted)
    return Refinement(Multiverse.of(A), Multiverse.of(wanted), FREE, Verdict.no("forged", proof))


@forges("pair")
def a_table_that_follows_in_one_map(rng: Random) -> Forgery:
    """Tracts 1 and 2 together are county A in one of the six ways: there the table follows, and a no is false."""
    have, want = Margin(UNIT, (), {"tract": ["1", "2"]}), Margin(UNIT, (), {"county": ["A"]})
    sides = [
        DataSet.of(UNIT, [({"county": c, "tract": t, "z": "0"}, 1)]) for c, t in (("B", "2"), ("A", "1"))
    ]
    pair = Witness(*(sides if rng.random() < 0.5 else sides[::-1]))
    proof = step("pair", witness=pair, wanted=want)
    if rng.random() < 0.7:
        axes = [(Axis(("county", "tract"), _way(w)),) for w in MAPS]
        if rng.random() < 0.5:  # six relations that hold both records and are no maps
            rows, more = (("B", "2"), ("A", "1")), [*product("AB", "3"), ("A", "2")]
            tangled = [chosen for size in range(3) for chosen in combinations(more, size)][:6]
            axes = [(Axis(("county", "tract"), (*rows, *chosen)),) for chosen in tangled]
        proof = step("every map", *(step("pair", witness=pair, wanted=want, axes=a) for a in axes))
    return Refinement(Multiverse.of(have), Multiverse.of(want), AREAS, Verdict.no("forged", proof))


@forges("pair")
def a_pair_in_one_map_only(rng: Random) -> Forgery:
    """Tracts 1, 2 and 3 make up both counties: which ones county A has is not listed, and a pair needs one way."""
    every = Margin(UNIT, ("tract",))
    wanted = Margin(UNIT, ("county",))
    way = rng.choice(MAPS)
    one = DataSet.of(UNIT, [({"county": way[0], "tract": "1", "z": "0"}, 1)])
    other = DataSet.of(UNIT, [({"county": "B" if way[0] == "A" else "A", "tract": "1", "z": "0"}, 1)])
    proof = step("pair", witness=Witness(one, other), wanted=wanted)
    if rng.random() < 0.6:
        axes = [(Axis(("county", "tract"), _way(w)),) for w in MAPS]
        proof = step(
            "every map", *(step("pair", witness=Witness(one, other), wanted=wanted, axes=a) for a in axes)
        )
    return Refinement(Multiverse.of(every), Multiverse.of(wanted), AREAS, Verdict.no("forged", proof))
