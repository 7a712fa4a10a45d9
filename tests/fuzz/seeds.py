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


_RACES = "|".join([*(f"QRACE{place}" for place in range(1, 9)), "QSPAN"])
_BLOCKS = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK"
_PLACES = f"{_BLOCKS}|PLACEFP|AIANNHCE\n01|001|000001|0001|22800|0001\n01|001|000001|1002|99999|9999\n"
# folders in the formats of the Bureau: SafeTab, PHSafe, and the microdata of DHC
BUREAU: dict[str, dict[str, str]] = {
    "safetab": {
        "GRF-C.txt": _PLACES,
        "person-records.txt": f"QAGE|QSEX|HOUSEHOLDER|{_BLOCKS}|CENRACE|{_RACES}\n"
        "028|1|True|01|001|000001|0001|01|1000|Null|Null|Null|Null|Null|Null|Null|1010\n"
        "115|2|False|01|001|000001|1002|63|1012|1021|Null|Null|Null|Null|Null|Null|2020\n",
        "household-records.txt": f"{_BLOCKS}|HHRACE|{_RACES}|HOUSEHOLD_TYPE|TEN\n"
        "01|001|000001|1002|09|1011|1012|Null|Null|Null|Null|Null|Null|1010|5|3\n",
    },
    "phsafe": {
        "persons.csv": "RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP\n3,1,30,1,1,20\n3,1,31,2,63,21\n5,2,80,1,3,37\n",
        "units.csv": "RTYPE,MAFID,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT\n2,1,1,1,1,1,1,1\n4,2,0,0,0,0,0,0\n",
        "geo.csv": f"RTYPE,MAFID,{_BLOCKS.replace('|', ',')}\n2,1,01,001,000001,0001\n4,2,01,001,000001,1002\n",
    },
    "mdf": {
        "mdf-person.txt": f"{_BLOCKS}|RTYPE|GQTYPE|RELSHIP|QSEX|QAGE|CENHISP|CENRACE|LIVE_ALONE\n"
        "01|001|000001|0001|3|000|20|1|30|1|01|1\n01|001|000001|1002|5|301|37|2|80|2|63|9\n",
        "mdf-unit.txt": f"{_BLOCKS}|RTYPE|GQTYPE|TEN|VACS|HHSIZE|HHT|CPLT|MULTG|HHLDRAGE|HHSPAN|HHRACE|PAOC|P18|P60|P65|P75"
        "|PAC|HHSEX\n01|001|000001|0001|2|000|1|0|1|4|5|1|3|1|1|4|0|0|0|0|4|1\n"
        "01|001|000001|1002|4|301|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n",
    },
}
MEASURED = """title = "n"
census = "census.toml"
[[mechanism]]
name = "topdown"
workload = "workload.toml"
replicates = 0
keep_nmf = true
"""


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


def interrupted(folder: Path, name: str = "again", plan: str = "plan.toml") -> Path:
    """The folder of a run that stopped when its mechanism had finished."""

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(load(folder / plan), folder / name, key=KEY, internal=False)
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
