"""TopDown's records of a public file: the columns of a release and the counts of the file; and the small DHC workloads."""

from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from stirred import Workload
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.frames import frame_of
from stirred.mechanisms.topdown import TopDown

KEY = Key.for_tests(1)


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Census:
    place = tmp_path_factory.mktemp("plain")
    write_preset("demo", place, households=40)
    return read(place / "census.toml")


def test_plain_records_are_those_of_a_run_without_noise(census: Census) -> None:
    mechanism = TopDown(workload="pl94", rho_squared="inf", replicates=0)
    solved, counted = mechanism.release(census, key=KEY), mechanism.tabulate_public(census, key=KEY)
    assert set(solved.microdata) == set(counted.microdata) == {"person", "household"}
    for name in solved.microdata:
        assert solved.to_arrow(name).schema == counted.to_arrow(name).schema
        assert solved.to_polars(name).cast(pl.String).equals(counted.to_polars(name).cast(pl.String))


def test_plain_records_are_written_where_asked(census: Census, tmp_path: Path) -> None:
    found = TopDown(workload="dhc-light-units", rho_squared="inf", replicates=0).tabulate_public(
        census, key=KEY, out=tmp_path
    )
    homes = frame_of(found.to_arrow("household"))
    assert (tmp_path / "household.parquet").is_file()
    wanted = pl.DataFrame(census.scan("household", ["kind", "tenure"]).collect())
    assert homes.filter(pl.col("tenvac") < 3).height == wanted.filter(pl.col("kind") == 1).height
    assert homes.filter(pl.col("tenvac") == 0).height == wanted.filter(pl.col("tenure") == 1).height


@pytest.mark.parametrize(
    ("light", "full"), [("dhc-light-persons", "dhc-persons"), ("dhc-light-units", "dhc-units")]
)
def test_light_workloads_spend_the_same_on_every_level(light: str, full: str) -> None:
    small, large = Workload.preset(light), Workload.preset(full)
    assert small.rho_squared == large.rho_squared
    assert small.given == large.given
    for level in large.levels:
        spent = [sum((w.rho(level, query.name) for query in w.queries), Fraction(0)) for w in (small, large)]
        assert spent[0] == spent[1]
