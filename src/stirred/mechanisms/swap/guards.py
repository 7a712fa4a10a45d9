"""Guard a release: columns that identify records or undo the swap, and records that cannot move."""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pads
from stirred.census import Schema
from stirred.engine import Engine
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.frames import collect_frame, frame_of
from stirred.kernels import compile_kernel
from stirred.languages import Phrase, recognise, unit
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.identifiers import IdentifyingColumn, find_identifying, find_lone_areas, refusal
from stirred.mechanisms.release import Guard, scan_records, takes_part
from stirred.mechanisms.swap.config import Roles, SwapOutputConfig
from stirred.mechanisms.swap.estimates import effective_rate
from stirred.mechanisms.swap.records import Stay
from stirred.mechanisms.swap.strata import Shapes
from stirred.text_formats import write_toml

if TYPE_CHECKING:
    from stirred.census import Census


# Measure how far held columns undo a swap: how well they predict the swapped variables on the released file alone.
#
# Survey weights that are constant within an enumeration area, or a postcode that follows from the district, stay with
# the household when its place is swapped. Most records are not swapped, so the released file shows which value belongs
# to which place, and the swapped records can be put back. The measure uses nothing but the released file, so it is
# post-processing: it costs no protection loss.

REFUSED_SHARE = 0.5  # of the way from chance to what a column that tells the place would reach: from here on it is refused
MAX_COLUMNS_PAIRED = 6  # columns from which sets of two are tried
RECORDS_PER_BIN = 10  # records of a bin, where numbers are tried in bins
MIN_RECORDS_TESTED = 50  # records with a value: fewer say nothing
PERMUTATIONS_PER_TARGET = 2  # permutations from which chance is measured
MIN_SHARE_UNMOVED = (
    0.25  # of the records that are assumed to stand where they stood, however high the swap rate is
)

Codes = NDArray[np.int64]
Form = tuple[Codes, Codes]  # the group of each row, and the record that is swapped to which the row belongs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """How well some held columns predict a swapped variable: the share of records guessed right from others."""

    columns: tuple[str, ...]
    place: tuple[str, ...]  # the swapped variables that are predicted
    guessed: float
    chance: float  # the same with the swapped variables permuted within strata
    unmoved: float = 1.0  # the share of records that stand where they stood
    rows: int = 0  # that were measured

    @property
    def share(self) -> float:
        """Return how far the guesses are from chance (0) to those of a column that tells the place (1).

        Such a column guesses the unmoved records right, and of the moved ones as many as chance gives. Two standard
        errors of a share are allowed for: in a small file some column is always lucky.
        """
        way = self.unmoved * (1 - self.chance)
        lucky = max(self.rows, 1) ** -0.5
        return min(1.0, max(0.0, (self.guessed - self.chance - lucky) / way)) if way > 0 else 0.0

    def words(self) -> Phrase:
        """Return the finding as a phrase."""
        return Phrase(
            "guard.guesses",
            columns=reduce(_join_names, self.columns),
            place=" × ".join(self.place),
            guessed=Phrase("guard.share", number=round(100 * self.guessed)),
            chance=Phrase("guard.share", number=round(100 * self.chance)),
        )

    def __str__(self) -> str:
        return str(self.words())


def _join_names(first: str, second: str) -> str:
    return Phrase("guard.with", first=first, second=second)


@dataclass(frozen=True, slots=True)
class _Places:
    """The swapped variables of the swapped records, as released and permuted within strata."""

    names: tuple[str, ...]
    codes: Codes
    mixed: tuple[Codes, ...]
    usual: NDArray[np.float64]  # the share of the most frequent place in the stratum of each record


