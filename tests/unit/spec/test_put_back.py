"""Faults that the library once had, put back one at a time: the second oracle finds each.

Each fault has a case that shows it (`oracles.cases`, by kind and number): without the fault the case passes, with it
enumeration refutes what the library says. The cases were found by counting up from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from oracles.cases import run
from stirred.spec import Margin, Multiverse, Specification, input_premetrics, nearest, specification
from stirred.spec.card import words
from stirred.spec.invariants import Invariant
from stirred.spec.nearest import ask_own_tables
from stirred.spec.refinement import decide_determined
from stirred.spec.verdict import Derivation
from stirred.spec.verdicts import search
from stirred.spec.verdicts.checker import budgets, check, tables
from stirred.spec.verdicts.checker.tables import Given, check_determines_all
from stirred.spec.verdicts.search import Example

smallest_distance, different_pair, parts_rule = (
    nearest.smallest_distance,
    search.find_different_pair,
    budgets._check_parts,
)


def without_views(*asked: Any) -> Any:
    """The smallest change of anything that a codebook lists, whatever leaves."""
    return smallest_distance(*asked[:3])


def tables_of_the_unit_alone(
    domain: Any, multiverse: Any, unit: str, _: str, *, total: bool, custom: bool
) -> Any:
    del custom
    return ask_own_tables(domain, multiverse, unit, total=total)


def with_totals(multiverse: Multiverse, domain: Any, premetric: Any) -> Example:
    """Universes are single data sets where tables of each record type are fixed, with totals that nothing fixes."""
    kinds = domain.record_types
    totals = (
        {Margin(kind.name) for kind in kinds}
        if premetric.derive_multiverse() not in (None, Multiverse.none())
        else set()
    )
    given = tuple(multiverse & Multiverse(frozenset[Invariant](totals)))
    found = [decide_determined(given, Margin(kind.name, kind.names()), domain) for kind in kinds]
    if all(found):
        steps = tuple(verdict.derivation for verdict in found if verdict.derivation is not None)
        return Example(singletons=Derivation(rule="all of", claim="every table", premises=steps))
    return different_pair(multiverse, domain, premetric)


def singletons_with_totals(spec: Specification, step: Derivation) -> str:
    kinds = spec.domain.record_types
    wanted = [Margin(kind.name, kind.names()) for kind in kinds]
    totals = {Margin(kind.name) for kind in kinds} if budgets.list_fixed(spec) else set()
    return check_determines_all(step, Given(spec.multiverse.invariants | totals), wanted, spec.domain)


def parts_at_the_realised_universe(first: Specification, second: Specification, premises: Any = ()) -> str:
    parts = tuple(replace(part, varies=None) for part in first.statements)
    return parts_rule(replace(first, varies=None, parts=parts), replace(second, varies=None), premises)


def any_smallest_distance(facts: Any, name: str, default: int) -> int:
    del facts, name, default
    return 2


def realised_budgets(first: Specification, second: Specification) -> str:
    return "" if first.budget <= second.budget else "the first budget is larger"


def one_table(domain: Any, multiverse: Multiverse, premetric: Any) -> bool:
    """One table fixes all others, of whatever record type it is."""
    total = Margin(premetric.record_type)
    kept = [invariant for invariant in multiverse if isinstance(invariant, Margin)]
    return len(kept) == len(multiverse) and any(
        Multiverse.of(table, total).refines(multiverse, domain) for table in kept
    )


def nothing(*_: Any, **__: Any) -> Any:
    return None


def no_problem(*_: Any, **__: Any) -> str:
    return ""


def unscaled(budget: Any, delta: Fraction, factor: Any) -> Fraction:
    del budget, factor
    return delta


@dataclass(frozen=True)
class Fault:
    """What is put back, and the case that shows it."""

    kind: str
    case: int
    put_back: tuple[tuple[Any, str, Callable[..., Any]], ...]


FAULTS = {
    "a variable that does not leave decides the odds": Fault(
        "distance",
        7,
        ((nearest, "smallest_distance", without_views), (words, "smallest_distance", without_views)),
    ),
    "a variable that a swap drops decides its odds": Fault(
        "swap", 2, ((words, "smallest_distance", without_views),)
    ),
    "a person changes without its household": Fault(
        "distance", 8, ((nearest, "ask_joint_tables", tables_of_the_unit_alone),)
    ),
    "households become persons without their number": Fault(
        "restate", 4, ((input_premetrics, "_require_fixed_number", nothing),)
    ),
    "and so in sums": Fault("compose", 24, ((input_premetrics, "_require_fixed_number", nothing),)),
    "the checker converts households without their number": Fault(
        "forge", 52, ((budgets, "_numbers_needed", lambda *_, **__: ()),)
    ),
    "single data sets by totals that nothing fixes": Fault(
        "implies", 43, ((search, "find_different_pair", with_totals),)
    ),
    "equal by totals that nothing fixes": Fault(
        "compare", 14, ((search, "find_different_pair", with_totals),)
    ),
    "the checker takes totals to be fixed": Fault(
        "forge", 15, ((check, "_check_singletons", singletons_with_totals),)
    ),
    "parts whose budgets differ by universe": Fault(
        "forge", 3, ((budgets, "_check_parts", parts_at_the_realised_universe),)
    ),
    "neighbours reach every distance": Fault("forge", 92, ((budgets, "_connects", lambda *_: True),)),
    "the δ of parts in another unit": Fault("forge", 597, ((budgets, "scale_delta", unscaled),)),
    "a smallest distance that a derivation brings": Fault(
        "forge",
        419,
        ((budgets, "read_whole_number", any_smallest_distance), (budgets, "check_changes_alone", no_problem)),
    ),
    "laws known by bounds alone": Fault("forge", 3, ((budgets, "_check_bounds", realised_budgets),)),
    "areas that do not lie in each other": Fault("forge", 129, ((tables, "_no_nesting", no_problem),)),
    "a table of persons as a partition of households": Fault(
        "implies", 248, ((input_premetrics, "_is_one_partition", one_table),)
    ),
    "a move as one change": Fault("restate", 141, ((input_premetrics, "_moves", nothing),)),
}
CACHES = (nearest._find_smallest, specification._refines_cached)


def put_back(fault: Fault, patch: pytest.MonkeyPatch) -> None:
    for module, name, old in fault.put_back:
        assert hasattr(module, name)
        patch.setattr(module, name, old)
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_back_is_found(name: str) -> None:
    fault = FAULTS[name]
    asked = range(fault.case, fault.case + 1)
    assert not run(asked, (fault.kind,)).faults
    try:
        with pytest.MonkeyPatch.context() as patch:
            put_back(fault, patch)
            assert run(asked, (fault.kind,)).faults
    finally:
        for cached in CACHES:
            cached.cache_clear()
