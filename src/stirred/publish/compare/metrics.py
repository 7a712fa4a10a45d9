"""Metrics of a packet against the truth, in the layout of the Bureau's Detailed Summary Metrics. Internal."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from stirred.assess.assessment import assess_tables
from stirred.census import Census
from stirred.closed_files import closed_file
from stirred.errors import InputError, MissingExtraError
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.lookup import MEASURES


def metrics_of(packet: Packet, truth: Census) -> pl.DataFrame:
    """Return all metrics of all published tables, one row per table and size class; exact ones without error."""
    tables = {}
    for name, record_type in packet.tables().items():
        table = pq.read_table(packet.public / "tables" / f"{name}.parquet")
        by = [column for column in table.column_names if column not in MEASURES]
        tables[name] = (record_type, by, table)
    return assess_tables(str(packet.receipt().get("title", "")), truth, tables).summary()


def write_metrics(metrics: pl.DataFrame, out: Path) -> None:
    """Write CSV or XLSX by the name of the file, whole or not at all."""
    if out.suffix not in (".csv", ".xlsx"):
        raise InputError(
            f"metrics cannot be written to {out.name}",
            why="the ending of its name is neither .csv nor .xlsx",
            fix="name the file .csv or .xlsx",
        )
    with closed_file(out) as place:
        if out.suffix == ".csv":
            metrics.write_csv(place)
            return
        try:
            metrics.write_excel(place, worksheet="Detailed Summary Metrics")
        except ModuleNotFoundError:
            raise MissingExtraError(
                "a workbook cannot be written",
                why="it needs a package that is not installed",
                fix="pip install 'stirred[xlsx]'",
            ) from None
