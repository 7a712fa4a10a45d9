"""The unedited path from the files of a layout to a verified packet, and what an adversary finds. Run it to print both.

The path is ``data describe``, ``plan new``, ``run``, ``packet verify``, with nothing edited between them. The adversary
asks of every released column which share of the records has a value that no other record has, alone and together with the
finest place that is released.
"""

import contextlib
import io
import json
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import stirred as st
from door.dangers import inside
from layouts import LAYOUTS, Layout
from stirred.census.schema import MAX_SINGLE_SHARE
from stirred.cli.main import main

NOT_DECIDED = "not decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Singled:
    """The share of the records that one released column singles out, alone and with the finest place."""

    record_type: str
    column: str
    alone: float
    with_place: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """What the unedited path gave: the commands' documents, the released columns, what these single out."""

    described: dict[str, Any]
    document: dict[str, Any]
    planned: dict[str, Any]
    answers: int  # words that name a sheet or a table
    open_questions: int  # that the path leaves to the user, none of which stops it
    released: dict[str, frozenset[object]]
    columns: tuple[str, ...]  # without numbers that the release made, counts and their errors
    singled: tuple[Singled, ...]


def command(*arguments: str) -> dict[str, Any]:
    """Run a command that must succeed; returns its JSON document."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, "--json"])
    assert code == 0, err.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def make_packet(layout: Layout, folder: Path) -> Packet:
    """Go the unedited path in a folder, with a key for tests so that it gives the same packet again."""
    with inside(folder):
        given = layout.write(folder)
        described = command("data", "describe", *given, "--out", "census.toml")
        planned = command("plan", "new", "--census", "census.toml", "--out", "plan.toml")
        st.Key.for_tests(1).save(folder / "tests.key")
        command("plan", "check", "plan.toml")
        command("run", "plan.toml", "--out", "packet", "--public-only", "--key", "tests.key")
        command("packet", "verify", "packet")
        census = st.read(folder / "census.toml")
    document = tomllib.loads(described["toml"])
    frames = _records(folder / "packet" / "public", census)
    singled = tuple(_singled(census, frames))
    tables = [pl.read_parquet(path) for path in sorted((folder / "packet" / "public").rglob("*.parquet"))]
    released: dict[str, set[object]] = {}
    for column in (column for table in tables for column in table.iter_columns()):
        released.setdefault(column.name, set()).update(column)
    return Packet(
        described=described,
        document=document,
        planned=planned,
        answers=sum(word in ("--table", "--sheet") for word in given),
        open_questions=described["toml"].count(NOT_DECIDED) + len(planned["undecided"]),
        released={name: frozenset(values) for name, values in released.items()},
        columns=tuple(dict.fromkeys(one.column for one in singled)),
        singled=singled,
    )


def _records(public: Path, census: st.Census) -> dict[str, pl.DataFrame]:
    """The released records; where tables alone are released, those columns of the census that the tables count by."""
    data = {record.name: public / "data" / f"{record.name}.parquet" for record in census.schema.records}
    found = {name: pl.read_parquet(path) for name, path in data.items() if path.exists()}
    if found:
        return found
    counted = {name for path in public.rglob("*.parquet") for name in pl.read_parquet_schema(path)}
    first = census.schema.records[0].name
    names = [name for name in census.columns(first) if name in counted]
    return {first: census.scan(first, names).collect()}


def _singled(census: st.Census, frames: dict[str, pl.DataFrame]) -> Iterator[Singled]:
    """Identifiers and links of the released records are new numbers, which name nobody: they are not asked about."""
    schema = census.schema
    numbers = {
        name for record in schema.records for name in (record.id, record.household, record.household_from)
    }
    for name, frame in frames.items():
        record = schema.record(name)
        home = frames.get(record.linked_to)
        whole = frame
        if home is not None:
            areas = [level for level in schema.spine if level in home.columns and level not in frame.columns]
            key = schema.record(record.linked_to).id
            places = home.select(pl.col(key).alias(record.household), *areas)
            whole = frame.join(places, on=record.household, how="left")
        place = next((level for level in reversed(schema.spine) if level in whole.columns), "")
        for column in frame.columns:
            if column not in numbers:
                both = [column, place] if place and place != column else []
                yield Singled(
                    record_type=name,
                    column=column,
                    alone=_share(whole, [column]),
                    with_place=_share(whole, both) if both else None,
                )


def _share(frame: pl.DataFrame, by: list[str]) -> float:
    filled = frame.drop_nulls(by[0])
    alone = filled.group_by(by).len().filter(pl.col("len") == 1).height
    return alone / max(filled.height, 1)


PATH_HEAD = (
    "| layout | lines answered | questions left open | columns released (by bands: *) |",
    "|---|---|---|---|",
)
ADVERSARY_HEAD = ("| layout | records | column | alone | with the place |", "|---|---|---|---|---|")


def path_line(name: str, layout: Layout, packet: Packet) -> str:
    """The line of a layout in the table of paths."""
    told = ", ".join(f"{column}*" if column in layout.banded else column for column in packet.columns)
    return f"| {name} | {packet.answers} | {packet.open_questions} | {told} |"


def adversary_lines(name: str, packet: Packet) -> list[str]:
    """The lines of a layout in the adversary's table."""
    return [
        f"| {name} | {one.record_type} | {one.column} | {one.alone:.1%} | "
        f"{'–' if one.with_place is None else f'{one.with_place:.1%}'} |"
        for one in packet.singled
    ]


def made_of_all() -> Iterator[tuple[str, Layout, Packet]]:
    """Every layout with its packet."""
    for name, layout in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            yield name, layout, make_packet(layout, Path(folder))


def show() -> None:
    """Print both tables, and the largest shares."""
    made = list(made_of_all())
    print("\n".join([*PATH_HEAD, *(path_line(*one) for one in made)]))
    print(
        "\n".join(
            [*ADVERSARY_HEAD, *(line for name, _, packet in made for line in adversary_lines(name, packet))]
        )
    )
    every = [one for _, _, packet in made for one in packet.singled]
    worst, both = max(one.alone for one in every), max(one.with_place or 0 for one in every)
    print(
        f"{len(every)} columns; alone at most {worst:.1%} (floor {MAX_SINGLE_SHARE:.0%}), with the place {both:.1%}"
    )


if __name__ == "__main__":
    show()
