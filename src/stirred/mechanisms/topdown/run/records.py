"""Make the released tables: microdata of the lowest level, totals, estimates, certificates, and the MDF."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pads
from stirred.engine.tables import ROWS_PER_BATCH, ReleasedFile, plain_schema
from stirred.frames import frame_of
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityTypes
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.histogram import HistogramAxis, Query, name_column
from stirred.mechanisms.topdown.measure import Allotment
from stirred.mechanisms.topdown.solve.parent import Certificate
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Rule, Workload

# Make the released tables: microdata of the lowest level, totals, estimates with intervals, certificates.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS_PER_PIECE = 1 << 20
EMPTY_TYPE = pa.string()  # the type of the column of a table without levels
REPLICATE_FIELDS = (pa.field("replicate", pa.int16()), pa.field("count", pa.int32()))
Z90 = 1.6448536269514722


def make_microdata(
    workload: Workload, spine: Tree, leaves: Sparse, *, bureau: bool = False
) -> Iterator[pa.Table]:
    """Yield one row per record, by area and cell: an order that reveals nothing of the confidential file."""
    names = dict(workload.columns) if bureau else {}
    levels = list_shown_levels(spine)
    dictionaries = {d: _read_codes(spine, d) for d, _ in levels}
    node, entry = leaves.nodes, 0
    while entry < len(node) or entry == 0:
        end = int(np.searchsorted(np.cumsum(leaves.counts[entry:]), ROWS_PER_PIECE)) + 1 + entry
        rows = np.repeat(np.arange(entry, min(end, len(node))), leaves.counts[entry:end])
        columns: dict[str, pa.Array] = {}
        for d, level in levels:
            index = _find_ancestors(spine, node[rows], d)
            columns[level] = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), dictionaries[d])
        for axis, value in zip(
            workload.histogram.axes, workload.histogram.coordinates(leaves.cells[rows]), strict=True
        ):
            name, offset = name_column(axis, names)
            columns[name] = pa.array(value + offset, pa.int16())
        yield pa.table(columns)
        entry = max(end, 1)


def list_shown_levels(spine: Tree) -> list[tuple[int, str]]:
    """Return depth and name of the levels in the records: all except a root that is not an area."""
    unnamed = spine.size(0) and str(spine.codes[0][0]) == ""
    first = 1 if spine.levels[0] == "root" or unnamed else 0
    return list(enumerate(spine.levels))[first:]


def collect_pieces(pieces: Iterator[pa.Table], path: Path | None) -> "pa.Table | pads.Dataset":
    """Return the pieces as one table, or write them to a Parquet file and open it."""
    if path is None:
        return pa.concat_tables(list(pieces))
    first = next(pieces)
    with closing(ReleasedFile(path, first.schema)) as file:
        for piece in chain([first], pieces):
            file.add(piece)
    return pads.dataset(path)


def tabulate_totals(spine: Tree, depth: int, value: Ints) -> pa.Table:
    """Return the totals of one level."""
    return pa.table({**_name_geounits(spine, depth), "total": pa.array(value, pa.int64())})


def tabulate_estimates(spine: Tree, informed: TreeEstimate) -> list[pa.Table]:
    """Return unbiased totals with exact standard deviations and 90 % intervals, by level above the leaves."""
    covariance = whole_tree.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    return [
        tabulate_level_estimates(spine, d, informed, level.e, covariance[d])
        for d, level in enumerate(informed.levels)
    ]


def sum_noise(parts: Sequence[pa.Table], allotment: Allotment) -> pa.Table:
    """Count the geounits of all parts of the tree by level, query and standard deviation."""
    whole = pl.DataFrame(pl.from_arrow(pa.concat_tables(parts)))
    queries = pl.Enum([query.name for query in allotment.workload.queries])
    found = whole.group_by("depth", "level", "query", "standard_deviation").agg(pl.col("geounits").sum())
    found = found.sort("depth", pl.col("query").cast(queries), "standard_deviation")
    return found.drop("depth").to_arrow().cast(parts[0].schema.remove(0))


def join_tables(
    above: Sequence[pa.Table], below: Sequence[pa.Table], empty: pa.DataType = EMPTY_TYPE
) -> pa.Table:
    """Join the tables of all levels into one; those of subtrees are many and small."""
    tables = [*above]
    if below:
        tables.append(pa.concat_tables(below).combine_chunks())
    return pa.concat_tables(tables) if tables else pa.table({"level": pa.array([], empty)})


def assemble_pieces(pieces: Iterator[pa.Table], folder: Path | None) -> pa.Table:
    """Return the pieces as one table, in memory or mapped from an unnamed file in the folder."""
    if folder is None:
        return pa.concat_tables(list(pieces))
    first = next(pieces)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=folder)
    os.close(descriptor)
    try:
        plain = plain_schema(first.schema)
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, plain) as writer:
            for piece in chain([first], pieces):
                writer.write_table(piece.cast(plain))
        with pa.memory_map(name) as source:
            return pa.ipc.open_file(source).read_all()
    finally:
        Path(name).unlink()


def tabulate_replicate(
    workload: Workload, spine: Tree, leaves: Sparse, number: int, *, bureau: bool = False
) -> pa.Table:
    """Return one replicate: the columns of the microdata, ``replicate`` and ``count``, by leaf and cell."""
    once = Sparse(leaves.first, leaves.cells, np.ones_like(leaves.counts))
    table = pa.concat_tables(list(make_microdata(workload, spine, once, bureau=bureau)))
    table = table.append_column(REPLICATE_FIELDS[0], pa.array(np.full(table.num_rows, number), pa.int16()))
    return table.append_column(REPLICATE_FIELDS[1], pa.array(leaves.counts, pa.int32()))


@dataclass(frozen=True)
class CellsToTabulate:
    """The leaves and cells that release or replicates have: public numbers, and all that a table can list."""

    leaf: str
    axes: tuple[str, ...]
    cells: pl.DataFrame

    @classmethod
    def of(
        cls, workload: Workload, released: "pa.Table | pads.Dataset", again: pa.Table, *, bureau: bool
    ) -> "CellsToTabulate":
        """Collect them from the released records and the replicates' rows."""
        names = dict(workload.columns) if bureau else {}
        axes = tuple(name_column(axis, names)[0] for axis in workload.histogram.axes)
        leaf = again.column_names[again.column_names.index(axes[0]) - 1]
        kinds = {leaf: pl.String, **dict.fromkeys(axes, pl.Int16)}
        found, waiting = pl.DataFrame(schema=kinds), list[pl.DataFrame]()
        for part in chain(_read_columns(released, kinds), _read_columns(again, kinds)):
            waiting.append(part.select(pl.col(name).cast(kind) for name, kind in kinds.items()).unique())
            # often enough that what waits takes no more than what is found, and no more often
            if sum(frame.height for frame in waiting) > max(found.height, ROWS_PER_BATCH):
                found, waiting = pl.concat([found, *waiting]).unique(), []
        return cls(leaf, axes, pl.concat([found, *waiting]).unique())

    def list_cells(self, query: Query) -> pl.DataFrame | None:
        """Return the leaves and cells of a marginal that are listed, or None where all are kept, as of totals."""
        if query.size == 1:
            return None
        return self.cells.select(pl.col(self.leaf).alias("code"), *self._name_axes(query)).unique()

    def _name_axes(self, query: Query) -> list[str]:
        return [name for name, own in zip(self.axes, query.kept, strict=True) if own]

    def select(self, rows: pa.Table, query: Query, wanted: pl.DataFrame | None) -> pa.Table:
        """Return the rows of a marginal whose cell is wanted, in their order; None: all rows."""
        if wanted is None:
            return rows
        kept = self._name_axes(query)
        place = frame_of(rows.select(["code", *kept])).with_row_index("row")
        found = place.join(wanted, on=["code", *kept], how="semi")["row"].sort()
        return rows.take(pa.array(found.to_numpy()))


