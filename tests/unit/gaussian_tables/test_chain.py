"""Chains as one plan: a swap, then cell keys or noise on the tables of its records; each says what is proved of it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import GaussianTables
from stirred.chance import Key
from stirred.errors import PrivacyError, StirredError
from stirred.publish import Packet, load, run
from stirred.publish.composition import promise
from stirred.spec import Budget, Hamming, Multiplicative, NormalizedRenyi, Specification
from stirred.spec.files import load as load_spec

CENSUS = """name = "small"
[geography]
spine = ["county", "tract"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.household.variables]
tenure = { levels = ["own", "rent"] }
size = { levels = [1, 2, 3] }
"""
PLAN = """title = "A chain"
census = "census.toml"
[[mechanism]]
{first}
label = "swap"
[[mechanism]]
{second}
tables = [["tract", "tenure"]]
given = "swap"
[publish]
microdata = false
[assess]
utility = false
"""
PSA = 'name = "permutation-swapping"\nmatch = ["county", "size"]\nswap = ["tract"]\nrate = "1/5"'
TARGETED = """name = "targeted-swapping"
hierarchy = ["county", "tract"]
similar = [["size"]]
swaprate = "1/5"
risk_variables = ["tenure", "size"]
without_guarantee = "as before"
"""
CELL_KEY = 'name = "cell-key"\nD = 3\nV = "2"'
GAUSSIAN = 'name = "gaussian-tables"\nrho_squared = "1/4"'


def chained(folder: Path, first: str, second: str) -> tuple[Specification, pl.DataFrame, Packet]:
    """The promise, and each shown cell with its count in the census."""
    rng = np.random.default_rng(1)
    n = 600
    tract = rng.integers(0, 6, n)
    truth = pl.DataFrame(
        {
            "hid": np.arange(n),
            "county": [f"c{t // 3}" for t in tract],
            "tract": [f"t{t}" for t in tract],
            "tenure": rng.choice(["own", "rent"], n),
            "size": rng.integers(1, 4, n),
        }
    )
    truth.write_parquet(folder / "household.parquet")
    (folder / "census.toml").write_text(CENSUS)
    (folder / "plan.toml").write_text(PLAN.format(first=first, second=second))
    packet = run(load(folder / "plan.toml"), folder / "packet", key=Key.for_tests(3))
    public = folder / "packet" / "public"
    shown = pl.read_parquet(public / "tables" / "tenure-by-tract.parquet")
    assert not [path for path in public.glob("data*") if path.name != "datapackage.json"]
    by = pl.col("tract", "tenure").cast(pl.String)
    return (
        load_spec(public / "spec.json"),
        shown.with_columns(by).join(truth.group_by(by).len(), on=["tract", "tenure"]),
        packet,
    )


def test_psa_then_cell_keys(tmp_path: Path) -> None:
    stated, cells, _ = chained(tmp_path, PSA, CELL_KEY)
    assert stated.budget.is_finite
    assert stated.output_premetric == Multiplicative()
    assert any("no finite budget of its own" in note for note in stated.notes)
    assert cells.filter(pl.col("count") != pl.col("len")).height


def test_psa_then_noise_has_two_promises(tmp_path: Path) -> None:
    """The swap's ε is the promise; the noise's ρ² stands beside it, with the same invariants."""
    stated, cells, _ = chained(tmp_path, PSA, f'{GAUSSIAN}\nstability = "1"')
    assert stated.budget.is_finite
    assert stated.output_premetric == Multiplicative()
    assert any("ρ² = 1/4 for the same unit" in note for note in stated.notes)
    assert cells.height == 12
    assert cells["variance"].to_list() == [4.0] * 12
    assert "low" not in cells.columns  # it would be about the swapped records
    assert cells.filter(pl.col("count") != pl.col("len")).height


def test_two_kinds_of_tables_of_one_swap_cost_no_more_than_one(tmp_path: Path) -> None:
    """Both are computed from the same released records; the notes of both are told."""
    one, _, _ = chained(tmp_path, PSA, CELL_KEY)
    more = f'[[mechanism]]\n{GAUSSIAN}\ntables = [["tract", "size"]]\ngiven = "swap"\n[publish]'
    (tmp_path / "plan.toml").write_text((tmp_path / "plan.toml").read_text().replace("[publish]", more))
    plan = load(tmp_path / "plan.toml")
    both = promise(plan, plan.census())
    assert both.budget == one.budget
    assert both.multiverse == one.multiverse
    assert {"chained"} == {note.split(":")[0] for note in both.notes}
    assert len(both.notes) == 2


def test_the_noise_alone_keeps_the_invariants_of_the_swap(tmp_path: Path) -> None:
    """Theorem 2 (ii): s ρ in the universes of both; without a stability there is no second promise."""
    _, _, packet = chained(tmp_path, PSA, GAUSSIAN)
    census = load(tmp_path / "plan.toml").census()
    settings: dict[str, Any] = {"tables": [["tract", "tenure"]], "rho_squared": "1/4", "given": packet.folder}
    assert GaussianTables(**settings).noise_specification(census) is None
    second = GaussianTables(**settings, stability="2").noise_specification(census)
    first = load_spec(packet.folder / "public" / "spec.json")
    assert second is not None
    assert second.rho_squared == Budget.of(1)  # 2² · 1/4
    assert second.output_premetric == NormalizedRenyi()
    assert second.input_premetric == Hamming("household")
    assert {*first.multiverse} <= {*second.multiverse}


def test_targeted_then_cell_keys_is_published_only_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="protects nothing"):
        chained(tmp_path, TARGETED, CELL_KEY)
    stated, cells, packet = chained(tmp_path, TARGETED, f'{CELL_KEY}\nwithout_guarantee = "as before"')
    assert not stated.budget.is_finite
    assert "as before" in (packet.folder / "public" / "card.md").read_text()
    assert cells.height


def test_targeted_then_noise_promises_nothing_of_the_census(tmp_path: Path) -> None:
    stated, _, _ = chained(tmp_path, TARGETED, f'{GAUSSIAN}\nwithout_guarantee = "as before"')
    assert not stated.budget.is_finite
    assert any("no rule carries that to the census" in note for note in stated.notes)


@pytest.mark.parametrize("stability", ["0", "-1"])
def test_a_stability_of_nothing_is_refused(tmp_path: Path, stability: str) -> None:
    """With 0 the promise would be a budget of 0: that the noise protects without end."""
    with pytest.raises(StirredError, match="no stability to state"):
        chained(tmp_path, PSA, f'{GAUSSIAN}\nstability = "{stability}"')
    assert not (tmp_path / "packet").exists()
