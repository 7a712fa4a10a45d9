"""The suite can fail: each mutant breaks one clause of the contract and is caught by the test of that clause."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from contract import test_contract as suite
from contract.registry import example
from stirred.errors import DataError
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping
from stirred.spec import Budget

own = example("own_mechanism")
_counter = itertools.count()


def swapped() -> PermutationSwapping:
    return PermutationSwapping(match=["state", "size"], swap=["county", "tract"], rate="1/2")


class Mutant(own.NoisyCounts):  # type: ignore[misc]
    """A mechanism with one fault."""

    fault: ClassVar[str] = ""

    def specification(self, census: Any, *, engine: Any = None) -> Any:
        spec = own.NoisyCounts.specification(self, census)
        if self.fault == "order":  # the promise reads the file instead of the invariants
            first = int(census.table("household")["hid"][0].as_py())
            return replace(spec, budget=spec.budget + Budget.of(first))
        if self.fault == "unproved":
            return replace(spec, evidence=replace(spec.evidence, status="estimated"))
        return spec

    def release(self, census: Any, *, key: Any, **more: Any) -> Release:
        release = own.NoisyCounts.release(self, census, key=key, **more)
        if self.fault == "late":  # the promise changes after the run
            return replace(release, specification=replace(release.specification, budget=Budget.of(9)))
        if self.fault == "unkeyed":
            table = pa.table({"draw": [next(_counter)]})
            return replace(release, tables={**release.tables, "more": table})
        if self.fault == "constant":
            return replace(release, tables={})
        if self.fault == "private":
            return replace(release, private=True)
        if self.fault == "leak":
            raise DataError(f"cannot tabulate {census.table('household')['tenure'][0].as_py()}")
        if self.fault == "moved":  # microdata whose counts are not those of the census
            household = swapped().release(census, key=key).microdata["household"].slice(1)
            return replace(
                release, microdata={"household": household}, specification=swapped().specification(census)
            )
        return release


def make_mutant(fault: str = "") -> Mutant:
    """Return the mechanism with this fault; settings are declared in its Config, so the fault is not one of them."""
    made: Mutant = type("Mutant", (Mutant,), {"fault": fault})()
    return made


class Released:
    """The release that the suite asks for by name, made when it is asked for."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def getfixturevalue(self, _: str) -> Release:
        return self.mutant.release(ordinary, key=suite.KEY)


ordinary = suite.census(120)
CLAUSES: dict[str, Callable[[Any, Any], None]] = {
    "order": lambda mutant, _: suite.test_its_specification_is_the_same_for_every_census_of_the_universe(
        mutant
    ),
    "unproved": lambda mutant, _: suite.test_states_its_specification_before_it_runs(
        mutant, ordinary, Released(mutant)
    ),
    "late": lambda mutant, _: suite.test_states_its_specification_before_it_runs(
        mutant, ordinary, Released(mutant)
    ),
    "unkeyed": lambda mutant, _: suite.test_same_key_same_bytes(
        mutant.release(ordinary, key=suite.KEY), mutant, ordinary
    ),
    "constant": lambda mutant, _: suite.test_another_key_another_release(
        mutant, mutant.release(ordinary, key=suite.KEY)
    ),
    "private": lambda mutant, _: suite.test_a_test_key_marks_the_release_as_not_private(
        mutant, mutant.release(ordinary, key=suite.KEY)
    ),
    "leak": lambda mutant, log: suite.test_errors_and_logs_show_no_record(mutant, log),
    "moved": lambda mutant, _: suite.test_keeps_its_invariants(
        mutant.release(ordinary, key=suite.KEY), ordinary
    ),
}


@pytest.mark.parametrize("fault", CLAUSES)
def test_each_fault_is_caught(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AssertionError):
        CLAUSES[fault](make_mutant(fault), caplog)


@pytest.mark.parametrize("fault", CLAUSES)
def test_without_its_fault_each_clause_holds(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    CLAUSES[fault](make_mutant(), caplog)
