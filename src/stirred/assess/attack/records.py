"""Attack a release: link its records, rebuild records from its tables, and compare both with the truth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.linkage import (
    AGE,
    AGE_CLASS,
    ATTACK,
    CEILING,
    MAJORITY,
    MODAL,
    PROPORTIONAL,
    Attacker,
    LeaveOneOut,
    LinkVariables,
    Reidentification,
    choose_targets,
    count_agreement,
    find_attacker,
    group_people,
    leave_one_out,
    make_attacker_file,
    random_draw_hits,
    reidentify,
)
from stirred.assess.attack.published_areas import AreaCounts, collect_tables, fits_blocks, tabulate_blocks
from stirred.assess.attack.reconstruction import (
    Effort,
    calibration,
    mark_true,
    reconstruct,
    reconstruct_joined,
    tabulate_tracts,
)
from stirred.assess.risk import (
    AttackResult,
    Baseline,
    RiskMeasure,
    name_measure,
    normalise_risk,
    wilson_interval,
)
from stirred.census import Census
from stirred.census.progress import Progress, silent
from stirred.errors import InputError, did_you_mean
from stirred.frames import frame_of
from stirred.mechanisms.release import (
    MEASURE_COLUMNS,
    Release,
    join_household,
    join_variables,
    require_schema,
)
from stirred.spec.invariants import pluralize

# Measures of risk from the tables of an attack, each with its interval and what a guess finds.

EVERYONE_GROUP, EXPOSED_GROUP = ("all", "all"), ("mode and unique", "nonmodal unique")
PROVED_GROUP = ("mode, unique and area", "nonmodal unique, one reconstruction")
PHRASE_BY_GROUP = {
    EVERYONE_GROUP: name_measure("about.all"),
    EXPOSED_GROUP: name_measure("about.exposed"),
    PROVED_GROUP: name_measure("about.proved"),
}
GUESSES = (MODAL, PROPORTIONAL, MAJORITY, CEILING)


def linkage_measures(found: Reidentification, *, source: str) -> list[RiskMeasure]:
    """Return recall, precision and normalised risk of an attack, for all and for exposed persons."""
    made = []
    for group in (EVERYONE_GROUP, EXPOSED_GROUP, PROVED_GROUP):
        if group not in found.groups:
            continue
        for name in ("recall", "precision"):
            value = getattr(found, name)(group, ATTACK)
            low, high = found.interval(group, ATTACK, of=name) if value is not None else (None, None)
            guesses = [(guess, getattr(found, name)(group, guess)) for guess in GUESSES]
            made.append(
                RiskMeasure(
                    name=name_measure(name, source=source),
                    about=PHRASE_BY_GROUP[group],
                    kind="absolute",
                    value=value,
                    low=low,
                    high=high,
                    unit="share",
                    baselines=tuple(
                        Baseline(name=guess, value=share) for guess, share in guesses if share is not None
                    ),
                    reason="" if value is not None else "nobody is linked",
                )
            )
        made.append(_measure_normalised(found, group, source))
    return made


def _measure_normalised(found: Reidentification, group: tuple[str, str], source: str) -> RiskMeasure:
    """Measure how far the recall exceeds a proportional guess: (a − c) / (1 − c)."""
    persons, _, hits = found.counts(group, ATTACK)
    _, _, guessed = found.counts(group, PROPORTIONAL)
    name = name_measure("normalised", source=source)
    if not persons:
        return RiskMeasure(
            name=name,
            about=PHRASE_BY_GROUP[group],
            kind="absolute",
            value=None,
            unit="share",
            reason="there are none",
        )
    halves = []
    for method in (ATTACK, PROPORTIONAL):
        low, high = found.interval(group, method, of="recall")
        halves.append((high - low) / 2)
    risk, low, high = normalise_risk(
        hits / persons, guessed / persons, attack_half=halves[0], control_half=halves[1]
    )
    return RiskMeasure(
        name=name,
        about=PHRASE_BY_GROUP[group],
        kind="absolute",
        value=risk,
        low=low,
        high=high,
        unit="share",
        baselines=(Baseline(name=PROPORTIONAL, value=0.0),),
    )


def reconstruction_measures(areas: pl.DataFrame, *, whole: bool) -> list[RiskMeasure]:
    """Measure how many areas have one reconstruction, and how far two can differ.

    ``whole`` says that all areas were reconstructed; otherwise the interval is also about those that were not.
    """
    known, proved = int(areas["unique"].is_not_null().sum()), int(areas["unique"].sum() or 0)
    low, high = proved / max(areas.height, 1), (proved + areas.height - known) / max(areas.height, 1)
    if not whole:
        low, high = (
            wilson_interval(proved, areas.height)[0],
            wilson_interval(proved + areas.height - known, areas.height)[1],
        )
    missing = areas.height - known
    made = [
        RiskMeasure(
            name=name_measure("one_reconstruction"),
            about=name_measure("about.areas"),
            kind="absolute",
            value=proved / areas.height if areas.height and not missing else None,
            low=low,
            high=high,
            unit="share",
            public=True,
            reason=f"{missing} of {areas.height} areas are not decided"
            if missing or not areas.height
            else "",
        )
    ]
    solved = areas.filter(pl.col("solvar_high").is_not_null() & (pl.col("records") > 0))
    persons = float(solved["records"].sum())
    if persons:
        bounds = [
            float((solved[name] * solved["records"]).sum()) / persons
            for name in ("solvar_low", "solvar_high")
        ]
        made.append(
            RiskMeasure(
                name=name_measure("two_reconstructions"),
                about="records of the areas that were reconstructed, at most",
                kind="absolute",
                value=bounds[0] if bounds[1] - bounds[0] < 1e-12 else None,
                low=bounds[0],
                high=bounds[1],
                unit="share",
                public=True,
                reason="" if bounds[1] - bounds[0] < 1e-12 else "the time limit came first in some areas",
            )
        )
    return made


def agreement_measure(
    agreed: pl.DataFrame, draws: dict[str, float], *, column: str, source: str
) -> RiskMeasure:
    """Measure how many true records are among those released or reconstructed, one for one."""
    persons, hits = int(agreed["records"].sum()), int(agreed[column].sum())
    low, high = wilson_interval(hits, persons)
    return RiskMeasure(
        name=name_measure("agreement", source=source),
        about=name_measure("about.classes") if column == "classed" else PHRASE_BY_GROUP[EVERYONE_GROUP],
        kind="absolute",
        value=hits / persons if persons else None,
        low=low,
        high=high,
        unit="share",
        baselines=tuple(
            Baseline(name=f"random draw of what is known, {name}", value=share)
            for name, share in draws.items()
        ),
        reason="" if persons else "there are no records",
    )


def left_out_measure(found: LeaveOneOut) -> RiskMeasure:
    """Measure how much more often the attack is right because a person took part."""
    low, high = found.interval()
    many = found.included.size
    return RiskMeasure(
        name=name_measure("excess"),
        about=PHRASE_BY_GROUP[EXPOSED_GROUP],
        kind="relative",
        value=found.excess if many else None,
        low=low,
        high=high,
        unit="share",
        baselines=(
            Baseline(name="right with the person", value=float(found.included.mean()) if many else 0.0),
            Baseline(name="right without the person", value=float(found.left_out.mean()) if many else 0.0),
        ),
        reason="" if many else "there is no such person",
    )


# The records and tables that an attack starts from: those of the release, and the truth that they are held against.

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


# Attack a release: link its records, reconstruct its small areas, and compare both with guesses and with the truth.

LIST_COLUMNS = ("cells", "counts", "candidates", "copies", "confidences")
RECORDS, TABLES = name_measure("source.records"), name_measure("source.tables")


def attack(
    release: Release,
    census: Census,
    *,
    record_type: str = "",
    area: str = "",
    known: Sequence[str] | None = None,
    secret: Sequence[str] | None = None,
    attacker: str | Attacker = "perfect",
    areas: int | None = 200,
    tables: Sequence[str] | None = None,
    tracts: str = "",
    bound: int | None = 0,
    effort: Effort | None = None,
    again: Callable[[Census], Release] | None = None,
    left_out: int = 500,
    seed: int = 1,
    workers: int | None = None,
    state: Path | None = None,
    progress: Progress = silent,
) -> AttackResult:
    """Attack a release with a file that has ``known`` of the people, to learn their ``secret``.

    Released records are linked directly. ``areas`` of the smallest areas, drawn at random (None: all), are reconstructed:
    from the release's own ``tables`` that count by the area, whose numbers are at most ``bound`` off (None: not known), or,
    where none is named and records are released, from the 18 tables of blocks of 2010 tabulated from them; with
    ``tracts``, a larger area, its tables of single years of age (PCT12, PCT12A–O) are joined to them. ``again`` makes one
    more release of a census, for the counterfactual without ``left_out`` people. Everything is internal but the
    measures that say that they are public.
    """
    target = choose_target(release, census, record_type=record_type, area=area, known=known, secret=secret)
    if isinstance(target, str):
        return AttackResult(measures=(_unknown_measure(target),))
    variables = target.variables
    people = read_true_records(census, target)
    truth = variables.add_keys(people, also=[PERSON])
    file = attacker if isinstance(attacker, Attacker) else find_attacker(attacker)
    known_file = people.drop([name for name in variables.secret if name not in variables.known])
    listed = make_attacker_file(known_file, file, area=variables.area, household=HOUSEHOLD, seed=seed)
    listed = variables.add_keys(listed, also=[PERSON])
    measures: list[RiskMeasure] = []
    shown: dict[str, pl.DataFrame] = {}
    records = read_released_records(release, target, also=(tracts,) if tracts else ())
    if records is not None:
        released = variables.add_keys(records)
        found = reidentify(released, truth, listed, seed=seed)
        shown["reidentification"] = found.table()
        measures += linkage_measures(found, source=RECORDS)
        measures += _measure_agreement(released, truth, seed=seed, source=RECORDS, shown=shown)
    published = _collect_counts(release, census, target, records, tables=tables, bound=bound)
    if published is not None:
        measures += _reconstruct_areas(
            published, _find_tracts(records, target, tracts), target, truth, listed, shown,
            areas=areas, effort=effort, seed=seed, workers=workers, state=state, progress=progress,
        )  # fmt: skip
    if again is not None and records is not None:
        targets = choose_targets(truth, group_people(truth)[EXPOSED_GROUP], most=left_out, seed=seed)

        def released_of(one: Census) -> pl.DataFrame:
            made = read_released_records(again(one), target)
            return variables.add_keys(made if made is not None else people.head(0))

        without = leave_one_out(
            census, released_of, truth, targets,
            record_type=target.record_type, secret=variables.secret, seed=seed,
        )  # fmt: skip
        measures.append(left_out_measure(without))
    if not measures:
        measures.append(_unknown_measure("the release has neither such records nor tables of the area"))
    return AttackResult(measures=tuple(measures), tables=shown)


def _reconstruct_areas(
    published: AreaCounts,
    above: "tuple[pl.DataFrame, pl.DataFrame] | None",
    target: AttackTarget,
    truth: pl.DataFrame,
    listed: pl.DataFrame,
    shown: dict[str, pl.DataFrame],
    *,
    areas: int | None,
    effort: Effort | None,
    seed: int,
    workers: int | None,
    state: Path | None,
    progress: Progress,
) -> list[RiskMeasure]:
    """Reconstruct areas, with tracts and their tables (``above``), and link what was found as if it had been released."""
    whole = areas is None or areas >= len(published.areas)
    if areas is not None and not whole:
        published = published.select(_draw_areas(published, areas, seed, None if above is None else above[0]))
    made = reconstruct(published, effort=effort, workers=workers, state=state, progress=progress)
    shown["reconstructed areas"] = made.areas.drop(LIST_COLUMNS)
    measures = reconstruction_measures(made.areas, whole=whole)
    variables = target.variables
    if not {*variables.class_variables, *variables.secret} <= set(made.cells.columns):
        return measures
    found_records = made.records()
    if above is not None:
        joint = reconstruct_joined(
            published,
            above[0],
            above[1],
            seconds=6 * (effort or Effort()).seconds,
            seed=seed,
            workers=workers,
            progress=progress,
        )
        shown["reconstructed tracts"], found_records = joint.tracts, joint.records.drop("certain")
    rebuilt = variables.add_keys(found_records.rename({"area": variables.area}))
    within = pl.lit(value=True) if whole else pl.col("area").is_in(published.areas.implode())
    inside = truth.filter(within)
    rows = pl.DataFrame({PERSON: inside[PERSON], "row": np.arange(inside.height)})
    asked = listed.filter(within).join(rows, on=PERSON).drop(PERSON).rename({"row": PERSON})
    if (
        effort is not None
        and effort.samples
        and {*variables.class_variables, *variables.secret} == set(made.cells.columns)
    ):
        sure = variables.add_keys(
            made.confidences().rename({"area": variables.area}), also=["copy", "confidence"]
        )
        shown["calibration"] = calibration(mark_true(sure, inside))
    proved = made.areas.filter(pl.col("unique").fill_null(value=False))["area"]
    found = reidentify(rebuilt, inside, asked, seed=seed, unique_areas=proved)
    shown["reidentification from tables"] = found.table()
    measures += linkage_measures(found, source=TABLES)
    return measures + _measure_agreement(rebuilt, inside, seed=seed, source=TABLES, shown=shown)


def _draw_areas(
    published: AreaCounts, areas: int, seed: int, tracts: pl.DataFrame | None
) -> NDArray[np.int64]:
    """Draw areas at random; with tracts, draw whole tracts until there are enough areas."""
    draws = np.random.default_rng(seed)
    if tracts is None:
        return np.sort(draws.choice(len(published.areas), areas, replace=False))
    inside = pl.DataFrame({"area": published.areas, "place": np.arange(len(published.areas))}).join(
        tracts, on="area", how="left"
    )
    whole = inside.group_by("tract").agg("place").sort("tract")["place"].to_list()
    chosen: list[int] = []
    for place in draws.permutation(len(whole)):
        if len(chosen) < areas:
            chosen += whole[place]
    return np.sort(np.array(chosen, np.int64))


def _find_tracts(
    records: pl.DataFrame | None, target: AttackTarget, tracts: str
) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Return the tract of each area and the tables of the tracts, or None where the records lack them."""
    if not tracts:
        return None
    area = target.variables.area
    if records is None or not {tracts, area, AGE} <= set(records.columns) or not fits_blocks(records):
        raise InputError(
            f"the tables of {tracts} cannot be joined to those of {area}",
            why="the release has no records with both areas, sex, age in years, race and origin in the codes of 2010",
            fix='leave tracts out, or name a level that the released records have: tracts="tract"',
        )
    inside = records.select(
        pl.col(area).cast(pl.String).alias("area"), pl.col(tracts).cast(pl.String).alias("tract")
    )
    return inside.unique().sort("area"), tabulate_tracts(records, tracts)


