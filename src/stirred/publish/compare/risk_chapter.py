"""The chapter on risk of a packet's reports: the public part from the releases alone, the internal one beside the census."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.assess.attack.inference.majority import guess_by_area
from stirred.assess.uniqueness import MOST as ALONE
from stirred.assess.uniqueness import against, cells_of_one, questions, uniqueness
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.frames import collected, frame_of
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import joined, lazy, schema_of, taking_part
from stirred.publish.plan.description import Plan
from stirred.report import Section, risk
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.assess.attack.inference.published import BelievedTable
    from stirred.assess.universe.released import GivenAway

MOST = 2_000_000  # records whose swap is undone for the report, and whose area is guessed from
MOST_VARIABLES = 5  # of a table whose exact sums are looked for


def public_risk(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Mapping[str, tuple[Sequence[str], pa.Table]],
    engine: Engine,
    labels: Mapping[str, str],
) -> list[Section]:
    """Who stands alone, what exact numbers give away, what attacks find beside a guess; computed from the releases alone."""
    known = [replace(release, schema=schema) for release in releases]
    found = [one for release in known for one in uniqueness(release, engine)]
    section = risk.alone(
        found,
        cells_of_one(tables),
        limited=specification.budget.is_finite,
        labels=labels,
    )
    own = [
        (step.mechanism, release)
        for step, release in zip(plan.steps, known, strict=True)
        if step.source is None
    ]
    given = dict.fromkeys(one for mechanism, release in own for one in _given(mechanism, release))
    parts: list[Section | None] = [section, risk.given(tuple(given), labels)]
    parts += [_undone(mechanism, release) for mechanism, release in own]
    parts += [_guessed(mechanism, release, labels) for mechanism, release in own]
    parts.append(risk.noisy(_believed(plan, schema, tables)))
    parts.append(risk.left_out(_left_out(own)))
    return [one for one in parts if one is not None]


def internal_risk(truth: Census, releases: Sequence[Release], engine: Engine) -> list[Section]:
    """Who stood alone in the census, and is shown so."""
    known = [replace(release, schema=truth.schema) for release in releases]
    found = [one for release in known for one in against(uniqueness(release, engine), release, truth, engine)]
    section = risk.before_and_after(found)
    return [] if section is None else [section]


def _given(mechanism: Mechanism, release: Release) -> "tuple[GivenAway, ...]":
    from stirred.assess.universe.released import given_away  # loads numerical libraries

    tables = [release.tables[name] for name in mechanism.counted(release)]
    return given_away(release, tables=tables, record_type=mechanism.record_type, most=MOST)


def _undone(mechanism: Mechanism, release: Release) -> Section | None:
    """What the best undo finds, where the mechanism states the law by which records changed places."""
    if not 0 < _rows(release, mechanism.record_type) <= MOST:
        return None
    data = release.microdata[mechanism.record_type]
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
    return risk.undone(
        risk.Undone(
            record_type=mechanism.record_type,
            share=share,
            guess=found[IN_PLACE].baselines[0].value,
            best=best,
            sure=sure,
        )
    )


def _guessed(mechanism: Mechanism, release: Release, labels: Mapping[str, str]) -> Section | None:
    """What the area alone tells of released records, where no law says how they changed places."""
    types = [name for name in ("person", *sorted(release.microdata)) if name in release.microdata]
    if mechanism.exchange(release) is not None or not types:
        return None
    record_type = types[0]
    asked = questions(release, record_type)
    if _rows(release, record_type) > MOST or not asked or not asked[-1][1]:
        return None
    variables, area = asked[-1]
    records = joined(release, schema_of(release), record_type)
    found = [guess_by_area(records, area, name) for name in variables if name != area]
    return risk.majority(record_type, [one for one in found if one is not None], labels)


def _believed(
    plan: Plan, schema: Schema, tables: Mapping[str, tuple[Sequence[str], pa.Table]]
) -> "list[BelievedTable]":
    """What published tables with errors let anyone believe of their cells; exact sums of a table bound its cells."""
    from stirred.assess.attack.inference.published import believed_table  # loads numerical libraries

    stated = {table.name: table.record_type for table in plan.tables}
    found = []
    for name, (by, table) in tables.items():
        frame = frame_of(table)
        if "count" not in frame.columns or "weighted" in frame.columns:
            continue
        exact: list[pl.DataFrame] = []
        if len(plan.steps) == 1:  # of several releases it is not known here which one made a table
            mechanism = plan.steps[0].mechanism
            record_type = stated.get(name, mechanism.record_type)
            exact = [
                frame.group_by(list(part)).agg(pl.col("count").sum())
                for size in range(1, min(len(by), MOST_VARIABLES))
                for part in combinations(by, size)
                if record_type == mechanism.record_type and mechanism.keeps(part, schema)
            ]
        one = believed_table(name, frame, list(by), exact)
        if one is not None:
            found.append(one)
    return found


def _left_out(own: Sequence[tuple[Mechanism, Release]]) -> list[risk.LeftOut]:
    """What the limits of this chapter leave out, so that the report can say it."""
    found = []
    for mechanism, release in own:
        for record_type in sorted(release.microdata):
            rows = _rows(release, record_type)
            limits = [("alone", ALONE)] if rows > ALONE else []
            law = mechanism.exchange(release)
            if rows > MOST and law is not None and record_type == mechanism.record_type:
                limits.append(("undone", MOST))
            elif rows > MOST and law is None:
                limits.append(("majority", MOST))
            found += [
                risk.LeftOut(what=what, record_type=record_type, records=rows, most=most)
                for what, most in limits
            ]
    return found


def _rows(release: Release, record_type: str) -> int:
    data = release.microdata.get(record_type)
    if data is None:
        return 0
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
