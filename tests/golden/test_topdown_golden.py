"""The production budgets and the Bureau's certificates, to the digit."""

from fractions import Fraction

import pytest

from stirred import Workload
from stirred.mechanisms.topdown import promise

PERSONS = Workload.preset("pl94-persons")
UNITS = Workload.preset("pl94-units")


def test_totals() -> None:
    assert PERSONS.rho_squared == Fraction(293764, 114921)
    assert UNITS.rho_squared == Fraction(11417641, 152349649)
    assert round(float(PERSONS.rho_squared + UNITS.rho_squared), 8) == 2.63116925
    assert sum(promise.cost_by_level(PERSONS).values()) == PERSONS.rho_squared


def test_level_budgets_of_the_certificate() -> None:
    got = [round(float(v), 4) for v in promise.cost_by_level(PERSONS).values()]
    assert got == [0.0649, 0.8980, 0.2788, 0.4284, 0.7833, 0.1029]


def test_the_histograms() -> None:
    assert PERSONS.histogram.shape == (8, 2, 2, 63)
    assert PERSONS.histogram.cells == 2016
    assert sum(q.size for q in PERSONS.queries) == 2603
    assert UNITS.histogram.cells == 2


@pytest.mark.parametrize(
    ("line", "epsilon"),
    [
        ("all", 17.14),
        ("hhgq", 7.24),
        ("votingage", 7.57),
        ("hispanic", 10.04),
        ("cenrace", 10.08),
        ("block within block_group", 2.93),
        ("block within tract", 9.38),
        ("block within county", 11.70),
        ("block within state", 13.05),
        ("block within us", 16.89),
    ],
)
def test_semantics_of_the_persons_certificate(line: str, epsilon: float) -> None:
    _, got = promise.list_semantics(PERSONS)[line]
    assert abs(float(got) - epsilon) < 0.0051


@pytest.mark.parametrize(
    ("line", "epsilon"),
    [
        ("block within block_group", 0.82),
        ("block within tract", 1.81),
        ("block within county", 2.35),
        ("all", 2.47),
    ],
)
def test_semantics_of_the_units_certificate(line: str, epsilon: float) -> None:
    _, got = promise.list_semantics(UNITS)[line]
    assert abs(float(got) - epsilon) < 0.0051


@pytest.mark.parametrize(
    ("line", "epsilon"),
    [
        ("all", 17.14),
        ("hhgq", 8.69),
        ("votingage", 9.49),
        ("hispanic", 11.65),
        ("cenrace", 11.69),
        ("block within block_group", 2.93),
        ("block within tract", 11.18),
        ("block within county", 13.51),
        ("block within state", 15.41),
    ],
)
def test_semantics_of_puerto_ricos_certificate(line: str, epsilon: float) -> None:
    _, got = promise.list_semantics(Workload.preset("pl94-pr-persons"))[line]
    assert abs(float(got) - epsilon) < 0.0051


def test_puerto_rico_spends_the_same_totals_without_a_nation() -> None:
    persons, units = (Workload.preset(f"pl94-pr-{kind}") for kind in ("persons", "units"))
    assert (persons.rho_squared, units.rho_squared) == (PERSONS.rho_squared, UNITS.rho_squared)
    assert persons.levels == units.levels == PERSONS.levels[1:]
    assert persons.histogram == PERSONS.histogram
    assert persons.query_shares["block"] == PERSONS.query_shares["block"]
    assert "total" not in persons.query_shares["state"]


def test_levels_of_dhc_here_and_in_puerto_rico() -> None:
    """The parts of ρ² of every level, as the strategies of production have them."""
    total = {"persons": Fraction(24811, 5000), "units": Fraction(15401, 2000)}
    want = {
        "dhc-persons": ("0.0949", "1.2987", "0.4960", "0.6214", "0.6214", "1.3888", "0.4300", "0.0110"),
        "dhc-pr-persons": ("1.3142", "0.5120", "0.6371", "0.6371", "1.4048", "0.4460", "0.0110"),
        "dhc-units": ("0.4834", "1.7012", "1.4454", "0.9712", "0.9712", "1.6861", "0.4260", "0.0160"),
        "dhc-pr-units": ("1.7813", "1.5261", "1.0519", "1.0519", "1.7666", "0.5067", "0.0160"),
    }
    for name, levels in want.items():
        workload = Workload.preset(name)
        assert workload.rho_squared == total[name.split("-")[-1]]
        assert tuple(promise.cost_by_level(workload).values()) == tuple(Fraction(part) for part in levels)
    for kind in ("persons", "units"):
        here, there = Workload.preset(f"dhc-{kind}"), Workload.preset(f"dhc-pr-{kind}")
        assert (there.histogram, there.queries, there.rules) == (here.histogram, here.queries, here.rules)
        assert (there.levels, there.given) == (here.levels[1:], f"pl94-pr-{kind}")


def test_noise_standard_deviations() -> None:
    sd = promise.standard_deviations(PERSONS)
    levels = PERSONS.levels
    assert [round(sd[level, "total"], 2) for level in levels[1:5]] == [1.10, 2.17, 2.47, 1.75]
    assert round(sd["block", "total"], 1) == 89.2
    assert [round(sd[level, "detailed"], 2) for level in levels] == [4.43, 4.45, 4.42, 4.46, 2.02, 3.18]
    assert [round(sd[level, "hispanic * cenrace"], 1) for level in levels] == [
        22.0,
        19.5,
        22.9,
        2.2,
        2.2,
        43.5,
    ]
    assert [round(promise.standard_deviations(UNITS)[level, "detailed"], 1) for level in levels[2:]] == [
        12.5,
        6.1,
        5.6,
        10.5,
    ]


def test_only_shares_that_sum_are_accepted() -> None:
    from stirred.errors import BudgetError

    with pytest.raises(BudgetError, match="sum to"):
        Workload(
            name="x", record="person", histogram=PERSONS.histogram, queries=PERSONS.queries, levels=("a", "b"),
            rho_squared=Fraction(1), level_shares={"a": Fraction(1, 2), "b": Fraction(1, 3)}, query_shares={}, passes={},
        )  # fmt: skip
