"""Forty faults of census files: each is a function that damages a sound census."""

import datetime as dt
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from faulty.sound import HOMES, MARK, Files

BAD = f"X{MARK}"  # a code that no schema lists
NUMBER = f"{MARK}99"  # a number that is too large for anything


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: what is wrong, how it comes about, and whether the census is right all the same."""

    name: str
    damage: Callable[[Files], object]
    right: bool = False  # the release is made, and says what the release of the sound census says
    tables: bool = True  # the fault is one of the records, so tables in memory can have it too
    slow: bool = False

    @property
    def id(self) -> str:
        """The name as one word."""
        return "-".join(self.name.split())


def _first(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _twice(files: Files, record: str, column: str) -> None:
    value = pl.read_csv(files[f"{record}.csv"], infer_schema=False)[column][0]
    files.put(record, column, value)


def _header(files: Files, change: Callable[[list[str]], list[str]]) -> None:
    lines = [line.split(",") for line in _first(files["household.csv"])]
    text = "\n".join(",".join(change(line)) for line in lines)
    files["household.csv"].write_text(text + "\n", encoding="utf-8")


def _bytes(files: Files, name: str, change: Callable[[bytes], bytes]) -> None:
    path = files[name]
    path.write_bytes(change(path.read_bytes()))


def _area(files: Files, text: str) -> None:
    files.edit("mesta.csv", lambda before: before + text)


def _zipped(files: Files) -> None:
    whole = gzip.compress(files["household.csv"].read_bytes())
    files["household.csv.gz"].write_bytes(whole[: len(whole) // 2])
    files["household.csv"].unlink()
    files.edit("census.toml", lambda text: text.replace("household.csv", "household.csv.gz"))


def _parquet(files: Files, keep: float) -> None:
    files.typed("household")
    _bytes(files, "household.parquet", lambda whole: whole[: int(keep * len(whole))])


def _folder(files: Files) -> None:
    files["household.csv"].unlink()
    files["household.csv"].mkdir()


def _circle(files: Files) -> None:
    files["household.csv"].unlink()
    files["household.csv"].symlink_to(files["household.csv"])


def _unreadable(files: Files) -> None:
    """The memory of this process: it can be opened, and its first page cannot be read."""
    files["household.csv"].unlink()
    files["household.csv"].symlink_to("/proc/self/mem")


def _copies(files: Files, rows: int) -> None:
    """Many households; the last one has a code that the schema does not list."""
    frame = pl.read_csv(files["household.csv"], infer_schema=False)
    many = frame[
        pl.int_range(rows, eager=True) % frame.height
    ]  # in one piece: many small ones are slow to write
    many = many.with_columns(
        pl.format(f"D{MARK}{{}}", pl.int_range(pl.len())).alias("dom"),
        pl.when(pl.int_range(pl.len()) == rows - 1).then(pl.lit(BAD)).otherwise("krov").alias("krov"),
    )
    many.write_csv(files["household.csv"])
    keep, gone = CENSUS_OF_HOMES
    files.edit("census.toml", lambda text: text[: text.index(gone)].replace(*keep))


CENSUS_OF_HOMES = (('size = "clanova"\n', ""), "[record.person]")


def _wide(files: Files) -> None:
    frame = pl.read_csv(files["household.csv"], infer_schema=False)
    frame.with_columns(pl.lit(BAD).alias(f"stara{i}") for i in range(190)).write_csv(files["household.csv"])


def _alike(files: Files, letters: str) -> None:
    """Some records of one area have its code with other letters that look the same."""
    old = f"P{MARK}-00"
    files.edit("household.csv", lambda text: text.replace(old, f"P{MARK}-0é", 1))
    files.edit("household.csv", lambda text: text.replace(old, f"P{MARK}-0{letters}", 1))
    files.edit("census.toml", lambda text: text.replace('[geography.areas]\nfiles = ["mesta.csv"]\n', ""))


def _number_of_text(files: Files) -> None:
    """Households have the identifiers 0007, persons 7."""
    ids = {
        name: f"{place:07}" for place, name in enumerate(files.tables()["household"]["dom"], start=7391000)
    }
    for record, width in (("household", 9), ("person", 1)):
        frame = pl.read_csv(files[f"{record}.csv"], infer_schema=False)
        made = pl.col("dom").replace_strict(ids).str.zfill(width)
        frame.with_columns(made).write_csv(files[f"{record}.csv"])


RULES: tuple[Fault, ...] = (
    Fault("a code of a household that is not listed", lambda f: f.put("household", "krov", BAD)),
    Fault("a code of a person that is not listed", lambda f: f.put("person", "pol", BAD)),
    Fault("an empty code", lambda f: f.put("household", "krov", None)),
    Fault("an empty identifier", lambda f: f.put("household", "dom", None)),
    Fault("letters in a whole number", lambda f: f.put("household", "soba", BAD)),
    Fault("half a person", lambda f: f.put("household", "clanova", f"1.{MARK}")),
    Fault("an age outside its range", lambda f: f.put("person", "starost", NUMBER)),
    Fault("letters in a weight", lambda f: f.put("household", "tezina", BAD)),
    Fault("an infinite weight", lambda f: f.put("household", "tezina", "inf")),
    Fault("a negative weight", lambda f: f.put("household", "tezina", f"-{NUMBER}")),
    Fault("a negative size", lambda f: f.put("household", "clanova", f"-{NUMBER}")),
    Fault("a size that is not the number of persons", lambda f: f.put("household", "clanova", "6")),
    Fault("a household without persons", lambda f: f.put("household", "clanova", "0")),
    Fault("a kind of unit that is not listed", lambda f: f.put("household", "vrsta", BAD)),
    Fault("two households with one identifier", lambda f: _twice(f, "household", "dom")),
    Fault("two persons with one identifier", lambda f: _twice(f, "person", "osoba")),
    Fault("a person of no household", lambda f: f.put("person", "dom", BAD)),
    Fault("a person without a link", lambda f: f.put("person", "dom", None)),
    Fault("an empty area", lambda f: f.put("household", "opstina", None)),
    Fault("an area in two regions", lambda f: f.put("household", "opstina", f"P{MARK}-00", row=_other(f))),
    Fault("an area that is not listed", lambda f: f.put("household", "opstina", BAD), tables=False),
    Fault(
        "areas in a circle",
        lambda f: f.edit("mesta.csv", lambda t: t.replace(f'O{MARK}-0,""\n', f"O{MARK}-0,P{MARK}-00\n", 1)),
        tables=False,
    ),
    Fault("an area with two parents", lambda f: _area(f, f"P{MARK}-00,O{MARK}-1\n"), tables=False),
    Fault("a child that works", lambda f: (f.put("person", "starost", "3"), f.put("person", "rad", "da"))),
    Fault(
        "more heated rooms than rooms",
        lambda f: (f.put("household", "soba", "1"), f.put("household", "grejanih", "4")),
    ),
)


def _other(files: Files) -> int:
    """A household of the second region."""
    return files.tables()["household"]["oblast"].to_list().index(f"O{MARK}-1")


FILES: tuple[Fault, ...] = (
    Fault(
        "Latin-1 text that is declared UTF-8",
        lambda f: _bytes(
            f, "person.csv", lambda b: b.decode().replace("ž", "é").encode("latin-1", errors="replace")
        ),
        tables=False,
    ),
    Fault(
        "UTF-16 with a byte order mark",
        lambda f: _bytes(f, "household.csv", lambda b: b.decode().encode("utf-16")),
        tables=False,
    ),
    Fault(
        "UTF-8 with a byte order mark",
        lambda f: _bytes(f, "household.csv", lambda b: b"\xef\xbb\xbf" + b),
        right=True,
        tables=False,
    ),
    Fault(
        "a CSV file that ends in the middle of a line",
        lambda f: f.edit("household.csv", lambda t: t[: t.rindex(",", 0, -20)]),
    ),
    Fault("a Parquet file that ends in the middle", lambda f: _parquet(f, 0.5), tables=False),
    Fault("a compressed file that ends in the middle", _zipped, tables=False),
    Fault(
        "a line with more fields than the header",
        lambda f: f.edit(
            "household.csv", lambda t: t.replace("\n", f",{BAD},{BAD}\n", 3).replace(f",{BAD}", "", 4)
        ),
        tables=False,
    ),
    Fault(
        "a quotation mark that is not closed",
        lambda f: f.edit("household.csv", lambda t: t.replace("crep", f'"crep {BAD}', 1)),
        tables=False,
    ),
    Fault(
        "a code with a combining accent",
        lambda f: f.edit("person.csv", lambda t: t.replace("ž", "z\u030c", 1)),
    ),
    Fault(
        "a code with a space of no width",
        lambda f: f.edit("household.csv", lambda t: t.replace("crep", "crep\u200b", 1)),
    ),
    Fault("two areas that look the same", lambda f: _alike(f, "e\u0301")),
    Fault("a date in a whole number", lambda f: f.put("person", "starost", "1939-07-03")),
    Fault(
        "dates where codes are declared",
        lambda f: f.typed("household", krov=pl.Series([dt.date(1991, 7, 3)] * HOMES)),
    ),
    Fault(
        "truth values where codes are declared",
        lambda f: f.typed("household", krov=pl.Series([True, False] * (HOMES // 2))),
    ),
    Fault(
        "lists where codes are declared",
        lambda f: f.typed("household", krov=pl.Series([[BAD]] * HOMES)),
    ),
    Fault(
        "NaN where a number is declared",
        lambda f: f.typed("household", clanova=pl.Series([float("nan"), *[1.0] * (HOMES - 1)])),
    ),
    Fault(
        "a column that stands twice in the header",
        lambda f: _header(f, lambda line: [*line, "krov" if line[0] == "dom" else BAD]),
        tables=False,
    ),
    Fault(
        "a column that is missing",
        lambda f: _header(f, lambda line: line[:7] + line[8:]),
    ),
    Fault("200 columns", _wide, right=True),
    Fault(
        "a file without a header",
        lambda f: f.edit("household.csv", lambda t: t.partition("\n")[2]),
        tables=False,
    ),
    Fault(
        "a file of text without a header",
        lambda f: f.tables()["person"].drop("starost").write_csv(f["person.csv"], include_header=False),
        tables=False,
    ),
    Fault(
        "a separator that is not the declared one",
        lambda f: f.edit("census.toml", lambda t: t.replace('id = "dom"', 'id = "dom"\nseparator = ";"')),
        tables=False,
    ),
    Fault(
        "a header without records",
        lambda f: f.edit("household.csv", lambda t: t.partition("\n")[0] + "\n"),
    ),
    Fault(
        "a header in the middle of the file",
        lambda f: f.edit("household.csv", lambda t: t + t),
        tables=False,
    ),
    Fault(
        "zero bytes at the end of a file",
        lambda f: _bytes(f, "household.csv", lambda b: b + b"\0" * 4096),
        tables=False,
    ),
    Fault(
        "a spreadsheet that is named .csv",
        lambda f: _bytes(f, "household.csv", lambda b: b"PK\x03\x04\x14\x00" + gzip.compress(b)),
        tables=False,
    ),
    Fault("a link that leads in a circle", _circle, tables=False),
    Fault("a file that the disk cannot read", _unreadable, tables=False),
    Fault(
        "a decimal comma that is not declared",
        lambda f: f.put("household", "tezina", f"1,{MARK}"),
    ),
    Fault(
        "a code with other capitals",
        lambda f: f.put("household", "krov", "Crep"),
    ),
    Fault(
        "a code with a space behind it",
        lambda f: f.put("household", "krov", "crep "),
    ),
    Fault(
        "a number too large for 64 bits",
        lambda f: f.put("household", "soba", MARK * 8),
    ),
    Fault("an empty file", lambda f: f["household.csv"].write_bytes(b""), tables=False),
    Fault("a folder in place of a file", _folder, tables=False),
    Fault("no file", lambda f: f["person.csv"].unlink(), tables=False),
    Fault("identifiers with zeros in front and without", _number_of_text),
    Fault("200,000 records with one bad code", lambda f: _copies(f, 200_000), tables=False),
)
SLOW = Fault(
    "10 million records with one bad code", lambda f: _copies(f, 10_000_000), tables=False, slow=True
)
FAULTS = (*RULES, *FILES)