def _measure_agreement(
    released: pl.DataFrame, truth: pl.DataFrame, *, seed: int, source: str, shown: dict[str, pl.DataFrame]
) -> list[RiskMeasure]:
    agreed = count_agreement(released, truth, seed=seed)
    shown[f"agreement, {source}"] = agreed
    made = []
    for column in ("exact", "classed"):
        if released[column].null_count() < released.height:
            draws = random_draw_hits(truth, key=column, seed=seed)
            made.append(agreement_measure(agreed, draws, column=column, source=source))
    return made


def _collect_counts(
    release: Release,
    census: Census,
    target: AttackTarget,
    records: pl.DataFrame | None,
    *,
    tables: Sequence[str] | None,
    bound: int | None,
) -> AreaCounts | None:
    """Return the numbers to reconstruct from: the release's own tables, or block tables of its records."""
    if tables is None and records is not None and fits_blocks(records):
        return tabulate_blocks(records, target.variables.area)
    own = read_released_tables(release, census, target, tables)
    area = target.variables.area  # a number that may be off can be 0 where a record is
    return collect_tables(own, area, bound=bound, zeros_kept=bound == 0) if own else None


def _unknown_measure(reason: str) -> RiskMeasure:
    return RiskMeasure(
        name="reidentification", about="all records", kind="absolute", value=None, unit="share", reason=reason
    )


