"""Find the geography of records by nesting: columns in which each finer code lies in exactly one coarser code."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from stirred.census.codebook import presets
from stirred.census.describe.guess import names
from stirred.census.describe.guess.facts import Sheet, empty_to_null
from stirred.frames import collect_frame

MAX_ROWS_COMPARED = 2_000_000  # records that are compared; data check holds all records against the result
MAX_COLUMNS_COMPARED = 40  # columns that are compared with each other
MAX_LOG10_CHANCE = (
    -6.0
)  # a nesting counts when chance would give it with a probability below 10 to this power
KNOWN_LEVEL_DEPTHS = {level: depth for spine in presets.SPINES.values() for depth, level in enumerate(spine)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nesting:
    """The chain of areas, coarsest first, and what else the finest ones decide."""

    chain: tuple[str, ...] = ()
    named: bool = False  # some column of the chain is named like a place
    beside: Mapping[str, str] = field(default_factory=dict)  # column → the coarsest level that decides it
    loose: tuple[str, ...] = ()  # columns named like places that do not nest
    finer: tuple[
        str, ...
    ] = ()  # columns not named like places whose values each lie in one area of the chain
    weak: tuple[str, ...] = ()  # levels that nest in so few records that chance would give it


def find_nesting(sheet: Sheet, columns: Sequence[str], *, watched: Sequence[str] = ()) -> Nesting:
    """Return the best chain of areas among ``columns``, and the ``watched`` columns that areas decide.

    Columns nest by chance when there are few records: that a code of f lies in one code of c for all n records has
    probability $q^{n - |f|}$ with $q = \\sum_k p_k^2$ if both are independent, and must be below $10^{-6}$. Columns that
    are named like places are taken without such evidence, and named in ``weak``. Where some columns are named like places
    no other column is a level: the number of an enterprise lies in one region too.
    """
    chosen = _list_candidates(sheet, columns)
    codes = _encode_columns(sheet, [*chosen, *watched])
    rows = codes.height
    distinct = {name: codes[name].n_unique() for name in codes.columns}
    chosen = [
        name
        for name in chosen
        if 2 <= distinct[name] <= rows * 0.7
        or (_is_place(name) and (distinct[name] > 1 or name.lower() in KNOWN_LEVEL_DEPTHS))
    ]
    same = {name: _pair_probability(codes[name]) for name in codes.columns}
    decided: dict[str, set[str]] = {}
    sure: dict[str, set[str]] = {}
    for fine in chosen:
        others = [name for name in codes.columns if name != fine and distinct[name] <= distinct[fine]]
        whole = _list_constant(codes, fine, others)
        free = rows - distinct[fine]
        sure[fine] = {name for name in whole if free * _log10(same[name]) < MAX_LOG10_CHANCE}
        decided[fine] = sure[fine] | {
            name for name in whole if _is_place(name) and _is_place(fine) and name in chosen
        }
    places = [name for name in chosen if _is_place(name)]
    chain = _choose_chain(places or chosen, distinct, decided)
    beside = {
        name: next(level for level in chain if name in decided[level])
        for name in codes.columns
        if name not in chain and any(name in decided[level] for level in chain)
    }
    return Nesting(
        chain=chain,
        named=any(map(_is_place, chain)),
        beside=beside,
        loose=tuple(name for name in places if name not in chain and name not in beside),
        finer=tuple(
            name
            for name in chosen
            if chain and name not in {*chain, *places, *beside} and sure[name] & {chain[-1]}
        ),
        weak=tuple(
            fine
            for coarse, fine in itertools.pairwise(chain)
            if distinct[coarse] > 1 and coarse not in sure[fine]
        ),
    )


def _is_place(name: str) -> bool:
    return name.lower() in KNOWN_LEVEL_DEPTHS or bool(names.PLACE_NAMES.search(name))


def _list_candidates(sheet: Sheet, columns: Sequence[str]) -> list[str]:
    """Return the columns that may be areas: codes with few empty fields, not too many columns."""
    able = [
        sheet.columns[name]
        for name in columns
        if sheet.columns[name].may_be_code
        and not (sheet.columns[name].unique and sheet.has_enough_rows)
        and sheet.columns[name].empty <= sheet.rows // 20
        and (_is_place(name) or not names.MEASURE_NAMES.search(name))
    ]
    able.sort(key=lambda facts: (not _is_place(facts.name), -facts.distinct))
    return [facts.name for facts in able[:MAX_COLUMNS_COMPARED]]


def _encode_columns(sheet: Sheet, columns: Sequence[str]) -> pl.DataFrame:
    """Return the columns as small integers; equal values have equal integers."""
    dtypes = {name: sheet.columns[name].dtype for name in columns}
    some = sheet.frame.select(empty_to_null(pl.col(name), dtypes[name]) for name in columns).head(
        MAX_ROWS_COMPARED
    )
    frame = collect_frame(some, streaming=True)
    return frame.select(pl.col(name).rank("dense").fill_null(0).cast(pl.UInt32) for name in columns)


def _pair_probability(codes: pl.Series) -> float:
    """Return the probability that two records drawn with replacement have the same code."""
    counts = codes.value_counts()["count"]
    total = int(counts.sum() or 0)
    return float((counts.cast(pl.Float64) / total).pow(2).sum()) if total else 1.0


def _log10(probability: float) -> float:
    return math.log10(min(probability, 1.0)) if probability > 0 else -math.inf


def _list_constant(codes: pl.DataFrame, fine: str, others: Sequence[str]) -> list[str]:
    """Return the columns of which each code of ``fine`` has only one value."""
    if not others:
        return []
    spread = codes.lazy().group_by(fine).agg((pl.col(name).min() != pl.col(name).max()) for name in others)
    broken = collect_frame(spread.select(pl.col(name).sum() for name in others)).row(0, named=True)
    return [name for name in others if not broken[name]]


def _choose_chain(
    columns: Sequence[str], distinct: Mapping[str, int], decided: Mapping[str, set[str]]
) -> tuple[str, ...]:
    """Return the chain with the most columns named like places, then the longest, then the finest.

    Of several columns that do not nest, the one named like a large area is taken: codes of small ones may start again.
    """

    def worth(chain: tuple[str, ...]) -> tuple[int, int, bool, int]:
        large = len(chain) == 1 and bool(names.COARSE_NAMES.search(chain[0]))
        return sum(map(_is_place, chain)), len(chain), large, distinct[chain[-1]]

    best: dict[str, tuple[str, ...]] = {}
    order = sorted(
        columns,
        key=lambda name: (distinct[name], KNOWN_LEVEL_DEPTHS.get(name.lower(), 0), _holds_area_names(name)),
    )
    for fine in order:
        above = [
            (*chain, fine)
            for coarse, chain in best.items()
            if all(level in decided[fine] for level in chain) and _is_coarser(coarse, fine, distinct)
        ]
        best[fine] = max([(fine,), *above], key=worth)
    chains = [chain for chain in best.values() if len(chain) > 1 or _is_place(chain[0])]
    return max(chains, key=worth, default=())


def _is_coarser(coarse: str, fine: str, distinct: Mapping[str, int]) -> bool:
    """Return whether a column has fewer codes, or is the coarser level of a known spine."""
    if distinct[coarse] != distinct[fine]:
        return distinct[coarse] < distinct[fine]
    known = KNOWN_LEVEL_DEPTHS.get(coarse.lower()), KNOWN_LEVEL_DEPTHS.get(fine.lower())
    return known[0] is not None and known[1] is not None and known[0] < known[1]


def _holds_area_names(name: str) -> bool:
    """Return whether the column holds the names of areas, which stand beside their codes."""
    return bool(names.LABEL_NAMES.search(name))
