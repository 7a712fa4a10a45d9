"""The chapter on risk of a packet's reports: the public part from the releases alone, the internal one beside the census."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, fsum, lgamma

import polars as pl
import pyarrow as pa

from stirred.assess.uniqueness import against, cells_of_one, uniqueness
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.frames import collected
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.participation import Exchange
from stirred.mechanisms.released import lazy, schema_of, taking_part
from stirred.publish.plan.description import Plan
from stirred.report import Section, risk
from stirred.spec import Specification

MOST = 2_000_000  # records whose swap is undone for the report


def public_risk(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Mapping[str, tuple[Sequence[str], pa.Table]],
    engine: Engine,
    labels: Mapping[str, str],
) -> list[Section]:
    """Who stands alone in what is published, and what undoing a swap finds; computed from the releases alone."""
    known = [replace(release, schema=schema) for release in releases]
    found = [one for release in known for one in uniqueness(release, engine)]
    section = risk.alone(
        found,
        cells_of_one(tables),
        limited=specification.budget.is_finite,
        labels=labels,
    )
    undone = [
        _undone(step.mechanism, release)
        for step, release in zip(plan.steps, known, strict=True)
        if step.source is None
    ]
    return [one for one in (section, *undone) if one is not None]


def internal_risk(truth: Census, releases: Sequence[Release], engine: Engine) -> list[Section]:
    """Who stood alone in the census, and is shown so."""
    known = [replace(release, schema=truth.schema) for release in releases]
    found = [one for release in known for one in against(uniqueness(release, engine), release, truth, engine)]
    section = risk.before_and_after(found)
    return [] if section is None else [section]


def _undone(mechanism: Mechanism, release: Release) -> Section | None:
    """What the best undo finds, where the mechanism states the law by which records changed places."""
    data = release.microdata.get(mechanism.record_type)
    if data is None or (data.num_rows if isinstance(data, pa.Table) else data.count_rows()) > MOST:
        return None
    taking = taking_part(schema_of(release), mechanism.record_type, lazy(data))
    law = mechanism.exchange(release)
    if law is None or collected(taking.select(pl.len())).item() < 2:
        return None
    # imported here: most runs have no swap to undo, and attacks load solvers
    from stirred.assess.attack.inference.inversion import BEST_GUESS, CERTAIN, IN_PLACE, inversion

    found = {one.name: one for one in inversion(release, mechanism=mechanism).measures}
    shares = [found[name].value for name in (IN_PLACE, BEST_GUESS, CERTAIN)]
    if any(share is None for share in shares):
        return None
    share, best, sure = (float(one or 0.0) for one in shares)
    places, single, records = _open_places(taking, law)
    return risk.undone(
        risk.Undone(
            record_type=mechanism.record_type,
            share=share,
            guess=found[IN_PLACE].baselines[0].value,
            best=best,
            sure=sure,
            places=places,
            single=single,
            records=records,
        )
    )


def _open_places(records: pl.LazyFrame, law: Exchange) -> tuple[float, int, int]:
    r"""How many places the exact tables leave open for a record, $(\prod_m n_m! / \prod_{ms} n_{ms}!)^{1/n}$.

    Also for how many records they leave one, and how many records there are.
    """
    one = pl.lit(0).alias("stratum")  # without match variables all records are one stratum
    cells = records.with_columns(one).group_by(["stratum", *law.match, *law.moving]).agg(pl.len().alias("n"))
    strata = cells.group_by(["stratum", *law.match]).agg(pl.col("n"))
    ways, single, whole = 0.0, 0, 0
    for counts in collected(strata.select("n").sort(pl.col("n").list.sum(), pl.col("n").list.max()))["n"]:
        many = sorted(int(count) for count in counts)
        whole += sum(many)
        single += sum(many) if len(many) == 1 else 0
        ways += lgamma(sum(many) + 1) - fsum(lgamma(count + 1) for count in many)
    return exp(ways / whole), single, whole
