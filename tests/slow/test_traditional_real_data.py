"""Two real files through the traditional methods, from census.toml to a packet with its two reports, by the command line."""

from pathlib import Path

import polars as pl
import pytest

from real_censuses import oregon, washington
from shared_data import shared
from stirred.census import Census, read
from stirred.cli.main import main
from stirred.publish import Packet
from stirred.spec.files import load

pytestmark = pytest.mark.slow

REASON = 'without_guarantee = "a test of the method that offices use"\n'
OREGON_TABLES = """
[[table]]
name = "building-by-puma"
by = ["puma", "BLDGSZ"]
[[table]]
name = "persons-by-puma"
by = ["puma", "PERSONS"]
[[table]]
name = "age-by-puma"
record_type = "person"
by = ["puma", "AGE", "WRKLYR"]
[assess]
relations = [["puma", "BLDGSZ"], ["PERSONS", "BLDGSZ"]]
"""
WASHINGTON_TABLES = """
[[table]]
name = "race-by-tract"
by = ["tract", "race"]
[[table]]
name = "size-by-block"
by = ["block", "size"]
[assess]
relations = [["tract", "race"], ["size", "race"]]
segregation = [["tract", "race"]]
"""
OREGON_PLANS = {
    "targeted-swapping": """
hierarchy = ["region", "puma"]
similar = [["PERSONS", "BLDGSZ"], ["PERSONS"]]
risk_variables = ["AGE", "WRKLYR"]
""",
    "swapping-2010": """
swap = ["region", "puma"]
equal = ["PERSONS"]
unique = ["PERSONS", "BLDGSZ"]
""",
    "cell-key": """
record = "person"
tables = [["puma", "AGE", "WRKLYR"], ["puma", "AGE"], ["puma"]]
js = 2
pstay = "0.5"
""",
}
WASHINGTON_PLANS = {
    "targeted-swapping": """
hierarchy = ["county", "tract", "block_group", "block"]
similar = [["state", "size"]]
risk_variables = ["race"]
k_anonymity = 2
""",
    "swapping-2010": """
swap = ["county", "tract", "block_group", "block"]
equal = ["size"]
race = ["race"]
unique = ["race", "size"]
unique_in = "tract"
""",
    "cell-key": """
record = "person"
tables = [["block", "race", "adult"], ["tract", "race"], ["county", "race"]]
js = 2
pstay = "0.5"
""",
}


def packet_of(folder: Path, name: str, settings: str, more: str) -> Packet:
    """The packet of a plan, run and verified by the command line; the cell key method makes its tables itself."""
    if name == "cell-key":
        by = '["puma"]' if "puma" in settings else '["county", "race"]'
        more = (
            f'[publish]\nmicrodata = false\n[[table]]\nname = "totals"\nrecord_type = "person"\nby = {by}\n'
        )
    heading = f'title = "{name} of a real file"\ncensus = "census.toml"\n'
    text = f'{heading}[[mechanism]]\nname = "{name}"\n{settings}{REASON}{more}'
    (folder / f"{name}.toml").write_text(text)
    assert main(["run", str(folder / f"{name}.toml"), "--out", str(folder / name)]) == 0
    assert main(["packet", "verify", str(folder / name)]) == 0
    return Packet(folder / name)


def require_reports(packet: Packet) -> None:
    """Both reports are there, whole, say that there is no guarantee and ask the network for nothing."""
    for part in ("public", "internal"):
        page = (packet.folder / part / "report.html").read_text(encoding="utf-8")
        assert page.rstrip().endswith("</html>")
        assert "no protection loss budget is finite" in page.lower()
        assert 'src="http' not in page
    assert not load(packet.public / "spec.json").budget.is_finite


def table(packet: Packet, name: str) -> pl.DataFrame:
    return pl.read_parquet(packet.public / "tables" / f"{name}.parquet")


@pytest.fixture(scope="module")
def oregon_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oregon")
    oregon(folder, shared("pums2000_oregon", "households.parquet").parent)
    return folder


@pytest.fixture(scope="module")
def washington_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("washington")
    washington(folder, shared("wa2010", "blocks.parquet"))
    return folder


@pytest.mark.parametrize("name", OREGON_PLANS)
def test_oregon(oregon_folder: Path, name: str) -> None:
    packet = packet_of(oregon_folder, name, OREGON_PLANS[name], OREGON_TABLES)
    require_reports(packet)
    census = read(oregon_folder / "census.toml")
    if name == "cell-key":
        _keyed(packet, census, "person", ["puma", "AGE"])
        return
    persons = pl.read_parquet(packet.public / "data" / "person.parquet")
    assert persons.height == 171_666
    sizes = pl.DataFrame(pl.from_arrow(census.counts("household", ["puma", "PERSONS"])))
    assert _same(table(packet, "persons-by-puma"), sizes, ["puma", "PERSONS"])  # partners have the same size
    ages = pl.DataFrame(pl.from_arrow(census.counts("person", ["puma", "AGE", "WRKLYR"])))
    assert not _same(table(packet, "age-by-puma"), ages, ["puma", "AGE", "WRKLYR"])


@pytest.mark.parametrize("name", WASHINGTON_PLANS)
def test_washington(washington_folder: Path, name: str) -> None:
    packet = packet_of(washington_folder, name, WASHINGTON_PLANS[name], WASHINGTON_TABLES)
    require_reports(packet)
    census = read(washington_folder / "census.toml")
    if name == "cell-key":
        _keyed(packet, census, "person", ["tract", "race"])
        return
    for by, exact in ((["block", "size"], True), (["tract", "race"], False)):
        truth = pl.DataFrame(pl.from_arrow(census.counts("household", by)))
        assert _same(table(packet, f"{by[1]}-by-{by[0]}"), truth, by) is exact


def _same(shown: pl.DataFrame, truth: pl.DataFrame, by: list[str]) -> bool:
    rows = [
        side.filter(pl.col("count") > 0).select(*by, pl.col("count").cast(pl.Int64))
        for side in (shown, truth)
    ]
    return rows[0].sort(by).equals(rows[1].sort(by))


def _keyed(packet: Packet, census: Census, record: str, by: list[str]) -> None:
    """Noise of at most 5, none on empty cells, no count of 1 or 2."""
    truth = pl.DataFrame(pl.from_arrow(census.counts(record, by)))
    both = truth.join(table(packet, f"{by[1]}-by-{by[0]}"), on=by, how="full", suffix="_shown", coalesce=True)
    both = both.fill_null(0)
    assert both.filter((pl.col("count") == 0) & (pl.col("count_shown") != 0)).height == 0
    noise = both["count_shown"].cast(pl.Int64) - both["count"].cast(pl.Int64)
    assert 0 < noise.abs().max() <= 5  # type: ignore[operator]
    assert not both.filter(pl.col("count_shown").is_in([1, 2])).height
