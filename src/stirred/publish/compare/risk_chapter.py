"""The chapter on risk of a packet's reports: the public part from the releases alone, the internal one beside the census."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.assess.attack.inference.majority import guess_by_area
from stirred.assess.uniqueness import MAX_RECORDS as ALONE
from stirred.assess.uniqueness import (
    choose_questions,
    compare_with_census,
    count_cells_of_one,
    measure_uniqueness,
)
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import filter_participants, join_household, require_schema, scan_records
from stirred.publish.plan.description import Plan
from stirred.report import Section, risk
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.assess.attack.inference.published import InferredTable
    from stirred.assess.universe.released import Disclosure

MAX_RECORDS_UNDONE = 2_000_000  # records whose swap is undone for the report, and whose area is guessed from
MAX_TABLE_VARIABLES = 5  # of a table whose exact sums are looked for


def public_risk(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Mapping[str, tuple[Sequence[str], pa.Table]],
    engine: Engine,
    labels: Mapping[str, str],
) -> list[Section]:
    """Return the public sections on uniqueness, exact numbers and attacks, from the releases alone."""
    known = [replace(release, schema=schema) for release in releases]
    found = [one for release in known for one in measure_uniqueness(release, engine)]
    section = risk.write_unique(
        found,
        count_cells_of_one(tables),
        limited=specification.budget.is_finite,
        labels=labels,
    )
    own = [
        (step.mechanism, release)
        for step, release in zip(plan.steps, known, strict=True)
        if step.source is None
    ]
    given = dict.fromkeys(one for mechanism, release in own for one in _find_given_away(mechanism, release))
    parts: list[Section | None] = [section, risk.write_disclosure(tuple(given), labels)]
    parts += [_describe_undo(mechanism, release) for mechanism, release in own]
    parts += [_describe_guess(mechanism, release, labels) for mechanism, release in own]
    parts.append(risk.write_noisy_tables(_derive_beliefs(plan, schema, tables)))
    parts.append(risk.write_skipped(_list_omissions(own)))
    return [one for one in parts if one is not None]


def internal_risk(truth: Census, releases: Sequence[Release], engine: Engine) -> list[Section]:
    """Return the section that compares uniqueness in the census and in the release; none if empty."""
    known = [replace(release, schema=truth.schema) for release in releases]
    found = [
        one
        for release in known
        for one in compare_with_census(measure_uniqueness(release, engine), release, truth, engine)
    ]
    section = risk.write_before_and_after(found)
    return [] if section is None else [section]


def _find_given_away(mechanism: Mechanism, release: Release) -> "tuple[Disclosure, ...]":
    from stirred.assess.universe.released import measure_disclosure  # loads numerical libraries

    tables = [release.tables[name] for name in mechanism.list_own_tables(release)]
    return measure_disclosure(
        release, tables=tables, record_type=mechanism.record_type, most=MAX_RECORDS_UNDONE
    )


def _describe_undo(mechanism: Mechanism, release: Release) -> Section | None:
    """Describe what the best undo finds, where the mechanism states the law of its moves."""
    if not 0 < _rows(release, mechanism.record_type) <= MAX_RECORDS_UNDONE:
        return None
    data = release.microdata[mechanism.record_type]
    taking = filter_participants(require_schema(release), mechanism.record_type, scan_records(data))
    law = mechanism.exchange(release)
    if law is None or collect_frame(taking.select(pl.len())).item() < 2:
        return None
    # imported here: most runs have no swap to undo, and attacks load solvers
    from stirred.assess.attack.inference.inversion import BEST_GUESS, CERTAIN, IN_PLACE, invert_swap

    found = {one.name: one for one in invert_swap(release, mechanism=mechanism).measures}
    shares = [found[name].value for name in (IN_PLACE, BEST_GUESS, CERTAIN)]
    if any(share is None for share in shares):
        return None
    share, best, sure = (float(one or 0.0) for one in shares)
    return risk.write_inversion(
        risk.InversionShares(
            record_type=mechanism.record_type,
            share=share,
            guess=found[IN_PLACE].baselines[0].value,
            best=best,
            sure=sure,
        )
    )


def _describe_guess(mechanism: Mechanism, release: Release, labels: Mapping[str, str]) -> Section | None:
    """Describe what the area alone tells of released records, where no law of moves is known."""
    types = [name for name in ("person", *sorted(release.microdata)) if name in release.microdata]
    if mechanism.exchange(release) is not None or not types:
        return None
    record_type = types[0]
    asked = choose_questions(release, record_type)
    if _rows(release, record_type) > MAX_RECORDS_UNDONE or not asked or not asked[-1][1]:
        return None
    variables, area = asked[-1]
    records = join_household(release, require_schema(release), record_type)
    found = [guess_by_area(records, area, name) for name in variables if name != area]
    return risk.write_majority(record_type, [one for one in found if one is not None], labels)


def _derive_beliefs(
    plan: Plan, schema: Schema, tables: Mapping[str, tuple[Sequence[str], pa.Table]]
) -> "list[InferredTable]":
    """Derive what tables with errors let anyone believe of their cells; exact sums bound the cells."""
    from stirred.assess.attack.inference.published import infer_table  # loads numerical libraries

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
                for size in range(1, min(len(by), MAX_TABLE_VARIABLES))
                for part in combinations(by, size)
                if record_type == mechanism.record_type and mechanism.keeps(part, schema)
            ]
        one = infer_table(name, frame, list(by), exact)
        if one is not None:
            found.append(one)
    return found


def _list_omissions(own: Sequence[tuple[Mechanism, Release]]) -> list[risk.SkippedPart]:
    """Return what the limits of this chapter leave out, so that the report can say it."""
    found = []
    for mechanism, release in own:
        for record_type in sorted(release.microdata):
            rows = _rows(release, record_type)
            limits = [("alone", ALONE)] if rows > ALONE else []
            law = mechanism.exchange(release)
            if rows > MAX_RECORDS_UNDONE and law is not None and record_type == mechanism.record_type:
                limits.append(("undone", MAX_RECORDS_UNDONE))
            elif rows > MAX_RECORDS_UNDONE and law is None:
                limits.append(("majority", MAX_RECORDS_UNDONE))
            found += [
                risk.SkippedPart(what=what, record_type=record_type, records=rows, most=most)
                for what, most in limits
            ]
    return found


def _rows(release: Release, record_type: str) -> int:
    data = release.microdata.get(record_type)
    if data is None:
        return 0
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
