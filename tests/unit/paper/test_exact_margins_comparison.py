"""One small table through all three mechanisms: equal invariants, the stated budgets, errors of the right size."""

from fractions import Fraction

import numpy as np
import pytest

from stirred import ExactMargins
from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import PrivacyError
from stirred.mechanisms.tables.exact_margins import draw_lattice_noise
from stirred.mechanisms.topdown import TopDown
from stirred.paper import exact_margins
from stirred.spec import Margin, Multiverse

TABLE = {"a": (40, 10, 7), "b": (5, 60, 9), "c": (22, 31, 14)}


def test_all_ways_keep_the_same_universes():
    """Each multiverse refines the two margins; the state that TopDown names beside tenure has one value."""
    census = exact_margins.one_table(TABLE)
    wanted = Multiverse.of(Margin("household", ("county",)), Margin("household", ("tenure",)))
    for name, mechanism, rate in exact_margins.list_ways(3):
        promise = mechanism.specification(census)
        kept = {tuple(i.by) for i in promise.multiverse.invariants if isinstance(i, Margin)}
        assert kept <= {("county",), ("tenure",), ("state", "tenure")}, name
        assert len(kept) == len(promise.multiverse.invariants) == 2, name
        assert promise.multiverse.refines(wanted, census.domain), name
        assert (str(promise.output_premetric) == "D_mult") == (rate is not None), name


def test_one_row_for_each_budget_and_a_correction_for_each_swap():
    document = exact_margins.exact_margins(counts=TABLE, runs=2)
    rows = document["rows"]
    assert [row["unit"] for row in rows] == ["ε"] * 6 + ["ρ²"] * 6
    assert [row["exact"] for row in rows[6:]] == ["1/100", "1/2", "4"] * 2
    assert all(0 <= row["mean_absolute_error"] <= row["rmse"] <= row["worst_row_rmse"] for row in rows)
    assert "no ranking" in document["units"]


def test_without_noise_topdown_returns_the_table():
    census = exact_margins.one_table(TABLE)
    made = TopDown(workload=exact_margins.workload(3), rho_squared="inf", replicates=0).release(
        census, key=Key.for_tests(1)
    )
    assert np.array_equal(exact_margins.read_table(made, list(TABLE), 3), list(TABLE.values()))


def test_a_run_that_moves_a_margin_is_not_compared(monkeypatch):
    """A mutant: noise with exact rows only, under the name of both margins."""
    loose = ExactMargins(rows="county", columns="tenure", rho_squared="1/100")
    monkeypatch.setattr(exact_margins, "list_ways", lambda _: [("loose", loose, None)])
    monkeypatch.setattr(
        "stirred.mechanisms.tables.exact_margins.draw_lattice_noise",
        lambda shape, sigma_squared, key, *, both: draw_lattice_noise(
            shape, sigma_squared, key, both=not both
        ),
    )
    with pytest.raises(PrivacyError, match="margins"):
        exact_margins.exact_margins(counts=TABLE, runs=1)


def test_the_mean_square_error_of_lattice_noise():
    """4σ²(I−1)(J−1)/(IJ) per cell: corner (I−1)(J−1)σ², edges (J−1)σ² and (I−1)σ², the rest σ². With 4,000 draws of a
    14 × 2 table at σ² = 50 the standard error is about 1.2 %; 7 of them: false alarm below 1e-9."""
    squares = [
        (draw_lattice_noise((14, 2), Fraction(50), Key.for_tests(5).bind(i), both=True) ** 2).mean()
        for i in range(4000)
    ]
    expected = 4 * 50 * 13 / 28
    assert abs(np.mean(squares) / expected - 1) < 7 * np.std(squares) / np.sqrt(4000) / expected


def test_the_command(capsys, monkeypatch):
    monkeypatch.setattr(
        "stirred.paper.exact_margins.exact_margins",
        lambda *, seed: {"name": "exact-margins", "seed": seed, "rows": [{"mechanism": "PSA"}]},
    )
    assert main(["reproduce", "exact-margins", "--seed", "3", "--json"]) == 0
    assert '"seed": 3' in capsys.readouterr().out
