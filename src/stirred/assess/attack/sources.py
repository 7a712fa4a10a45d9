"""The records and tables that an attack starts from: those of the release, and the truth that they are held against."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stirred.assess.attack.linkage.variables import AGE, AGE_CLASS, LinkVariables
from stirred.census import Census
from stirred.errors import InputError, did_you_mean
from stirred.frames import frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import MEASURE_COLUMNS, join_household, join_variables, require_schema

KNOWN, SECRET = ("sex", "age"), ("race", "hispanic")
PERSON, HOUSEHOLD = (
    "person",
    "household",
)  # columns of the truth: its row, and the household where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackTarget:
    """The records that are attacked and the variables of the linkage."""

    record_type: str
    variables: LinkVariables


def list_released_names(release: Release, record_type: str) -> list[str]:
    """Return the variables that released records of a type have, with household variables and areas."""
    schema = require_schema(release)
    there = join_household(release, schema, record_type).collect_schema().names()
    finest = schema.spine[-1:]
    more = schema.spine if schema.geography.areas is not None and set(finest) <= set(there) else ()
    return list(dict.fromkeys([*there, *more]))


def choose_target(
    release: Release,
    census: Census,
    *,
    record_type: str,
    area: str,
    known: Sequence[str] | None,
    secret: Sequence[str] | None,
) -> AttackTarget | str:
    """Return what is attacked, or a sentence that says why the usual variables are missing."""
    schema = census.schema
    chosen = record_type or ("person" if "person" in schema.record_types else schema.record_types[0])
    if chosen in release.microdata:
        published = list_released_names(release, chosen)
    else:
        published = list(
            dict.fromkeys(name for table in release.tables.values() for name in table.column_names)
        )
    levels = [level for level in schema.spine if level in published]
    if area and area not in published:
        raise InputError(
            f"the release has no {area}",
            why="an attack starts from small areas",
            fix=did_you_mean(area, levels),
        )
    if not area and not levels:
        return "the release has no areas of the spine"
    place = area or levels[-1]
    own = {*census.columns(chosen), *_home_columns(census, chosen)}
    there = {*published, *([AGE] if AGE_CLASS in published else [])}
    given = tuple(known) if known is not None else tuple(n for n in KNOWN if n in own and n in there)
    wanted = tuple(secret) if secret is not None else tuple(n for n in SECRET if n in own and n in there)
    for name in (*given, *wanted):
        if name not in own or name not in there:
            side = "census" if name not in own else "release"
            raise InputError(
                f"the {side} has no {name}",
                why="the attack was asked to use it",
                fix=did_you_mean(name, own & there),
            )
    if place in wanted:
        raise InputError(
            f"an attacker who knows {place} cannot want it",
            why="the area of a record is what an attack starts from",
            fix=f"take {place} out of what is wanted, or name a larger area",
        )
    if not given or not wanted:
        return "name what an attacker knows and what he wants to learn: known=…, secret=…"
    above = schema.spine[: schema.spine.index(place)] if place in schema.spine else ()
    return AttackTarget(
        record_type=chosen,
        variables=LinkVariables(area=place, known=given, secret=wanted, parent=above[-1] if above else ""),
    )


def read_true_records(census: Census, target: AttackTarget) -> pl.DataFrame:
    """Return the records of the census with the variables of the linkage, their row and their household."""
    record, variables = census.schema.record(target.record_type), target.variables
    names = [variables.area, *variables.known, *variables.secret]
    names += [variables.parent] if variables.parent else []
    names += [record.household] if record.household else []
    frame = frame_of(census.table(target.record_type, list(dict.fromkeys(names))))
    home = pl.col(record.household) if record.household else pl.int_range(pl.len())
    return frame.with_columns(pl.int_range(pl.len()).alias(PERSON), home.alias(HOUSEHOLD))


def read_released_records(
    release: Release, target: AttackTarget, *, also: Sequence[str] = ()
) -> pl.DataFrame | None:
    """Return the released records with the variables of the linkage; None where only tables exist."""
    if target.record_type not in release.microdata:
        return None
    variables = target.variables
    there = list_released_names(release, target.record_type)
    names = [
        variables.area,
        *variables.known,
        *variables.class_variables,
        *variables.secret,
        variables.parent,
        *also,
    ]
    wanted = [name for name in dict.fromkeys(names) if name in there]
    frame = join_variables(release, target.record_type, wanted).select(wanted)
    return pl.DataFrame(frame.collect())


def read_released_tables(
    release: Release, census: Census, target: AttackTarget, named: Sequence[str] | None = None
) -> dict[str, pl.DataFrame]:
    """Return the tables of counts that share the area; only those named."""
    for name in named or ():
        if name not in release.tables:
            raise InputError(
                f"the release has no table {name}",
                why="the attack was asked to use it",
                fix=did_you_mean(name, release.tables or ("(none)",)),
            )
    variables = {*census.columns(target.record_type), *_home_columns(census, target.record_type), AGE_CLASS}
    found = {}
    for name, table in release.tables.items():
        if named is not None and name not in named:
            continue
        by = [column for column in table.column_names if column not in MEASURE_COLUMNS]
        if target.variables.area in by and "count" in table.column_names and set(by) <= variables:
            found[name] = frame_of(table.select([*by, "count"]))
    return found


def _home_columns(census: Census, record_type: str) -> tuple[str, ...]:
    record = census.schema.record(record_type)
    return (*census.schema.spine, *(census.columns(record.linked_to) if record.linked_to else ()))