# Records of any type rebuilt from the published tables of a packet, such as households from their sizes and tenures.

COUNT_COLUMN = "count"


def rebuild_from_tables(
    tables: Mapping[str, pl.DataFrame],
    census: Census,
    record_type: str,
    *,
    area: str = "",
    areas: int | None = 200,
    bound: int | None = 0,
    effort: Effort | None = None,
    seed: int = 1,
    workers: int | None = None,
    state: Path | None = None,
    progress: Progress = silent,
) -> AttackResult:
    """Rebuild the records of areas from tables that share them, and compare with the census.

    The area is the smallest that two tables share, unless one is named. ``bound`` is how far published numbers are off at
    most (None: not known). Without two such tables there is nothing to rebuild, and the result is empty.
    """
    usable = {name: table for name, table in tables.items() if _is_usable(table, census, record_type)}
    place = area or _smallest_shared_area(usable, census.schema.spine)
    sharing = {
        name: table for name, table in usable.items() if place in table.columns and len(table.columns) > 2
    }
    if not place or len(sharing) < 2:
        return AttackResult(measures=())
    published = collect_tables(sharing, place, bound=bound, zeros_kept=bound == 0)
    whole = areas is None or areas >= len(published.areas)
    if areas is not None and not whole:
        chosen = np.random.default_rng(seed).choice(len(published.areas), areas, replace=False)
        published = published.select(np.sort(chosen))
    made = reconstruct(published, effort=effort, workers=workers, state=state, progress=progress)
    by = [name for name in made.cells.columns if name != place]
    rebuilt = made.records().rename({"area": place})
    counts = frame_of(census.counts(record_type, [place, *by])).with_columns(
        pl.col(place, *by).cast(pl.String)
    )
    truth = counts.filter(pl.col(place).is_in(published.areas.implode()))
    about = name_measure("about.areas_of", records=pluralize(record_type))
    measures = [replace(one, about=about) for one in reconstruction_measures(made.areas, whole=whole)]
    measures.append(_measure_overlap(rebuilt, truth, place, by, record_type, seed))
    return AttackResult(
        measures=tuple(measures), tables={f"rebuilt {pluralize(record_type)}": made.areas.drop(LIST_COLUMNS)}
    )


