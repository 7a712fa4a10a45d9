"""Audit a mechanism: compare what it promises with what it does, on invented records."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from stirred.assess.audit.datasets import alone
from stirred.assess.audit.invented import few_records, invented_census
from stirred.assess.audit.noise import audit_noise
from stirred.assess.audit.ratio import audit_ratio
from stirred.assess.audit.result import AuditResult
from stirred.assess.audit.sampling import Clock
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress, silent
from stirred.errors import InputError, StirredError
from stirred.mechanisms.base import Mechanism
from stirred.spec import Multiplicative
from stirred.spec.premetrics import Hamming

METHODS = ("exact", "sampled", "one-run")
HOUSEHOLDS = 300  # of the invented census on which noise is measured


def audit(
    mechanism: Mechanism,
    census: Census | None = None,
    *,
    runs: int = 20_000,
    confidence: float = 0.95,
    records: int = 4,
    seconds: float | None = 60.0,
    methods: Sequence[str] = METHODS,
    on_records: bool = False,
    seed: int = 1,
    progress: Progress | None = None,
) -> AuditResult:
    """Claimed and observed loss per unit of the input premetric, with a verdict: pass, fail or unknown.

    Of ``census`` only the schema is used: ``records`` records of one universe are invented from it. With ``on_records`` the
    records of the census itself are audited; the worst pair is then not shown. ``runs`` releases are made of each data set
    of a pair; after ``seconds`` the audit ends with what it has. A correct mechanism fails with probability 1e-6 at most.
    """
    census = _required(census, runs=runs, confidence=confidence, records=records, methods=methods)
    clock, say, key = Clock(seconds), progress or silent, Key.for_tests(seed).bind("audit")
    try:
        say("invent records", 0, 2)
        pool = census if on_records else invented_census(census, seed=seed)
        say("invent records", 1, 2)
        small = _small(mechanism, pool, records=records, on_records=on_records)
        say("invent records", 2, 2)
        promise = mechanism.specification(small)
        if isinstance(promise.output_premetric, Multiplicative) and isinstance(
            promise.input_premetric, Hamming
        ):
            found = audit_ratio(
                mechanism, small, promise, runs=runs, confidence=confidence, methods=methods, key=key,
                clock=clock, say=say, shown=not on_records,
            )  # fmt: skip
            if found.data_sets or found.claimed == inf:
                return replace(found, left_out=_left_out(pool, small) if found.data_sets else ())
        if not on_records:
            pool = invented_census(census, households=HOUSEHOLDS, seed=seed)
        return audit_noise(
            mechanism,
            pool,
            runs=runs,
            confidence=confidence,
            key=key,
            clock=clock,
            say=say,
            shown=not on_records,
        )
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


def _small(mechanism: Mechanism, pool: Census, *, records: int, on_records: bool) -> Census:
    """A few records of the pool that can be enumerated; the pool itself where its records are linked to others."""
    record = pool.schema.record(mechanism.record_type)
    if record.linked_to:
        return pool
    return alone(pool, record.name) if on_records else few_records(mechanism, pool, records=records)


def _left_out(pool: Census, small: Census) -> tuple[str, ...]:
    """The record types of the schema that the audited data sets do not have."""
    return tuple(name for name in pool.schema.record_types if name not in small.schema.record_types)


def _required(
    census: Census | None, *, runs: int, confidence: float, records: int, methods: Sequence[str]
) -> Census:
    """The census, if these settings make an audit."""
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
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise InputError(
            f"there is no method {unknown[0]!r}" if unknown else "no method is named",
            why=f"the methods are {', '.join(METHODS)}",
            fix='methods=("exact", "sampled", "one-run")',
        )
    return census