def measure_reversals(
    released: pl.DataFrame,
    *,
    match: Sequence[str],
    swap: Sequence[str],
    held: Sequence[str],
    rate: float = 0.0,
    unit: str = "",
) -> tuple[Reversal, ...]:
    """Measure what every held column, and pairs of the best ones, predict; return the best first.

    A record is guessed from all other records that have the same values in these columns, within its stratum and in the
    whole file: the most frequent place among them. Each swapped variable is predicted alone, and all together. What
    chance gives is measured in the same way after the places were permuted within strata. With ``unit`` the rows
    are members of the records that are swapped, which it numbers: equal members of one record count once.

    >>> released = pl.DataFrame({"area": ["a", "b"] * 40, "weight": [1.5, 2.5] * 40, "rooms": [1, 1, 2, 2] * 20})
    >>> for found in measure_reversals(released, match=[], swap=["area"], held=["weight", "rooms"]):
    ...     print(found.columns, round(found.share, 1))
    ('weight',) 0.8
    ('weight', 'rooms') 0.8
    ('rooms',) 0.0
    """
    if released.height < MIN_RECORDS_TESTED or not swap or not held:
        return ()
    owner, first = _number_owners(released, unit)
    homes = released[first] if unit else released
    strata, places = _code_rows(homes, match), _list_targets(homes, swap, _code_rows(homes, match))
    unmoved = max(1 - rate, MIN_SHARE_UNMOVED)
    known = {name: _group_column(released[name], owner, several=bool(unit)) for name in held}
    singles = [_find_best_form((name,), known[name], strata, places, unmoved) for name in held]
    singles.sort(key=lambda found: -found.share)
    tried = sorted((found.columns[0] for found in singles[:MAX_COLUMNS_PAIRED]), key=list(held).index)
    pairs = [
        _find_best_form(pair, _group_pair(released, pair, owner, several=bool(unit)), strata, places, unmoved)
        for pair in itertools.combinations(tried, 2)
    ]
    return tuple(sorted([*singles, *pairs], key=lambda found: (-round(found.share, 1), len(found.columns))))


def _number_owners(released: pl.DataFrame, unit: str) -> tuple[Codes, Codes]:
    """Return the number of the swapped record of each row, and the first row of each swapped record."""
    if not unit:
        return np.arange(released.height), np.empty(0, np.int64)
    _, first, owner = np.unique(released[unit].to_numpy(), return_index=True, return_inverse=True)
    return owner.astype(np.int64), first.astype(np.int64)


def _list_targets(homes: pl.DataFrame, swap: Sequence[str], strata: Codes) -> list[_Places]:
    """List what is predicted: each swapped variable, the one with the fewest values first, and all together."""
    orders = [_permute_within(strata, seed) for seed in range(PERMUTATIONS_PER_TARGET)]
    found: dict[int, _Places] = {}
    for names in (*((name,) for name in swap), tuple(swap)):
        codes = _code_rows(homes, names)
        number = int(codes.max(initial=0))
        if number > 1 and number not in found:
            mixed = tuple(codes[order] for order in orders)
            found[number] = _Places(names, codes, mixed, _usual_share(strata, codes))
    chain = [found[number] for number in sorted(found)]
    # a column that tells a level between two others tells the one above it too
    between = [one for one in chain[1:-1] if not _is_determined(chain[0].codes, one.codes)]
    return [chain[0], *between, chain[-1]] if len(chain) > 1 else chain


def _is_determined(coarse: Codes, fine: Codes) -> bool:
    """Return whether the fine value determines the coarse one."""
    return np.unique(_join_codes(coarse, fine)).size == np.unique(fine).size