def _is_usable(table: pl.DataFrame, census: Census, record_type: str) -> bool:
    """Return whether a table counts records by variables that the census has."""
    known = {*census.columns(record_type), *census.schema.spine, COUNT_COLUMN}
    return COUNT_COLUMN in table.columns and set(table.columns) <= known


def _smallest_shared_area(tables: Mapping[str, pl.DataFrame], spine: Sequence[str]) -> str:
    """Return the smallest area that two tables share."""
    for level in reversed(spine):
        if sum(level in table.columns and len(table.columns) > 2 for table in tables.values()) > 1:
            return level
    return ""


def _measure_overlap(
    rebuilt: pl.DataFrame, truth: pl.DataFrame, area: str, by: Sequence[str], record_type: str, seed: int
) -> RiskMeasure:
    """Measure how many census records have an equal record among those rebuilt, each used once."""
    draws = np.random.default_rng(seed)
    total = int(truth[COUNT_COLUMN].sum())
    hits = _count_overlap(rebuilt, truth, [area, *by])
    # the same one-way numbers of every area, put together at random
    shuffled = rebuilt.sort(area)
    for name in by:
        order = pl.Series("order", draws.random(shuffled.height))
        column = shuffled.select(area, name).with_columns(order).sort(area, "order")[name]
        shuffled = shuffled.with_columns(column)
    guessed = _count_overlap(shuffled, truth, [area, *by])
    low, high = wilson_interval(hits, total)
    about = f"{pluralize(record_type)} by {', '.join(by)}"
    return RiskMeasure(
        name=name_measure("agreement", source=name_measure("source.rebuilt")),
        about=about,
        kind="absolute",
        value=hits / total if total else None,
        low=low if total else None,
        high=high if total else None,
        unit="share",
        baselines=(Baseline(name="one-way numbers put together at random", value=guessed / max(total, 1)),),
        reason="" if total else "the areas have no records",
    )


def _count_overlap(records: pl.DataFrame, truth: pl.DataFrame, by: Sequence[str]) -> int:
    counted = records.with_columns(pl.col(list(by)).cast(pl.String)).group_by(by).agg(pl.len().alias("made"))
    both = truth.join(counted, on=list(by), nulls_equal=True)
    return int(both.select(pl.min_horizontal(pl.col(COUNT_COLUMN), pl.col("made")).sum()).item() or 0)
