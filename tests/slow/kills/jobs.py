"""The plans that are killed: swap with persons, TopDown, and tables only, each on a census whose identifiers are markers."""

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq

import small_town
from stirred.census.synthetic import write_preset

MARK = "ZQ7391"  # in every identifier and in the column memo, which no plan releases
SEX = 'sex = {levels = ["f", "m"]}'
CENSUS = small_town.CENSUS.replace(".csv", ".FORMAT").replace(SEX, SEX + '\nage = "0..99"')
SWAP = """title = "Town"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "block"]
rate = "1/5"
[publish]
formats = ["parquet", "csv"]
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
[[table]]
name = "sex-by-county"
record_type = "person"
by = ["county", "sex"]
"""
TABLES = """title = "Tables of a town"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "block"]
rate = "1/5"
[publish]
microdata = false
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
[[table]]
name = "households-by-block"
by = ["block"]
"""
TOPDOWN = """title = "Town, from the top"
census = "census.toml"
[[mechanism]]
name = "topdown"
workload = "workload.toml"
replicates = 2
keep_nmf = true
[[table]]
name = "sex-by-county"
record_type = "person"
by = ["county", "sex"]
"""
WORKLOAD = """name = "persons"
record = "person"
rho_squared = "1"
levels = ["state", "county", "block"]
[[axis]]
name = "sex"
labels = ["f", "m"]
source = { column = "sex", values = [["f"], ["m"]] }
[[query]]
name = "total"
[[query]]
name = "detailed"
of = ["sex"]
[level_shares]
state = "1/3"
county = "1/3"
block = "1/3"
[query_shares]
state = { detailed = 1 }
county = { total = "1/2", detailed = "1/2" }
block = { total = "1/2", detailed = "1/2" }
"""
PHSAFE = """title = "Town, persons by household"
census = "census.toml"
[[mechanism]]
name = "phsafe"
tau = { PH1_num = 2 }
"""
SAFETAB = """title = "Town, detailed groups"
census = "census.toml"
[[mechanism]]
name = "safetab-p"
preset = ""
codes = "codes"
races = ["tenure"]
ethnicity = ""
sexes = ["f", "m"]
suppression = "0.9"
budget = { STATE-1 = "1", COUNTY-1 = "1" }
thresholds = { STATE-1 = "20,40,9999", COUNTY-1 = "20,40,9999" }
"""
# as das2020 has them: records and two kinds of noisy tables, whose promises compose
PRODUCTS = (
    TOPDOWN[: TOPDOWN.index("[[table]]")]
    + PHSAFE[PHSAFE.index("[[mechanism]]") :]
    + SAFETAB[SAFETAB.index("[[mechanism]]") :]
    + TOPDOWN[TOPDOWN.index("[[table]]") :]
)
LISTS = Path(__file__).resolve().parents[2] / "contract" / "code_lists"
ENOUGH, LITTLE = "4 GB", "60 KB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One plan with the flags of its run."""

    name: str
    plan: str
    flags: tuple[str, ...] = ()
    suffix: str = "csv"
    verb: tuple[str, ...] = ("run", "plan.toml")
    is_demo: bool = False  # on the demo census, which has the variables of all products
    tables_alone: bool = field(default=False)

    def write(self, folder: Path, households: int) -> None:
        """Write census and plan into a new folder."""
        folder.mkdir(parents=True)
        if self.is_demo:
            write_preset("demo", folder / "census", households=households)
            return
        town(folder, households, self.suffix)
        (folder / "plan.toml").write_text(self.plan)
        (folder / "workload.toml").write_text(WORKLOAD)
        (folder / "codes").mkdir()
        for path in LISTS.iterdir():  # their codes are levels of tenure
            text = re.sub(r"\bown\b", "owned", re.sub(r"\brent\b", "rented", path.read_text()))
            (folder / "codes" / path.name).write_text(text)


LOCAL = (
    Job(name="swap in parts", plan=SWAP, flags=("--memory", LITTLE)),
    Job(name="swap in memory", plan=SWAP, flags=("--memory", ENOUGH)),
    Job(name="topdown in parts", plan=TOPDOWN, flags=("--memory", LITTLE)),
    Job(name="topdown in memory", plan=TOPDOWN, flags=("--memory", ENOUGH)),
    Job(name="tables in parts", plan=TABLES, flags=("--memory", LITTLE), tables_alone=True),
    Job(name="tables in memory", plan=TABLES, flags=("--memory", ENOUGH), tables_alone=True),
)
BUREAU = (
    Job(name="phsafe in parts", plan=PHSAFE, flags=("--memory", LITTLE)),
    Job(name="phsafe in memory", plan=PHSAFE, flags=("--memory", ENOUGH)),
    Job(name="safetab in parts", plan=SAFETAB, flags=("--memory", LITTLE)),
    Job(name="safetab in memory", plan=SAFETAB, flags=("--memory", ENOUGH)),
    Job(name="three products in memory", plan=PRODUCTS, flags=("--memory", ENOUGH)),
)
DAS2020 = (
    Job(name="das2020 in memory", plan="", verb=("das2020", "census", "--light"), is_demo=True),
    Job(name="das2020 swapped", plan="", verb=("das2020", "census", "--light", "--swapped"), is_demo=True),
)
SPARK = (
    Job(name="swap on Spark", plan=SWAP, suffix="parquet"),
    Job(name="topdown on Spark", plan=TOPDOWN, suffix="parquet"),
    Job(name="tables on Spark", plan=TABLES, suffix="parquet", tables_alone=True),
)


def town(folder: Path, households: int, suffix: str) -> None:
    """A fictional town whose identifiers can be searched for."""
    rng = random.Random(7)
    homes, people = (
        ["household_id,state,county,block,size,tenure,memo"],
        ["person_id,household_id,sex,age,memo"],
    )
    for number in range(households):
        county, size = rng.randrange(3), 1 + min(rng.randrange(6), rng.randrange(6))
        tenure = "owned" if rng.random() < 0.3 + 0.2 * county else "rented"
        home = f"{MARK}-{number:06}"
        homes.append(f"{home},s,c{county},c{county}b{rng.randrange(8)},{size},{tenure},{MARK}-memo")
        people += [
            f"{MARK}-{number:06}-{i},{home},{'fm'[rng.random() < 0.5]},{(number + 7 * i) % 90},{MARK}-memo"
            for i in range(size)
        ]
    for name, lines in (("household", homes), ("person", people)):
        path = folder / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        if suffix == "parquet":
            pq.write_table(pc.read_csv(path), folder / f"{name}.parquet")
            path.unlink()
    (folder / "census.toml").write_text(CENSUS.replace("FORMAT", suffix))