def _group_column(values: pl.Series, owner: Codes, *, several: bool) -> list[Form]:
    """Group the rows of a column by value, without its most frequent value, and numbers also in bins.

    Rows without a value are left out. Coordinates lie close without being equal, hence the bins. A school code is "none"
    for most, hence the form without the most frequent value.
    """
    there = np.flatnonzero(values.is_not_null().to_numpy())
    if there.size < MIN_RECORDS_TESTED:
        return []
    values, owner = values[there], owner[there]
    codes = _code_rows(values.to_frame("value"), ["value"])
    found = [_count_once(codes, owner, several=several)]
    counts = np.bincount(codes)
    most = int(counts.argmax())
    left = codes != most
    if counts[most] * 2 > codes.size and int(left.sum()) >= MIN_RECORDS_TESTED:
        found.append(_count_once(codes[left], owner[left], several=several))
    bins = max(2, round((codes.size / RECORDS_PER_BIN) ** 0.5))
    if values.dtype.is_numeric() and np.count_nonzero(counts) > bins:
        ranks = values.rank("ordinal").to_numpy().astype(np.int64)
        found.append(_count_once((ranks * bins) // (codes.size + 1), owner, several=several))
    return found


def _group_pair(released: pl.DataFrame, pair: tuple[str, str], owner: Codes, *, several: bool) -> list[Form]:
    """Group the rows by two columns: by their values, and in bins if both are numbers with many values."""
    some = released.select(pair).with_row_index("__row").drop_nulls()
    if some.height < MIN_RECORDS_TESTED:
        return []
    owner = owner[some["__row"].to_numpy()]
    found = [_count_once(_code_rows(some, pair), owner, several=several)]
    bins = max(2, round((some.height / RECORDS_PER_BIN) ** 0.5))
    if all(some[name].dtype.is_numeric() and some[name].n_unique() > bins for name in pair):
        one, other = (
            (some[name].rank("ordinal").to_numpy().astype(np.int64) * bins) // (some.height + 1)
            for name in pair
        )
        found.append(_count_once(one * bins + other, owner, several=several))
    return found


def _count_once(groups: Codes, owner: Codes, *, several: bool) -> Form:
    """Count rows of one group and one swapped record once, because members of a household share its place."""
    if not several:
        return groups, owner
    keys = np.unique(groups * (int(owner.max(initial=0)) + 1) + owner)
    return keys // (int(owner.max(initial=0)) + 1), keys % (int(owner.max(initial=0)) + 1)


def _find_best_form(
    columns: tuple[str, ...], forms: list[Form], strata: Codes, places: list[_Places], unmoved: float
) -> Reversal:
    """Return the best of all forms; chance is measured only where it can still decide."""
    tried = []
    for form, owner in forms:
        for groups in (form, _renumber_densely(_join_codes(strata[owner], form))):
            for place in places:
                found = Reversal(
                    columns=columns,
                    place=place.names,
                    guessed=_share_guessed(groups, place.codes[owner]),
                    chance=float(place.usual[owner].mean()),
                    unmoved=unmoved,
                    rows=groups.size,
                )
                tried.append((found, groups, place, owner))
    tried.sort(key=lambda one: -one[0].share)
    best: Reversal | None = None
    for found, groups, place, owner in tried:
        if best is not None and found.share <= best.share:
            break
        known = replace(found, chance=max(found.chance, _measure_chance(groups, place, owner)))
        best = known if best is None or known.share > best.share else best
    return best or Reversal(columns=columns, place=(), guessed=0.0, chance=0.0)


def _measure_chance(groups: Codes, place: _Places, owner: Codes) -> float:
    """Return the share of right guesses with permuted places."""
    return sum(_share_guessed(groups, mixed[owner]) for mixed in place.mixed) / len(place.mixed)


@compile_kernel
def _count_right(keys: Codes, width: int) -> float:
    """Count, from sorted keys group × place, rows whose place most others of their group have; ties are half."""
    total = 0.0
    at = 0
    while at < keys.size:
        group = keys[at] // width
        first, second = 0, 0
        while at < keys.size and keys[at] // width == group:
            start = at
            while at < keys.size and keys[at] == keys[start]:
                at += 1
            n = at - start
            if n > first:
                first, second = n, first
            elif n > second:
                second = n
        if first - 1 > second:
            total += first
        elif first - 1 == second and first > 1:
            total += first / 2
    return total


def _share_guessed(groups: Codes, places: Codes) -> float:
    """Return the share of rows whose place is the most frequent one among the others of their group."""
    width = int(places.max(initial=0)) + 1
    cells = (int(groups.max(initial=0)) + 1) * width
    keys = groups * width + places
    if cells > 4 * keys.size:
        return float(_count_right(np.sort(keys), width)) / max(groups.size, 1)
    first, second = _two_largest(np.bincount(keys, minlength=cells).reshape(-1, width))
    right = np.where(first - 1 > second, first, np.where((first - 1 == second) & (first > 1), first / 2, 0))
    return float(right.sum()) / max(groups.size, 1)


def _two_largest(counts: Codes) -> tuple[Codes, Codes]:
    """Return the largest and the second largest count of each row."""
    if counts.shape[1] < 2:
        return counts[:, 0], np.zeros_like(counts[:, 0])
    ends = np.partition(counts, counts.shape[1] - 2, axis=1)
    return ends[:, -1], ends[:, -2]


def _renumber_densely(codes: Codes) -> Codes:
    """Renumber the groups without gaps if the numbers are much larger than the number of rows."""
    if int(codes.max(initial=0)) <= 4 * codes.size:
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _code_rows(frame: pl.DataFrame, names: Sequence[str]) -> Codes:
    """Return one number for each combination of values, from 1 on."""
    if not names:
        return np.ones(frame.height, np.int64)
    by = pl.col(names[0]) if len(names) == 1 else pl.struct(list(names))
    return frame.select(by.rank("dense").fill_null(0).cast(pl.Int64)).to_series().to_numpy()


def _join_codes(one: Codes, other: Codes) -> Codes:
    return one * (int(other.max(initial=0)) + 1) + other


def _usual_share(strata: Codes, codes: Codes) -> NDArray[np.float64]:
    """Return, for each record, the share of the most frequent place in its stratum."""
    _, where, counts = np.unique(_join_codes(strata, codes), return_inverse=True, return_counts=True)
    most = np.zeros(int(strata.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, strata, counts[where])
    return most[strata] / np.bincount(strata)[strata]


def _permute_within(strata: Codes, seed: int) -> Codes:
    """Return a fixed permutation within strata, so that a packet is the same when it is made again."""
    words = np.random.default_rng(seed).random(strata.size)
    found = np.empty_like(strata)
    found[np.argsort(strata, kind="stable")] = np.lexsort((words, strata))
    return found


# Take from a release what the measure of reversal needs: all of a small file, whole places of a large one.
#
# Which places are taken is decided by a fixed hash of released values, without a key. Where places are so large that
# this leaves too few of them, the first records are taken, because the published order is random, and each held column
# is measured again on whole groups of its equal values.

RECORDS_SAMPLED = 1 << 14  # records that are measured; a smaller file is measured as a whole
MIN_UNITS_SAMPLED = RECORDS_SAMPLED // 8
UNIT_COLUMN = "__unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversalFinding:
    """A measured reversal, with the record type or table it was measured on."""

    record_type: str
    reversal: Reversal
    part: bool  # whether only a part of the file was measured

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the held columns."""
        return self.reversal.columns


@dataclass(frozen=True, slots=True)
class _Question:
    """The columns that make strata and places in a released file, and the swap rate."""

    match: Sequence[str]
    swap: Sequence[str]
    rate: float

    def answer(
        self, record_type: str, rows: pl.DataFrame, held: Sequence[str], *, part: bool, unit: str = ""
    ) -> list[ReversalFinding]:
        """Measure what the held columns predict; return one finding for each set of columns."""
        found = measure_reversals(
            rows, match=self.match, swap=self.swap, held=held, rate=self.rate, unit=unit
        )
        return [ReversalFinding(record_type=record_type, reversal=one, part=part) for one in found]


def measure_records(
    microdata: Mapping[str, "pa.Table | pads.Dataset"], roles: Roles, schema: Schema, rate: float
) -> tuple[ReversalFinding, ...]:
    """Measure the released records, and the records that travel along with the places of their household."""
    record = schema.record(roles.record_type)
    data = scan_records(microdata[roles.record_type])
    there = data.collect_schema().names()
    homes = data.filter(takes_part(record.kinds, there))
    number = int(collect_frame(homes.select(pl.len())).item())
    hold = [name for name in roles.hold if name in there]
    asked = _Question(
        [name for name in roles.match if name in there],
        [name for name in roles.moving_variables if name in there],
        rate,
    )
    known = [*asked.match, *asked.swap]
    chosen, whole_places = _sample_places(homes, asked.swap, number, RECORDS_SAMPLED, [*known, *hold])
    part = chosen.height < number
    found = asked.answer(roles.record_type, chosen, hold, part=part)
    if part and not whole_places:
        for name in hold:
            some, _ = _sample_places(homes, [name], number, RECORDS_SAMPLED, [*known, name])
            found += asked.answer(roles.record_type, some, [name], part=True)
    for other, names in roles.members:
        found += _measure_members(microdata, other, names, homes, roles, schema, asked, number)
    return tuple(found)


def _measure_members(
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    record_type: str,
    names: Sequence[str],
    homes: pl.LazyFrame,
    roles: Roles,
    schema: Schema,
    asked: _Question,
    number: int,
) -> list[ReversalFinding]:
    """Measure the columns of linked records: which place their household has."""
    record, people = schema.record(record_type), scan_records(microdata[record_type])
    own = set(people.collect_schema().names())
    held = [name for name in names if name in own and name not in (*roles.match, *roles.moving_variables)]
    if not held or not roles.identifier:
        return []
    most = int(collect_frame(people.select(pl.len())).item())
    wanted = (
        RECORDS_SAMPLED
        if most <= RECORDS_SAMPLED
        else max(MIN_UNITS_SAMPLED, RECORDS_SAMPLED * number // most)
    )
    known = [roles.identifier, *asked.match, *asked.swap]
    units, _ = _sample_places(homes, asked.swap, number, wanted, known)
    units = units.rename({roles.identifier: UNIT_COLUMN})
    if not units.height:
        return []
    # numbers are given in the published order, so the files of persons are read only as far as they are needed
    numbers, link = units[UNIT_COLUMN].to_numpy(), pl.col(record.household)
    near = people.filter(link.is_between(int(numbers.min()), int(numbers.max()))).select(
        link.alias(UNIT_COLUMN), *held
    )
    rows = collect_frame(near.join(units.lazy(), on=UNIT_COLUMN, how="inner", maintain_order="left"))
    return asked.answer(record_type, rows, held, part=units.height < number, unit=UNIT_COLUMN)


def measure_tables(tables: Mapping[str, pa.Table], roles: Roles, rate: float) -> tuple[ReversalFinding, ...]:
    """Measure tables of counts that are released without records: each cell stands for as many records."""
    found: list[ReversalFinding] = []
    for table in tables.values():
        frame = frame_of(table).filter(pl.col("count") > 0)
        names = [name for name in frame.columns if name != "count"]
        asked = _Question(
            [name for name in roles.match if name in names],
            [name for name in roles.moving_variables if name in names],
            rate,
        )
        held = [name for name in roles.hold if name in names]
        if not asked.swap or not held:
            continue
        number = int(frame["count"].sum())
        if number > RECORDS_SAMPLED:
            some = collect_frame(_filter_by_hash(frame.lazy(), asked.swap, RECORDS_SAMPLED / number))
            if RECORDS_SAMPLED // 8 <= int(some["count"].sum()) <= 4 * RECORDS_SAMPLED:
                frame = some
            else:  # places are too large: all cells, thinned
                frame = frame.with_columns(
                    (pl.col("count") * (RECORDS_SAMPLED / number)).round().cast(pl.Int64)
                )
        rows = frame.select(names)[np.repeat(np.arange(frame.height), frame["count"].to_numpy())]
        found += asked.answer(roles.record_type, rows, held, part=rows.height < number)
    return tuple(found)


def _sample_places(
    homes: pl.LazyFrame, by: Sequence[str], number: int, wanted: int, columns: Sequence[str]
) -> tuple[pl.DataFrame, bool]:
    """Take whole groups of equal values, about ``wanted`` records, or the first ones if groups are too large."""
    names = list(dict.fromkeys(columns))
    if number <= wanted:
        return collect_frame(homes.select(names)), True
    some = collect_frame(_filter_by_hash(homes, by, wanted / number).select(names).head(4 * wanted))
    if some.height >= wanted // 8:
        return some, True
    return collect_frame(homes.select(names).head(wanted)), False


def _filter_by_hash(frame: pl.LazyFrame, by: Sequence[str], share: float) -> pl.LazyFrame:
    """Keep the rows whose values have a small hash, about this share of all combinations of values."""
    kinds = frame.collect_schema()
    plain = [pl.col(name).cast(pl.Int64 if kinds[name].is_integer() else pl.String) for name in by]
    words = [values.hash(seed=number) for number, values in enumerate(plain)]
    return frame.filter(reduce(operator.xor, words) <= int(share * (2**64 - 1)))


# What each guard of a swap finds, and when it refuses: a finding is accepted only where the settings name the column.

IDENTIFIER_GUARD = Phrase("guard.identifying")
REVERSAL_GUARD = Phrase("guard.reversal")
MAX_SETS_SHOWN = 5  # sets of columns in the report


def require_named(settings: SwapOutputConfig, roles: Roles) -> None:
    """Raise an error if a column that is accepted by name is not released, as after a misspelling."""
    known = {*roles.released_variables, *(name for _, names in roles.members for name in names)}
    for setting, names in (
        ("release_identifiers", settings.release_identifiers),
        ("accept_reversal", settings.accept_reversal),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    f"{setting} names {name}",
                    why="the release has no such column",
                    fix=did_you_mean(name, known),
                )


def guard_identifiers(
    settings: SwapOutputConfig,
    released: Mapping[str, Sequence[str]],
    census: "Census",
    roles: Roles,
    engine: Engine,
) -> Guard:
    """Refuse released columns that identify records, and levels of places that hold one record, unless they are named."""
    found: list[IdentifyingColumn] = []
    for record_type, names in released.items():
        moves = roles.moving_variables if record_type == roles.record_type else ()
        places = [name for name in names if name in roles.spine or name in moves]
        own = [name for name in names if name not in places]
        found += find_identifying(census, record_type, own, engine=engine)
        found += find_lone_areas(census, record_type, places, engine=engine)
    refused = [one for one in found if one.column not in settings.release_identifiers]
    if refused:
        columns = sorted({one.column for one in refused})
        raise refusal(
            refused,
            leave_out=f"leave it out: drop={columns}",
            accept="release it on purpose, with the reason: "
            f"release_identifiers = {write_toml(dict.fromkeys(columns, 'why'))}",
        )
    if not found:
        return Guard(name=IDENTIFIER_GUARD, finding=Phrase("guard.none_identifies"))
    # records that are left out were counted too, and no invariant covers them: then the counts are not told
    told = reduce(
        _join_findings, [one.column if settings.untouched == "drop" else one.sentence for one in found]
    )
    return Guard(name=IDENTIFIER_GUARD, finding=Phrase("guard.on_purpose", columns=told), accepted=True)


def _join_findings(first: str, second: str) -> str:
    return Phrase("lists.semicolon_pair", first=first, second=second)


def guard_reversal(
    settings: SwapOutputConfig,
    roles: Roles,
    schema: Schema,
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    tables: Mapping[str, pa.Table],
    *,
    rate: float,
) -> Guard:
    """Refuse held columns that undo the swap, measured on the records that would be released; list the largest few.

    ``rate`` is the largest share of records that is expected to move.
    """
    found = measure_records(microdata, roles, schema, rate) if settings.microdata else ()
    if not settings.microdata:
        found = measure_tables(tables, roles, rate)
    best = _keep_best(found)
    above = [one for one in best if one.reversal.share >= REFUSED_SHARE]
    alone = {one.columns[0] for one in above if len(one.columns) == 1} & {*settings.accept_reversal}
    refused = [
        one
        for one in above
        if not {*one.columns} <= {*settings.accept_reversal} and not alone & {*one.columns}
    ]
    if refused:
        columns = sorted({name for one in _keep_smallest(refused) for name in one.columns})
        raise PrivacyError(
            f"{', '.join(columns)} would undo the swap",
            why=f"on the released file alone {_write_sentence(refused[0])}; "
            f"this is refused from {REFUSED_SHARE:.0%} of the way from "
            "chance to what a column that tells the place would reach",
            fix=f"change the settings: drop={columns}, or swap or match on them, or accept it: accept_reversal={columns}. "
            "Do not draw again with these settings: each draw is a release of its own",
        )
    rows = tuple(
        (
            _label_set(one),
            " × ".join(one.reversal.place),
            f"{one.reversal.guessed:.0%}",
            f"{one.reversal.chance:.0%}",
        )
        for one in best[:MAX_SETS_SHOWN]
        if one.reversal.place
    )
    partly = any(one.part for one in found)
    if above:
        told = reduce(
            _join_findings, [_write_sentence(one) for one in _keep_smallest(above)[:MAX_SETS_SHOWN]]
        )
        finding = _add_sample_note(Phrase("guard.reversal_on_purpose", columns=told), partly=partly)
        return Guard(name=REVERSAL_GUARD, finding=finding, accepted=True, rows=rows)
    none: str = Phrase("guard.none_reverses", number=len(best))
    if rows:
        none = Phrase("guard.largest", finding=none, largest=_write_sentence(best[0]))
    return Guard(name=REVERSAL_GUARD, finding=_add_sample_note(none, partly=partly), rows=rows)


def _add_sample_note(finding: str, *, partly: bool) -> str:
    return Phrase("guard.measured_on", finding=finding, number=RECORDS_SAMPLED) if partly else finding


def _keep_best(found: Sequence[ReversalFinding]) -> list[ReversalFinding]:
    """Keep each set of columns once, where it predicts best; sort the best first, and smaller sets first."""
    best: dict[tuple[str, tuple[str, ...]], ReversalFinding] = {}
    for one in found:
        key = (one.record_type, one.columns)
        if key not in best or one.reversal.share > best[key].reversal.share:
            best[key] = one
    return sorted(best.values(), key=lambda one: (-round(one.reversal.share, 1), len(one.columns)))


def _keep_smallest(found: Sequence[ReversalFinding]) -> list[ReversalFinding]:
    """Keep the sets that contain no smaller one."""
    single = {one.columns[0] for one in found if len(one.columns) == 1}
    return [one for one in found if len(one.columns) == 1 or not single & {*one.columns}]


def _label_set(one: ReversalFinding) -> str:
    return f"{' with '.join(one.columns)} ({one.record_type})"


def _write_sentence(one: ReversalFinding) -> str:
    return Phrase("guard.by_records", finding=one.reversal.words(), records=unit(one.record_type, "records"))


# Count the records that a swap publishes as they are, because nothing in their stratum can move.
#
# A stratum can move if it has two swap values and two held combinations. Sizes and types of strata are invariants.

STANDING_GUARD = Phrase("guard.standing")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRecords:
    """Records and strata that cannot move, by the reason; the reasons do not overlap."""

    records: int  # that take part
    strata: int
    reasons: tuple[tuple[str, int, int], ...]  # a key of the catalog, with records and strata
    staying: int  # records that take no part

    @staticmethod
    def of(shapes: Shapes, stays: Sequence[Stay] = ()) -> "StandingRecords":
        """Count the strata of each reason."""
        alone = shapes.n == 1
        alike = (shapes.n == 2) & ((shapes.swap_types < 2) | (shapes.hold_types < 2))
        place = ~alone & ~alike & (shapes.swap_types < 2)
        held = ~alone & ~alike & ~place & (shapes.hold_types < 2)
        reasons = {
            "guard.alone": alone,
            "guard.alike": alike,
            "guard.one_place": place,
            "guard.one_held": held,
        }
        return StandingRecords(
            records=int((shapes.n * shapes.strata).sum()),
            strata=int(shapes.strata.sum()),
            reasons=tuple((key, *_count_chosen(shapes, chosen)) for key, chosen in reasons.items()),
            staying=sum(stay.records for stay in stays),
        )

    @property
    def fixed_records(self) -> int:
        """Return the number of records that take part and cannot move."""
        return sum(records for _, records, _ in self.reasons)

    @property
    def finding(self) -> str:
        """Return in words what cannot move."""
        if not self.fixed_records:
            return Phrase("guard.all_move", strata=self.strata)
        strata = sum(number for _, _, number in self.reasons)
        told = self._describe_reasons()
        return Phrase(
            "guard.fixed",
            number=self.fixed_records,
            all=self.records,
            strata=strata,
            all_strata=self.strata,
            told=reduce(lambda one, two: Phrase("lists.semicolon_pair", first=one, second=two), told),
        )

    def _describe_reasons(self) -> list[Phrase]:
        return [Phrase(key, number=records) for key, records, _ in self.reasons if records]

    def guard(self, record_type: str) -> Guard:
        """Return the finding, or raise an error if nothing can move."""
        if self.records + self.staying and self.fixed_records == self.records:
            known = "; ".join(self._describe_reasons())
            raise PrivacyError(
                "nothing can move, so the swap would publish the file as it is",
                why=f"of {self.records:,} {record_type} records that take part: {known or 'none'}",
                fix="match on fewer or coarser variables, and swap variables that differ within strata",
            )
        return Guard(name=STANDING_GUARD, finding=self.finding)


def expect_share_moved(shapes: Shapes, stays: Sequence[Stay], rate: Fraction) -> ExpectedEffect:
    """Return the expected share of all records that change places: the effective rate in strata that can move.

    Records that take no part, or whose stratum has one swap value or one held combination, never move.
    """
    movable = (shapes.swap_types >= 2) & (shapes.hold_types >= 2)
    taking = shapes.n * shapes.strata
    moved = float((effective_rate(shapes.n, rate) * taking)[movable].sum())
    records = int(taking.sum()) + sum(stay.records for stay in stays)
    return ExpectedEffect(kind="records", share=moved / max(records, 1), records=records)


def _count_chosen(shapes: Shapes, chosen: NDArray[np.bool_]) -> tuple[int, int]:
    return int((shapes.n * shapes.strata)[chosen].sum()), int(shapes.strata[chosen].sum())


# What the guards found, for the report and for plan check.

GUARD_HEADS = ("guard.head.guard", "guard.head.found", "guard.head.accepted")  # keys of the catalog
REVERSAL_HEADS = ("guard.head.columns", "guard.head.place", "guard.head.guessed", "guard.head.chance")


def mark_trial(guard: Guard) -> Guard:
    """Mark the finding of a trial draw, which is thrown away and is for the office alone."""
    if guard.name != REVERSAL_GUARD:
        return guard
    return replace(guard, finding=Phrase("guard.on_trial", finding=guard.finding))


def exhibit_guards(guards: Sequence[Guard]) -> Exhibit:
    """Return a section of the report: the finding of each guard, and the held columns that guess most places.

    >>> exhibit_guards([Guard(name="identifying columns", finding="none is released")]).finding
    '1 guard looked before anything left; nothing that was found had to be accepted by name.'
    """
    taken = [guard.name for guard in guards if guard.accepted]
    outcome = Phrase("guard.none_accepted")
    if taken:
        names = tuple(recognise(name) for name in taken)
        outcome = Phrase("guard.some_accepted", number=len(taken), names=names)
    rows = [
        (guard.name, guard.finding, Phrase("guard.by_name" if guard.accepted else "guard.not_needed"))
        for guard in guards
    ]
    heads = [Phrase(key) for key in GUARD_HEADS]
    parts = [Listing(caption=Phrase("guard.each"), columns=heads, rows=rows)]
    parts += [
        Listing(
            caption=Phrase("guard.most", name=recognise(guard.name)),
            columns=[Phrase(key) for key in REVERSAL_HEADS],
            rows=guard.rows,
        )
        for guard in guards
        if guard.rows
    ]
    return Exhibit(
        title=Phrase("guard.title"),
        finding=Phrase("guard.summary", count=len(guards), outcome=outcome),
        parts=tuple(parts),
        note=Phrase("guard.note"),
        chapter="risk",
    )
