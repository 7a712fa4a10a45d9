"""Attack a release: link its records, reconstruct its small areas, and compare both with guesses and with the truth."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.linkage import (
    Attacker,
    count_agreement,
    find_attacker,
    make_attacker_file,
    random_draw_hits,
    reidentify,
)
from stirred.assess.attack.linkage.leave_one_out import choose_targets, leave_one_out
from stirred.assess.attack.linkage.reidentification import group_people
from stirred.assess.attack.linkage.variables import AGE
from stirred.assess.attack.measures import (
    EXPOSED_GROUP,
    agreement_measure,
    left_out_measure,
    linkage_measures,
    reconstruction_measures,
)
from stirred.assess.attack.reconstruction import (
    AreaCounts,
    Effort,
    calibration,
    collect_tables,
    fits_blocks,
    mark_true,
    reconstruct,
    tabulate_blocks,
)
from stirred.assess.attack.reconstruction.tracts import reconstruct_joined, tabulate_tracts
from stirred.assess.attack.result import AttackResult
from stirred.assess.attack.sources import (
    HOUSEHOLD,
    PERSON,
    AttackTarget,
    choose_target,
    read_released_records,
    read_released_tables,
    read_true_records,
)
from stirred.assess.risk import RiskMeasure, name_measure
from stirred.census import Census
from stirred.census.progress import Progress, silent
from stirred.errors import InputError
from stirred.mechanisms.release import Release

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