def tabulate_noise(allotment: Allotment, depths: range) -> pa.Table:
    """Return the standard deviation of the noise by level and query, and the number of its geounits."""
    rows = allotment.list_deviations(depths)
    names = ("depth", "level", "query", "standard_deviation", "geounits")
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.table(columns, names=list(names))


def tabulate_level_estimates(
    spine: Tree, depth: int, informed: TreeEstimate, e: Floats, covariance: Floats
) -> pa.Table:
    """Return the estimates of one level."""
    algebra = informed.algebra
    value = whole_tree.sum_in_order(e)
    variance = whole_tree.variances(algebra, covariance, np.zeros(algebra.K, np.int64), 0)[:, 0]
    sd = np.sqrt(np.maximum(variance, 0.0))
    return pa.table({
        **_name_geounits(spine, depth),
        "estimate": value,
        "standard_deviation": sd,
        "lower_90": value - Z90 * sd,
        "upper_90": value + Z90 * sd,
    })  # fmt: skip


def _name_geounits(spine: Tree, depth: int) -> dict[str, pa.Array]:
    """Return level and code of every geounit of a level."""
    return {
        "level": pa.array([spine.levels[depth]] * spine.size(depth), pa.string()),
        "code": pa.array([str(code) for code in spine.codes[depth]], pa.string()),
    }


