"""Read records on Spark, with the columns that come from their household and from files of areas."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from stirred.census import Census
from stirred.census.codebook.schema import RecordSchema
from stirred.census.geography import read_ancestors, read_crosswalk
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.engine.spark.cluster import Cluster
from stirred.engine.spark.flow import SparkFlow, SparkParts
from stirred.engine.spark.reading.files import read_own
from stirred.engine.spark.reading.kernels import KEY_COLUMN, AddAreaCodes, AddLink, JoinLinked, SelectColumns
from stirred.errors import InputError, did_you_mean
from stirred.frames import arrow_of, collect_frame


def read_records(engine: Cluster, census: Census, record_type: str, columns: Sequence[str]) -> SparkFlow:
    """Return the records with exactly these columns, as ``Census.scan`` resolves them."""
    record = census.schema.record(record_type)
    asked = list(dict.fromkeys(columns))
    there = list(census.columns(record_type))
    needed = census._list_needed(asked)
    lacking = [name for name in asked if name not in there]
    if not lacking:
        return read_own(engine, census, record_type, asked)
    keep = [name for name in there if name in {*needed, record.household}]
    wanted: list[str] = []
    if record.linked_to:
        reachable = census.columns(record.linked_to)
        wanted = [name for name in census._list_needed(lacking) if name in reachable and name not in there]
    flow = (
        join_linked(engine, census, record, keep, wanted)
        if wanted
        else read_own(engine, census, record_type, keep or there[:1])
    )
    for look_up in make_lookups(
        census, [name for name in asked if name not in flow.schema.names], flow.schema.names
    ):
        flow = flow.map(look_up, look_up.schema(flow.schema))
    for name in asked:
        if name not in flow.schema.names:
            known_names = sorted({*flow.schema.names, *there})
            raise InputError(
                f"{record.name} records have no column {name}",
                why="it was asked for",
                fix=did_you_mean(name, known_names),
            )
    return flow.map(SelectColumns(tuple(asked)), pa.schema([flow.schema.field(name) for name in asked]))


def join_linked(
    engine: Cluster, census: Census, record: RecordSchema, keep: list[str], wanted: list[str]
) -> SparkFlow:
    """Add columns of linked records: one shuffle brings both sides together by the hash of the link."""
    other = census.schema.record(record.linked_to)
    left = read_own(engine, census, record.name, keep)
    right = read_own(engine, census, other.name, list(dict.fromkeys([other.id, *wanted])))
    kinds = left.schema.field(record.household).type, right.schema.field(other.id).type
    text = kinds[0] != kinds[1]
    parts = engine.parts_for(4 * (estimate_bytes(left) + estimate_bytes(right)))
    key = pa.field(KEY_COLUMN, pa.string() if text else kinds[0])
    placed = PlaceRows((KEY_COLUMN,), parts)
    sides = []
    for flow, column, names in ((left, record.household, keep), (right, other.id, wanted)):
        schema = pa.schema([*(flow.schema.field(name) for name in names), key])
        keyed = flow.map(AddLink(column, text, tuple(names)), schema)
        sides.append(keyed.map(placed, placed.schema(schema)))
    columns = (*keep, *wanted)
    schema = pa.schema([(left if name in keep else right).schema.field(name) for name in columns])
    joined = JoinLinked(record, other, tuple(wanted), columns)
    return SparkParts.of(engine, sides, PART_COLUMN, parts).map(joined, schema).flow()


def make_lookups(census: Census, lacking: list[str], there: list[str]) -> list[AddAreaCodes]:
    """Return kernels that find missing geographic columns by the code of the level that determines them."""
    schema, folder = census.schema, census.folder
    geography = schema.geography
    finest = schema.spine[-1] if schema.spine else ""
    found = []
    levels = [name for name in lacking if name in schema.spine]
    levels += [
        off.of for off in geography.off_spine if off.name in lacking and off.of and off.of not in there
    ]
    levels = [name for name in dict.fromkeys(levels) if name not in there]
    if levels and geography.areas is not None and finest in there:
        found.append(_make_lookup(read_ancestors(schema, folder), finest, levels))
    beside = [off for off in geography.off_spine if off.name in lacking and off.files]
    return found + [
        _make_lookup(read_crosswalk(schema, off.name, folder), off.of, [off.name]) for off in beside
    ]


def _make_lookup(table: pl.LazyFrame, key: str, names: list[str]) -> AddAreaCodes:
    frame = collect_frame(table.select(key, *names))
    return AddAreaCodes(key, arrow_of(frame), tuple(names))


def estimate_bytes(flow: SparkFlow) -> int:
    """Return how many bytes the files of a flow take, as Spark estimates them."""
    return int(str(flow.frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
