"""Audit a mechanism: compare what it promises with what it does, on invented records."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from stirred.assess.audit.datasets import choose_records, invent_census, isolate_records
from stirred.assess.audit.noise import audit_noise
from stirred.assess.audit.ratio import audit_ratio
from stirred.assess.audit.result import AuditResult, Part, decide
from stirred.assess.audit.sampling import Clock
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress, silent
from stirred.errors import InputError, StirredError
from stirred.mechanisms.base import Mechanism
from stirred.spec import Multiplicative
from stirred.spec.input_premetrics import Exchanges, Hamming

AUDIT_METHODS = ("exact", "sampled", "one-run")
INVENTED_HOUSEHOLDS = 300  # of the invented census on which noise is measured


def audit(
    mechanism: Mechanism,
    census: Census | None = None,
    *,
    runs: int = 20_000,
    confidence: float = 0.95,
    records: int = 4,
    seconds: float | None = 60.0,
    methods: Sequence[str] = AUDIT_METHODS,
    on_records: bool = False,
    seed: int = 1,
    progress: Progress | None = None,
) -> AuditResult:
    """Compare claimed and observed loss per unit of the input premetric; the verdict is pass, fail or unknown.

    Of ``census`` only the schema is used: ``records`` records of one universe are invented from it. With ``on_records`` the
    records of the census itself are audited; the worst pair is then not shown. ``runs`` releases are made of each data set
    of a pair; after ``seconds`` the audit ends with what it has. A correct mechanism fails with probability 1e-6 at most.
    """
    census = _check_settings(census, runs=runs, confidence=confidence, records=records, methods=methods)
    clock, say, key = Clock(seconds), progress or silent, Key.for_tests(seed).bind("audit")
    try:
        say("invent records", 0, 2)
        pool = census if on_records else invent_census(census, seed=seed)
        say("invent records", 1, 2)
        small = _choose_small(mechanism, pool, records=records, on_records=on_records)
        say("invent records", 2, 2)
        promise = mechanism.specification(small)
        found: AuditResult | None = None
        if isinstance(promise.output_premetric, Multiplicative) and isinstance(
            promise.input_premetric, Hamming | Exchanges
        ):
            found = audit_ratio(
                mechanism, small, promise, runs=runs, confidence=confidence, methods=methods, key=key,
                clock=clock, say=say, shown=not on_records,
            )  # fmt: skip
            left_out = _missing_types(pool, small) if found.data_sets else ()
            found = _note_left_out(found, left_out)
            if found.verdict != "unknown" or found.claimed == inf or left_out:
                return found
            if found.data_sets and ("sampled" not in methods or not mechanism.measured_noise(small, key=key)):
                return found
        if not on_records:
            pool = invent_census(census, households=INVENTED_HOUSEHOLDS, seed=seed)
        by_noise = audit_noise(
            mechanism,
            pool,
            runs=runs,
            confidence=confidence,
            key=key,
            clock=clock,
            say=say,
            shown=not on_records,
        )
        return by_noise if found is None or not found.data_sets else _join_results(found, by_noise)
    except StirredError as error:
        return AuditResult(
            mechanism=mechanism.name,
            unit="epsilon",
            claimed=None,
            observed_lower=None,
            exact=None,
            verdict="unknown",
            reason=f"the invented census could not be released: {error.args[0] if error.args else error}",
            confidence=confidence,
        )


def _choose_small(mechanism: Mechanism, pool: Census, *, records: int, on_records: bool) -> Census:
    """Return a few records of the pool that can be enumerated, or the pool where records are linked."""
    record = pool.schema.record(mechanism.record_type)
    if record.linked_to:
        return pool
    return (
        isolate_records(pool, record.name) if on_records else choose_records(mechanism, pool, records=records)
    )


def _note_left_out(found: AuditResult, left_out: tuple[str, ...]) -> AuditResult:
    """Add the linked records that the data sets lack to the result, as a part that was not tested."""
    if not left_out:
        return found
    needed: tuple[Part, ...] = (*found.needed, "linked records")
    verdict, reason = decide(found.tests, needed, inf if found.claimed is None else found.claimed)
    return replace(found, left_out=left_out, needed=needed, verdict=verdict, reason=reason)


def _join_results(found: AuditResult, by_noise: AuditResult) -> AuditResult:
    """Join the results of a small universe and of the noise of a larger census."""
    tests = (*found.tests, *by_noise.tests)
    claimed = inf if by_noise.claimed is None else by_noise.claimed
    # a small universe that could not decide leaves nothing open that the parts of noise do not cover
    judged = [test for test in found.tests if test.outcome != "unknown" or test.lower is not None]
    kept = [replace(test, part="sensitivity") if test.part == "loss" else test for test in judged]
    verdict, reason = decide([*kept, *by_noise.tests], by_noise.needed, claimed)
    lowers = [test.lower for test in tests if test.lower is not None]
    return replace(
        by_noise,
        tests=(*kept, *by_noise.tests),
        verdict=verdict,
        reason=reason,
        observed_lower=max(lowers) if lowers else None,
        data_sets=found.data_sets,
        runs=max(found.runs, by_noise.runs),
    )


def _missing_types(pool: Census, small: Census) -> tuple[str, ...]:
    """Return the record types of the schema that the audited data sets do not have."""
    return tuple(name for name in pool.schema.record_types if name not in small.schema.record_types)


def _check_settings(
    census: Census | None, *, runs: int, confidence: float, records: int, methods: Sequence[str]
) -> Census:
    """Check the settings of an audit and return its census."""
    if census is None:
        raise InputError(
            "an audit needs the schema of a census",
            why="its records are invented from it; no record is read",
            fix='audit(mechanism, st.read("census.toml"))',
        )
    if runs < 1 or not 0.5 <= confidence < 1 or not 2 <= records <= 6:
        raise InputError(
            "these settings make no audit",
            why="it needs at least one run, a confidence from 0.5 to below 1, and 2 to 6 records",
            fix="runs=20_000, confidence=0.95, records=4",
        )
    unknown = [name for name in methods if name not in AUDIT_METHODS]
    if unknown or not methods:
        raise InputError(
            f"there is no method {unknown[0]!r}" if unknown else "no method is named",
            why=f"the methods are {', '.join(AUDIT_METHODS)}",
            fix='methods=("exact", "sampled", "one-run")',
        )
    return census