def tabulate_certificates(parts: Sequence[Certificate]) -> pa.Table:
    """Return the certificates of every level as a table."""
    return pa.table({
        "level": [c.level for c in parts],
        "parents": [c.parents for c in parts],
        "distance": [c.distance for c in parts],
        "violation": [c.violation for c in parts],
        "iterations": [c.iterations for c in parts],
        "multipliers": [c.multipliers for c in parts],
        "generic": [c.generic for c in parts],
    })  # fmt: skip


def tabulate_repairs(types: FacilityTypes, counts: Sequence[Sequence[int]]) -> pa.Table:
    """Return how many persons were exchanged between leaves, or changed type in one, for bounds by type."""
    exchanged, moved = np.array(counts, np.int64).sum(axis=0).tolist()
    return pa.table({"rule": [types.rule.name], "exchanged": [exchanged], "moved": [moved]})


def _read_codes(spine: Tree, depth: int) -> pa.Array:
    """Return the codes of a level as plain values, text or integers as in the census."""
    codes = spine.codes[depth]
    return (
        codes.to_arrow() if codes.dtype.is_integer() else pa.array([str(code) for code in codes], pa.string())
    )


def _find_ancestors(spine: Tree, leaf: Ints, depth: int) -> Ints:
    node = leaf
    for d in range(len(spine.levels) - 1, depth, -1):
        node = spine.parent[d][node]
    return node


# The microdata detail file: the released records with the columns and codes of the Bureau's files, as text between bars.
#
# Columns after the layouts of the 2020 redistricting files and of the files of DHC. The layouts do not say what number
# a person has or which build a file is of: persons are numbered within their block, and the build is Stirred's.

BUILD_ID = "stirred-1"
GEOGRAPHY = {
    "TABBLKST": (0, 2),
    "TABBLKCOU": (2, 3),
    "TABTRACTCE": (5, 6),
    "TABBLKGRPCE": (11, 1),
    "TABBLK": (11, 4),
}
BLOCK_CODE_DIGITS = 15  # of the code of a block
QUARTERS_CODES = (101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602, 701, 801, 802,
            900, 901, 997)  # fmt: skip
