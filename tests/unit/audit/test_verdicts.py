"""The verdicts on right and wrong mechanisms, many around OpenDP: none that is wrong passes, none that is right fails.

A right mechanism fails with probability 1e-6 at most. OpenDP draws from the operating system, so its cases differ from run
to run: bounds are taken at a confidence of 1 - 1e-7, and what is wrong is wrong by so much that a miss is as rare.
``PYTHONPATH=tests python tests/unit/audit/test_verdicts.py`` prints the table of docs/how-to/audit.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from planted import (
    CutTail,
    CyclicShuffle,
    GeometricCounts,
    LeakedPlace,
    NarrowNoise,
    NoRedraw,
    square,
)
from stirred import ExactMargins, GaussianTables
from stirred.assess.audit import AuditResult, AuditTest, audit
from stirred.assess.audit.result import decide
from stirred.census import Census
from stirred.frames import collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping
from third_party import PeerCounts, many

CONFIDENCE = 1 - 1e-7
SWAP: dict[str, Any] = {"swap": ["county"], "rate": "1/2"}


def _true_places(census: Census) -> dict[str, str]:
    rows = collect_frame(census.scan("household", ["tenure", "county"])).cast(str)  # type: ignore[arg-type]
    return dict(rows.select("tenure", "county").rows())


class OrderLeak(PermutationSwapping):
    """The right swap, with its rows in the order of their true places; a tenure is one household here."""

    def release(self, census: Census, **settings: Any) -> Release:
        made = PermutationSwapping.release(self, census, **settings)
        home = _true_places(census)
        table = made.to_arrow("household")
        rows = sorted(table.to_pylist(), key=lambda row: home.get(str(row["tenure"]), ""))
        return replace(made, microdata={"household": pa.Table.from_pylist(rows, schema=table.schema)})


class NotesLeak(PermutationSwapping):
    """The right swap, with a note about a true place."""

    def release(self, census: Census, **settings: Any) -> Release:
        made = PermutationSwapping.release(self, census, **settings)
        return replace(made, notes=(f"first: {sorted(_true_places(census).items())[0]}",))


class MetadataLeak(PermutationSwapping):
    """The right swap, with true places in the metadata of its file."""

    def release(self, census: Census, **settings: Any) -> Release:
        made = PermutationSwapping.release(self, census, **settings)
        told = {b"written": repr(sorted(_true_places(census).items())).encode()}
        return replace(
            made, microdata={"household": made.to_arrow("household").replace_schema_metadata(told)}
        )


@dataclass(frozen=True)
class Case:
    """A mechanism, and the verdict that it must have; of a fail also the part that shows it."""

    what: str
    mechanism: Mechanism
    census: Callable[[], Census]
    verdict: str
    part: str = ""
    runs: int = 2400
    # whether another test asks nearly the same in every run of the tests: test_planted_bugs.py with fewer runs, or the
    # case before it, which has the same fault
    elsewhere: bool = False


MARGINS: dict[str, Any] = {"rows": "county", "columns": "tenure", "rho_squared": "1/20"}
CASES = [
    Case("swap, right", PermutationSwapping(**SWAP), lambda: square(4), "pass", elsewhere=True),
    Case(
        "swap, one cycle instead of a derangement",
        CyclicShuffle(**SWAP),
        lambda: square(4),
        "fail",
        "loss",
        elsewhere=True,
    ),
    Case("swap, a lone selection is dropped", NoRedraw(**SWAP), lambda: square(4), "fail", "law", 4000, True),
    Case(
        "swap, the true place in one more column",
        LeakedPlace(**SWAP),
        lambda: square(4),
        "fail",
        "law",
        elsewhere=True,
    ),
    Case("swap, rows in the order of the true place", OrderLeak(**SWAP), lambda: square(4), "fail", "order"),
    Case("swap, a true place in the notes", NotesLeak(**SWAP), lambda: square(4), "fail", "texts"),
    Case(
        "swap, true places in the file's metadata",
        MetadataLeak(**SWAP),
        lambda: square(4),
        "fail",
        "texts",
        elsewhere=True,
    ),
    Case("geometric counts, right", GeometricCounts(), lambda: square(2), "pass", elsewhere=True),
    Case("geometric counts, tails cut", CutTail(), lambda: square(2), "fail", "law", elsewhere=True),
    Case("exact margins, right", ExactMargins(**MARGINS), many, "pass", elsewhere=True),
    Case("exact margins, half the variance", NarrowNoise(**MARGINS), many, "fail", "noise", elsewhere=True),
    Case(
        "Gaussian tables, right",
        GaussianTables(tables=[["tenure"]], rho_squared="1/20"),
        many,
        "pass",
        elsewhere=True,
    ),
    Case("OpenDP Gaussian, right", PeerCounts(), many, "pass", runs=6000),
    Case(
        "OpenDP Laplace, right",
        PeerCounts(law="geometric", scale=8),
        many,
        "pass",
        runs=6000,
        elsewhere=True,
    ),
    Case("OpenDP Gaussian, right, states no law", PeerCounts(states_law=False), many, "unknown"),
    Case("OpenDP Gaussian, half the scale", PeerCounts(fault="half the scale"), many, "fail", "noise"),
    Case(
        "OpenDP Laplace, half the scale",
        PeerCounts(law="geometric", scale=8, fault="half the scale"),
        many,
        "fail",
        "noise",
        elsewhere=True,
    ),
    Case(
        "OpenDP Gaussian, a quarter of the scale, states no law",
        PeerCounts(fault="a quarter of the scale", states_law=False),
        many,
        "fail",
        "sensitivity",
        16_000,
    ),
    Case(
        "OpenDP Gaussian, every record counted three times",
        PeerCounts(fault="counts thrice"),
        many,
        "fail",
        "noise",
        elsewhere=True,
    ),
    Case(
        "the same, states no law",
        PeerCounts(fault="counts thrice", states_law=False),
        many,
        "fail",
        "sensitivity",
        32_000,
    ),
    Case(
        "OpenDP Gaussian, a tenth of the loss claimed",
        PeerCounts(fault="claims a tenth"),
        many,
        "fail",
        "sensitivity",
    ),
    Case(
        "OpenDP Gaussian, one noise for all counts",
        PeerCounts(fault="one noise for all"),
        many,
        "fail",
        "noise",
    ),
    Case(
        "noise that ignores the key", PeerCounts(fault="ignores the key"), many, "fail", "sensitivity", 8000
    ),
    Case("OpenDP Gaussian, drawn again on a retry", PeerCounts(fault="draws again"), many, "fail", "repeat"),
    Case(
        "OpenDP Gaussian, one more table, exact",
        PeerCounts(fault="one more table, exact"),
        many,
        "fail",
        "sensitivity",
        8000,
    ),
    Case(
        "OpenDP Gaussian, in the order of the true counts",
        PeerCounts(fault="order of the true counts"),
        many,
        "fail",
        "order",
        8000,
    ),
    Case("OpenDP Gaussian, a true fact in a note", PeerCounts(fault="a note"), many, "fail", "texts", 8000),
]


def audited(case: Case) -> AuditResult:
    """The audit of a case on its records; without a limit of time, so that nothing depends on the machine."""
    return audit(
        case.mechanism, case.census(), runs=case.runs, on_records=True, seconds=None, confidence=CONFIDENCE
    )


MANY_RUNS = 8000  # cases with so many are slow


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.what, marks=[pytest.mark.slow] if case.elsewhere or case.runs >= MANY_RUNS else []
        )
        for case in CASES
    ],
)
def test_wrong_mechanisms_fail_and_right_ones_do_not(case: Case) -> None:
    """Quick: here or in test_planted_bugs.py a right mechanism of each kind, and for every part of an audit a wrong one."""
    found = audited(case)
    assert found.verdict == case.verdict, found.reason
    if case.part:
        assert found.parts[case.part] == "fail", found.parts
    if case.verdict == "pass":
        assert set(found.parts.values()) == {"pass"}
        assert found.observed_lower is None or found.observed_lower <= (found.claimed or 0.0)
    if case.verdict == "unknown":
        assert "noise: not tested" in found.reason


def test_no_pass_beside_a_lower_bound_above_the_claim() -> None:
    """Whatever the tests say: beyond chance it is a fail, else unknown; and no result can say otherwise."""
    passes = AuditTest(name="exact", outcome="pass", finding="within the claim")
    above = AuditTest(name="pair", outcome="pass", finding="…", lower=1.2, sure=1.1)
    assert decide([passes, above], ("loss",), 1.0)[0] == "fail"
    assert decide([passes, replace(above, sure=0.9)], ("loss",), 1.0)[0] == "unknown"
    assert decide([passes, replace(above, lower=0.9, sure=0.8)], ("loss",), 1.0)[0] == "pass"
    with pytest.raises(AssertionError, match="above the claim"):
        AuditResult(
            mechanism="m", unit="epsilon", claimed=1.0, observed_lower=1.2, exact=None, verdict="pass", reason=""
        )  # fmt: skip


def test_a_part_that_was_not_tested_is_named() -> None:
    noise = AuditTest(name="noise of q", part="noise", outcome="pass", finding="…")
    verdict, reason = decide([noise], ("noise", "sensitivity"), 1.0)
    assert (verdict, reason) == ("unknown", "noise: pass; sensitivity: not tested")


if __name__ == "__main__":
    print("| mechanism | verdict | by |\n|---|---|---|")
    for one in CASES:
        result = audited(one)
        by = [part for part, outcome in result.parts.items() if outcome == "fail"]
        if result.verdict == "unknown":
            by = [f"{part}: {outcome}" for part, outcome in result.parts.items() if outcome != "pass"]
        print(f"| {one.what} | `{result.verdict}` | {', '.join(by) or 'all parts'} |", flush=True)
