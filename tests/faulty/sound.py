"""A sound census: households and persons of two regions, with a plan and a workload; every value of a record is a marker."""

import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

# Every identifier, area and note holds these digits; nothing else in a message, a log or a file name does.
MARK = "7391"
NOTE = f"MARK{MARK}"  # in a column that no schema names: it is never read, and never released
HOMES = 120
CENSUS = """name = "popis"
largest_household = 6
[geography]
spine = ["oblast", "opstina"]
[geography.areas]
files = ["mesta.csv"]
[record.household]
files = ["household.csv"]
id = "dom"
size = "clanova"
weight = "tezina"
kind = {column = "vrsta", occupied = ["stan"], group_quarters = ["zavod"]}
[record.household.variables]
clanova = "1..6"
soba = {type = "integer", missing = "keep"}
grejanih = {type = "integer", missing = "keep"}
krov = ["crep", "lim", "slama"]
[record.person]
files = ["person.csv"]
id = "osoba"
household = "dom"
[record.person.variables]
pol = ["m", "ž"]
starost = "0..100"
rad = ["ne", "da"]
[[rule]]
name = "no child works"
record = "person"
forbid = {starost = "0..14", rad = ["da"]}
[[rule]]
name = "no more heated rooms than rooms"
record = "household"
at_most = ["grejanih", "soba"]
"""
PLAN = """title = "Popis"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["oblast", "clanova"]
swap = ["opstina"]
rate = "1/5"
[[table]]
name = "krov-po-opstini"
by = ["opstina", "krov"]
[[reason]]
invariant = "households by clanova × oblast × opstina"
kind = "operation"
text = "the addresses are already public"
[budget]
owner = "Metodolog"
"""
WORKLOAD = """name = "osobe"
record = "person"
rho_squared = "1"
levels = ["oblast", "opstina"]
[[axis]]
name = "pol"
labels = ["m", "ž"]
source = { column = "pol", values = [["m"], ["ž"]] }
[[query]]
name = "total"
[[query]]
name = "detailed"
of = ["pol"]
[level_shares]
oblast = "1/2"
opstina = "1/2"
[query_shares]
oblast = { detailed = 1 }
opstina = { total = "1/2", detailed = "1/2" }
"""
SWAP = ("--match", "oblast", "clanova", "--swap", "opstina", "--rate", "1/5")


def homes() -> pl.DataFrame:
    """The households."""
    dice = random.Random(1)
    region = [dice.randrange(2) for _ in range(HOMES)]
    rooms = [dice.randint(1, 5) for _ in range(HOMES)]
    return pl.DataFrame(
        {
            "dom": [f"D{MARK}{i:04}" for i in range(HOMES)],
            "oblast": [f"O{MARK}-{place}" for place in region],
            "opstina": [f"P{MARK}-{place}{dice.randrange(3)}" for place in region],
            "clanova": [dice.randint(1, 3) for _ in range(HOMES)],
            "vrsta": ["stan"] * HOMES,
            "soba": rooms,
            "grejanih": [dice.randint(0, most) for most in rooms],
            "krov": [dice.choice(["crep", "lim", "slama"]) for _ in range(HOMES)],
            "tezina": [dice.choice([1.5, 2.25]) for _ in range(HOMES)],
            "beleška": [NOTE] * HOMES,
        }
    )


def persons(households: pl.DataFrame) -> pl.DataFrame:
    """The persons of the households."""
    dice = random.Random(2)
    links = [dom for dom, size in households.select("dom", "clanova").rows() for _ in range(size)]
    ages = [dice.randint(0, 100) for _ in links]
    return pl.DataFrame(
        {
            "osoba": [f"I{MARK}{i:04}" for i in range(len(links))],
            "dom": links,
            "pol": [dice.choice("mž") for _ in links],
            "starost": ages,
            "rad": [dice.choice(["da", "ne"]) if age > 14 else "ne" for age in ages],
            "beleška": [NOTE] * len(links),
        }
    )


def areas() -> pl.DataFrame:
    """The file of areas."""
    regions = [(f"O{MARK}-{place}", "") for place in range(2)]
    below = [(f"P{MARK}-{place}{number}", f"O{MARK}-{place}") for place in range(2) for number in range(3)]
    return pl.DataFrame([*regions, *below], schema=["code", "parent"], orient="row")


@dataclass(slots=True)
class Files:
    """A census in a folder, to be damaged."""

    folder: Path

    @staticmethod
    def sound(folder: Path) -> "Files":
        """Write the census, its plan and its workload without a fault."""
        made = homes()
        for name, frame in (("household", made), ("person", persons(made)), ("mesta", areas())):
            frame.write_csv(folder / f"{name}.csv")
        for name, text in (("census", CENSUS), ("plan", PLAN), ("workload", WORKLOAD)):
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return Files(folder)

    def __getitem__(self, name: str) -> Path:
        return self.folder / name

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        """Change the text of a file; a change that finds nothing is a fault of the test."""
        before = self[name].read_text(encoding="utf-8")
        after = change(before)
        assert after != before, name
        self[name].write_text(after, encoding="utf-8")

    def put(self, record: str, column: str, value: str | None, *, row: int = 5) -> None:
        """Replace one value of one record; all columns are text, as in the file."""
        path = self[f"{record}.csv"]
        frame = pl.read_csv(path, infer_schema=False)
        place = pl.int_range(pl.len()) == row
        frame = frame.with_columns(
            pl.when(place).then(pl.lit(value, pl.String)).otherwise(pl.col(column)).alias(column)
        )
        frame.write_csv(path)

    def typed(self, record: str, **columns: pl.Series) -> None:
        """Store a record type as Parquet, with some columns replaced."""
        frame = pl.read_csv(self[f"{record}.csv"])
        frame.with_columns(series.alias(name) for name, series in columns.items()).write_parquet(
            self[f"{record}.parquet"]
        )
        self[f"{record}.csv"].unlink()
        self.edit("census.toml", lambda text: text.replace(f"{record}.csv", f"{record}.parquet"))

    def tables(self) -> dict[str, pl.DataFrame]:
        """The damaged records as tables in memory: text as in the file, or the types of Parquet."""
        return {
            record: pl.read_csv(self[f"{record}.csv"], infer_schema=False)
            if self[f"{record}.csv"].exists()
            else pl.read_parquet(self[f"{record}.parquet"])
            for record in ("household", "person")
        }

    def document(self) -> dict[str, object]:
        """The schema as a document for ``Census.of``; areas are looked up in a file, which tables do not have."""
        document = tomllib.loads(self["census.toml"].read_text(encoding="utf-8"))
        document["geography"].pop("areas", None)
        return document