FIRST_QUARTERS_RELATIONSHIP = 18  # the first relationship that is a type of group quarters
INSTITUTIONAL_TYPES = 15  # of the types, the first are institutions
TENURE_LEVELS = 3  # of an occupied unit; the reasons of a vacancy follow
SINGLE_CODE, NO_CHILD_CODE = 4, 3  # the householder without a couple; no own child
UNIT_COLUMNS = (
    "RTYPE", "GQTYPE", "TEN", "VACS", "HHSIZE", "HHT", "HHT2", "CPLT", "UPART", "MULTG", "HHLDRAGE", "HHSPAN", "HHRACE",
    "PAOC", "P18", "P60", "P65", "P75", "PAC", "HHSEX",
)  # fmt: skip
HOUSEHOLD_RECODES = (
    "coupled",
    "own",
    "relatives",
    "minors",
    "young",
    "multig",
    "hhsize",
)  # recodes of the household type
CODE_DIGITS = {"GQTYPE": 3, "HHT2": 2, "HHRACE": 2}  # digits of a code; the others have one
FIRST_COLUMNS = ("SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *GEOGRAPHY)
LAYOUTS = {
    "GQTYPE_PL": ("MPD", (*FIRST_COLUMNS, "EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")),
    "HH_STATUS": ("MUD", (*FIRST_COLUMNS, "RTYPE", "HH_STATUS")),
    "RELSHIP": (
        "MPD",
        (
            *FIRST_COLUMNS,
            "EPNUM",
            "RTYPE",
            "GQTYPE",
            "RELSHIP",
            "QSEX",
            "QAGE",
            "CENHISP",
            "CENRACE",
            "LIVE_ALONE",
        ),
    ),
    "HHTYPE": ("MUD", (*FIRST_COLUMNS, *UNIT_COLUMNS)),
}


def find_layout(workload: Workload) -> str | None:
    """Return the column that identifies the layout of a workload's records, or None."""
    return next((name for _, name in workload.columns if name in LAYOUTS), None)


def make_rows(found: str, records: pl.DataFrame, before: tuple[str, int] = ("", 0)) -> pl.DataFrame:
    """Return released records as rows of the layout; ``before`` is the last block so far and its persons."""
    kind, columns = LAYOUTS[found]
    block = pl.col("block").cast(pl.String)
    frame = records.with_columns(
        SCHEMA_TYPE_CODE=pl.lit(kind), SCHEMA_BUILD_ID=pl.lit(BUILD_ID), **_area_columns()
    )
    if found == "HH_STATUS":
        # Housing units: 1 occupied, 2 vacant; facilities have rows of their own.
        frame = frame.with_columns(
            RTYPE=pl.lit("2"), HH_STATUS=pl.when(pl.col("HH_STATUS") == 1).then(1).otherwise(2)
        )
        return frame.select(pl.col(name).cast(pl.String) for name in columns)
    again = pl.when(block == before[0]).then(before[1]).otherwise(0)
    frame = frame.with_columns(
        EPNUM=pl.int_range(1, pl.len() + 1).over("block") + again,
        CENRACE=pl.col("CENRACE").cast(pl.String).str.zfill(2),
    )
    if found == "GQTYPE_PL":
        frame = frame.with_columns(RTYPE=pl.when(pl.col("GQTYPE_PL") == 0).then(3).otherwise(5))
    else:
        relationship = pl.col("RELSHIP").cast(pl.Int64)
        resident = relationship >= FIRST_QUARTERS_RELATIONSHIP
        codes = {FIRST_QUARTERS_RELATIONSHIP + i: code for i, code in enumerate(QUARTERS_CODES)}
        frame = frame.with_columns(
            RTYPE=pl.when(resident).then(5).otherwise(3),
            GQTYPE=relationship.replace_strict(codes, default=0).cast(pl.String).str.zfill(3),
            RELSHIP=pl.when(relationship >= FIRST_QUARTERS_RELATIONSHIP + INSTITUTIONAL_TYPES)
            .then(38)
            .when(resident)
            .then(37)
            .otherwise(pl.max_horizontal(relationship, 1) + 19),
            LIVE_ALONE=pl.when(relationship == 0).then(1).when(relationship == 1).then(2).otherwise(9),
        )
    return frame.select(pl.col(name).cast(pl.String) for name in columns)


def make_unit_rows(types: HistogramAxis, records: pl.DataFrame) -> pl.DataFrame:
    """Return released units of DHC as rows of its layout; a vacant unit has zeros.

    A household that pays no rent is counted with those who rent, so that TEN is 1, 2 or 3.
    """
    levels = pl.DataFrame(
        {"HHTYPE": range(types.size)} | {name: types.recode(name) for name in HOUSEHOLD_RECODES}
    )
    frame = records.with_columns(pl.col("HHTYPE").cast(pl.Int64)).join(
        levels, on="HHTYPE", how="left", maintain_order="left"
    )
    couple, size, tenure = pl.col("coupled"), pl.col("hhsize") + 1, pl.col("tenvac").cast(pl.Int64)
    home, alone, woman = tenure < TENURE_LEVELS, size == 1, pl.col("sex") == 1
    related, parent, old = pl.col("relatives") == 0, pl.col("own") < NO_CHILD_CODE, pl.col("elderly")
    wed, partners = couple < 2, (couple >= 2) & (couple < SINGLE_CODE)
    by_sex = pl.when(alone).then(0).when(parent).then(1).when(related).then(2).otherwise(3)
    codes = {
        "TEN": tenure + 1,
        "HHSIZE": size,
        "HHT": pl.when(wed)
        .then(1)
        .when(related)
        .then(2 + woman.cast(pl.Int64))
        .otherwise(4 + 2 * woman.cast(pl.Int64) + (~alone).cast(pl.Int64)),
        "HHT2": pl.when(wed)
        .then(2 - parent.cast(pl.Int64))
        .when(partners)
        .then(4 - parent.cast(pl.Int64))
        .otherwise(pl.when(woman).then(5).otherwise(9) + by_sex),
        "CPLT": pl.when(alone).then(0).otherwise(couple + 1),
        "UPART": pl.when(alone)
        .then(0)
        .when(~partners)
        .then(5)
        .otherwise(1 + 2 * woman.cast(pl.Int64) + (couple == 2).cast(pl.Int64)),
        "MULTG": pl.when(size <= 2).then(0).otherwise(pl.col("multig") + 1),
        "HHLDRAGE": pl.col("hhage") + 1,
        "HHSPAN": pl.col("hisp") + 1,
        "HHRACE": pl.col("race") + 1,
        "PAOC": pl.col("own") + 1,
        "P18": pl.col("young"),
        "P60": (old >= 1).cast(pl.Int64),
        "P65": (old >= 2).cast(pl.Int64),
        "P75": (old >= 3).cast(pl.Int64),
        "PAC": pl.col("minors") + 1,
        "HHSEX": pl.col("sex") + 1,
    }
    vacancy = pl.when(home).then(0).otherwise(tenure - TENURE_LEVELS + 1)
    made = {name: pl.when(home).then(code).otherwise(0) for name, code in codes.items()}
    return _fill_unit_rows(frame, {"RTYPE": pl.lit(2), "VACS": vacancy, **made})


def make_facility_rows(counts: pl.DataFrame, found: str = "HH_STATUS") -> pl.DataFrame:
    """Return the rows of group-quarters facilities: record type 4, one row for each facility.

    >>> two = pl.DataFrame({"block": ["390599771001000"], "kind": [3], "count": [2]})
    >>> make_facility_rows(two).select("TABBLK", "RTYPE", "HH_STATUS").rows()
    [('1000', '4', '0'), ('1000', '4', '0')]
    """
    frame = counts.select(pl.col("block", "kind").repeat_by("count")).explode("block", "kind").drop_nulls()
    if found == "HHTYPE":
        codes = {i + 1: code for i, code in enumerate(QUARTERS_CODES)}
        code = pl.col("kind").cast(pl.Int64).replace_strict(codes, return_dtype=pl.Int64)
        return _fill_unit_rows(frame, {"RTYPE": pl.lit(4), "GQTYPE": code})
    return frame.select(
        SCHEMA_TYPE_CODE=pl.lit("MUD"),
        SCHEMA_BUILD_ID=pl.lit(BUILD_ID),
        **_area_columns(),
        RTYPE=pl.lit("4"),
        HH_STATUS=pl.lit("0"),
    )


def _fill_unit_rows(frame: pl.DataFrame, codes: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return rows of the unit file of DHC; a column without a code holds zeros."""
    texts = {
        name: codes.get(name, pl.lit(0)).cast(pl.String).str.zfill(CODE_DIGITS.get(name, 1))
        for name in UNIT_COLUMNS
    }
    return frame.select(
        SCHEMA_TYPE_CODE=pl.lit("MUD"), SCHEMA_BUILD_ID=pl.lit(BUILD_ID), **_area_columns(), **texts
    )


def _area_columns() -> dict[str, pl.Expr]:
    block = pl.col("block").cast(pl.String)
    return {name: block.str.slice(start, size) for name, (start, size) in GEOGRAPHY.items()}


def find_facility_rule(workload: Workload, beside: Sequence[Workload]) -> tuple[Workload, Rule] | None:
    """Return the rule of another workload that counts the facilities among these units, or None."""
    wanted = {"HH_STATUS": None, "HHTYPE": len(QUARTERS_CODES) + 1}  # the file of DHC says the detailed type
    found = find_layout(workload)
    if found not in wanted:
        return None
    pairs = ((one, rule) for one in beside for rule in one.rules if rule.kind == "facilities")
    fits = (
        (one, rule)
        for one, rule in pairs
        if rule.units == workload.record and wanted[found] in (None, one.query(rule.query).size)
    )
    return next(fits, None)


def write_mdf(
    workload: Workload, records: "pa.Table | pads.Dataset", folder: Path, quarters: pl.DataFrame | None = None
) -> Path | None:
    """Write ``mdf-RECORD.txt`` beside the records; return its path, or None without layout or block codes.

    ``quarters`` (block, kind, count) are facilities, which have rows after those of the records.
    """
    found = find_layout(workload)
    if found is None or "block" not in records.schema.names:
        return None
    place = folder / f"mdf-{workload.record}.txt"
    before, first = ("", 0), True
    with place.open("wb") as file:
        for part in _read_parts(records):
            block = part["block"].cast(pl.String)
            if not (block.str.len_chars() == BLOCK_CODE_DIGITS).all():
                place.unlink()
                return None
            made = (
                make_unit_rows(workload.histogram.axis("hhtype"), part)
                if found == "HHTYPE"
                else make_rows(found, part, before)
            )
            made.write_csv(file, separator="|", include_header=first)
            first = False
            if "EPNUM" in made.columns and made.height:
                before = (str(block[-1]), int(made["EPNUM"][-1]))
        if quarters is not None:
            make_facility_rows(quarters, found).write_csv(file, separator="|", include_header=first)
    return place


def _read_columns(records: "pa.Table | pads.Dataset", names: Iterable[str]) -> Iterator[pl.DataFrame]:
    """Yield some columns in batches: those of a table that is mapped from a file are never in memory as a whole."""
    chosen = list(names)
    if isinstance(records, pa.Table):
        batches = iter(records.select(chosen).to_batches(max_chunksize=ROWS_PER_BATCH))
    else:
        batches = records.to_batches(columns=chosen)
    for batch in batches:
        if batch.num_rows:
            yield pl.DataFrame(pa.Table.from_batches([batch]))


def _read_parts(records: "pa.Table | pads.Dataset") -> Iterator[pl.DataFrame]:
    if isinstance(records, pa.Table):
        yield pl.DataFrame(records)
        return
    for batch in records.to_batches():
        if batch.num_rows:
            yield pl.DataFrame(pa.Table.from_batches([batch]))
