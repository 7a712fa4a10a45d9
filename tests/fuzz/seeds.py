"""Valid inputs that mutations start from: schemas, plans, specifications, records, a packet, an interrupted run."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from small_census import CENSUS, households
from stirred.chance import Key
from stirred.publish import load, run
from stirred.publish.run import execute

KEY = Key.for_tests(3)
RICH = """format = 1
name = "town"
label = "A town"
largest_household = 12
copies = 1
[geography]
spine = ["state", "county"]
level.county = {column = "county", label = "County"}
[geography.off_spine.place]
of = "county"
nests_in = "state"
files = ["places.csv"]
key = "county"
[record.household]
files = ["household.csv"]
separator = ","
header = true
encoding = "utf8"
id = "household_id"
size = "size"
weight = ""
leave_out = []
where = {state = ["1"]}
[record.household.variables]
size = {type = "integer", range = "1..9"}
tenure = {codes_from = {file = "codes.csv", code = "code", label = "label"}, missing = "error"}
[[rule]]
name = "small"
record = "household"
forbid = {size = "8..9", tenure = ["r"]}
"""
SWAP = """title = "t"
census = "census.toml"
engine = "local"
invalid = "refuse"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county"]
rate = "1/3"
[publish]
microdata = true
formats = ["parquet", "csv"]
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
[[reason]]
invariant = "state population"
kind = "law"
text = "apportionment"
[budget]
limit = "20"
owner = "office"
[assess]
utility = false
relations = [["county", "tenure"]]
"""
MARGINS = """title = "m"
census = "census.toml"
[[mechanism]]
name = "exact-margins"
record = "household"
rows = "county"
columns = "tenure"
rho_squared = "1/2"
both = true
[publish]
microdata = false
[[table]]
name = "a"
by = ["county"]
"""
TOPDOWN = """title = "d"
census = "census.toml"
[[mechanism]]
name = "topdown"
workload = "small"
replicates = 0
label = "first"
[[mechanism]]
name = "swapping-varying-rates"
match = ["state"]
swap = ["county"]
rate = "1/3"
by = "tenure"
rates = {o = "1/3", r = "1/4"}
"""
PLANS = (SWAP, MARGINS, TOPDOWN)
SCHEMAS = (CENSUS, RICH)


def town(folder: Path) -> Path:
    """A census of sixty households with its plan."""
    (folder / "census.toml").write_text(CENSUS)
    (folder / "household.csv").write_text(households(60))
    (folder / "codes.csv").write_text("code,label\no,owned\nr,rented\n")
    (folder / "places.csv").write_text("county,place\n1,a\n2,a\n3,b\n")
    (folder / "plan.toml").write_text(SWAP.replace('relations = [["county", "tenure"]]\n', ""))
    return folder


def packet(folder: Path) -> Path:
    """The packet of the town."""
    return run(load(folder / "plan.toml"), folder / "packet", key=KEY, internal=False).folder


def interrupted(folder: Path, name: str = "again") -> Path:
    """The folder of a run that stopped when its mechanism had finished."""

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as once:
        once.setattr(execute, "write", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(load(folder / "plan.toml"), folder / name, key=KEY, internal=False)
    return folder / f"{name}.part"


def parquet(folder: Path) -> bytes:
    """The households as a Parquet file."""
    pl.read_csv(folder / "household.csv").write_parquet(folder / "made.parquet")
    content = (folder / "made.parquet").read_bytes()
    (folder / "made.parquet").unlink()
    return content


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def restore(folder: Path, content: dict[str, bytes]) -> None:
    """Make a folder hold just these files."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
