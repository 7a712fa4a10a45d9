"""Shares for stated goals: variances in closed form against a dense solve, exact shares, limits, and a plan that runs."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.cli.main import main
from stirred.errors import InputError
from stirred.mechanisms.proposal import Cap, Goal
from stirred.mechanisms.topdown import TopDown, Workload, promise, tuning
from stirred.mechanisms.topdown.promise import cost_in_multiverse
from stirred.mechanisms.topdown.tuning import (
    LinearErrors,
    TreeShape,
    _describe_worst,
    _predict_errors,
    build_problem,
    choose_shares,
    compute_excess,
    find_largest_rho_squared,
    list_tables,
    minimise_total,
)
from stirred.publish import load

SMALL = Workload.preset("small")
SHAPE = TreeShape(("state", "county", "block"), (1, 3, 300))


def test_closed_form_variances_are_those_of_a_dense_least_squares() -> None:
    """One state with an exact total, two counties, three blocks each: all measurements in one matrix."""
    shape = TreeShape(("state", "county", "block"), (1, 2, 6))
    pairs = [
        (level, q.name)
        for level in shape.levels
        for q in SMALL.queries
        if (level, q.name) != ("state", "total")
    ]
    rho = np.linspace(0.1, 0.9, len(pairs))
    errors = LinearErrors.of(SMALL, shape, pairs)
    cells = SMALL.histogram.cells
    over = {"state": np.ones((1, 6)), "county": np.kron(np.eye(2), np.ones((1, 3))), "block": np.eye(6)}
    rows = {
        q.name: (q.of(np.arange(cells))[None] == np.arange(q.size)[:, None]).astype(float)
        for q in SMALL.queries
    }
    information = sum(
        r * np.kron(over[level].T @ over[level], rows[q].T @ rows[q])
        for (level, q), r in zip(pairs, rho, strict=True)
    )
    C = np.linalg.inv(information)
    one = np.ones(6 * cells)
    C -= np.outer(C @ one, C @ one) / (one @ C @ one)  # the exact total of the state
    for (level, name), query in list_tables(SMALL, shape.levels).items():
        A = np.kron(over[level], rows[name])
        wanted = np.trace(A @ C @ A.T) / len(A)
        assert errors.variances(rho, [(level, query)])[0] == pytest.approx(wanted, rel=1e-8, abs=1e-8)


def test_derivatives_are_those_of_differences() -> None:
    pairs = [
        (level, q.name)
        for level in SHAPE.levels
        for q in SMALL.queries
        if (level, q.name) != ("state", "total")
    ]
    errors = LinearErrors.of(SMALL, SHAPE, pairs)
    rho = np.linspace(0.02, 0.3, len(pairs))
    tables = [(level, query) for (level, _), query in list_tables(SMALL, SHAPE.levels).items()]
    values, slopes = errors.gradients(rho, tables)
    assert np.allclose(values, errors.variances(rho, tables))
    for place in range(0, len(pairs), 5):
        step = np.eye(len(pairs))[place] * 1e-5
        moved = (errors.variances(rho + step, tables) - errors.variances(rho - step, tables)) / 2e-5
        assert np.allclose(slopes[:, place], moved, rtol=1e-4, atol=1e-4 * np.abs(moved).max())


def test_goals_are_reached_and_no_table_gets_worse() -> None:
    goals = [Goal.parse("mae votingage×county <= 2"), Goal.parse("mae total×block <= 4")]
    asked = build_problem(SMALL, SHAPE, goals, ())
    assert ("state", "total") not in asked.pairs  # it is an invariant, and gets nothing
    found = choose_shares(asked)
    assert found.sum() == pytest.approx(float(SMALL.rho_squared))
    errors = (2 / np.pi * asked.errors.variances(found, asked.asked)) ** 0.5
    assert (errors <= [2, 4]).all()
    tables = [(level, query) for (level, _), query in list_tables(SMALL, SHAPE.levels).items()]
    before, after = (asked.errors.variances(rho, tables) for rho in (asked.reference, found))
    assert (after <= before * 1.01 + 1e-9).all()


def test_goals_out_of_reach_say_what_they_would_need() -> None:
    with pytest.raises(InputError, match="need a total ρ² of about") as caught:
        choose_shares(build_problem(SMALL, SHAPE, [Goal.parse("mae race×votingage×block <= 0.3")], ()))
    assert "rho_squared =" in caught.value.fix
    with pytest.raises(InputError, match="within the limits of ε"):
        choose_shares(
            build_problem(SMALL, SHAPE, [Goal.parse("mae race×county <= 2")], [Cap.parse("race <= 1/2")])
        )


@pytest.mark.parametrize(
    ("goal", "cap", "words"),
    [
        ("mape county <= 2%", "", "absolute error"),
        ("accurate please", "", "cannot be read"),
        ("mae votingage <= 2", "", "names no level"),
        ("mae sex×county <= 2", "", "does not count"),
        ("mae county <= 2", "sex <= 3", "no attribute or level"),
        ("mae county <= 2", "race <= none", "cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_said(goal: str, cap: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_problem(SMALL, SHAPE, [Goal.parse(goal)], [Cap.parse(cap)] if cap else [])


def test_cells_that_no_query_tells_apart_have_no_closed_form() -> None:
    queries = tuple(query for query in SMALL.queries if query.name != "detailed")
    shares = {level: {"total": Fraction(1)} for level in SMALL.levels}
    with pytest.raises(InputError, match="keeps every axis"):
        build_problem(
            replace(SMALL, queries=queries, query_shares=shares), SHAPE, [Goal.parse("mae county <= 2")], ()
        )


def test_the_largest_budget_of_an_epsilon_is_the_largest() -> None:
    found = find_largest_rho_squared(Fraction(10))
    assert promise.epsilon(found) <= 10 < promise.epsilon(found + Fraction(1, 10**5))


def test_a_plan_is_tuned_within_limits_and_runs(tmp_path, capsys) -> None:
    write_preset("demo", tmp_path / "census", households=150)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'title = "T"\ncensus = "census/census.toml"\n[[mechanism]]\nname = "topdown"\nworkload = "small"\nreplicates = 0\n'
    )
    capsys.readouterr()
    words = [
        "plan",
        "tune",
        str(plan),
        "--goal",
        "mae votingage×county <= 1.5",
        "--limit",
        "votingage <= 12",
        "--json",
    ]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["errors"][0]["after"] <= 1.5 < told["errors"][0]["before"]
    assert "votingage × county" in told["sentence"]
    after = Decimal(told["sentence"].split(" rises from ")[1].split(" to ")[1].split(". ")[0].rstrip("."))
    dearest = max(told["costs"][1:], key=lambda one: Decimal(one["epsilon"]) - Decimal(one["epsilon_before"]))
    assert (
        Decimal(dearest["epsilon"]) <= after < Decimal(dearest["epsilon"]) + Decimal("0.0001")
    )  # never rounded down
    assert "in mode gls, which does not hold the sums" in told["sentence"]
    assert told["sentence"].endswith("Mode guided holds them.")
    made = load(tmp_path / "tuned-plan.toml")
    workload = made.mechanisms[0].workloads[0]
    assert workload.mode == "gls"  # tuning keeps the mode of the workload
    assert workload.rho_squared == SMALL.rho_squared
    assert cost_in_multiverse(workload).free == {}
    assert promise.epsilon(promise.cost_of_attribute(workload, "votingage")) <= Decimal(12)
    assert main(["plan", "check", str(tmp_path / "tuned-plan.toml"), "--json"]) == 0
    assert (
        main([*words, "--out", str(tmp_path / "second.toml")]) == 0
    )  # two tuned plans lie beside each other
    again = load(tmp_path / "second.toml").mechanisms[0].workload
    assert Path(str(again)).name == "second-workload.toml"
    capsys.readouterr()
    assert main(["plan", "tune", str(plan)]) != 0
    assert "--target or --goal" in capsys.readouterr().err


def test_a_tuned_plan_is_told_what_its_own_estimate_does(tmp_path) -> None:
    write_preset("demo", tmp_path / "census", households=150)
    census, goals = read(tmp_path / "census" / "census.toml"), [Goal.parse("mae votingage×county <= 1.5")]
    for mode in ("gls", "classic"):
        tuned = TopDown(workload="small", mode=mode).tune(census, goals)
        assert tuned is not None
        assert f"in mode {mode}, which does not hold" in tuned.sentence
    tuned = TopDown(workload="small", mode="guided").tune(census, goals)
    assert tuned is not None
    assert "(mode guided) were about 5% further off" in tuned.sentence


def test_the_table_that_loses_most_is_named() -> None:
    asked = build_problem(SMALL, SHAPE, [Goal.parse("mae votingage×county <= 5")], ())
    assert _describe_worst(asked, asked.reference) == ""
    less = asked.reference.copy()
    less[[level == "block" for level, _ in asked.pairs]] /= 9
    words = _describe_worst(asked, less)
    assert " × block: from " in words
    before, after = (float(text) for text in words.rstrip(".").rsplit(": from ", 1)[1].split(" to "))
    assert 1.02 * before < after <= 3.01 * before  # a ninth of ρ² is three times the error at most


def test_goals_that_are_met_have_a_smallest_budget() -> None:
    """No other shares reach the goals with less: random ones around the best, scaled until they do, need more."""
    goals = [Goal.parse("mae votingage×county <= 20"), Goal.parse("mae total×block <= 30")]
    asked = build_problem(SMALL, SHAPE, goals, ())
    assert compute_excess(asked) > 1
    found = minimise_total(asked)
    assert found.sum() < asked.reference.sum() / compute_excess(asked) + 1e-12

    def needed(rho: np.ndarray) -> float:  # a variance is inversely proportional to the total
        errors = (2 / np.pi * asked.errors.variances(rho, asked.asked)) ** 0.5
        allowed = np.array([20 * 0.92, 30 * 0.995])
        return float(rho.sum() * ((errors / allowed) ** 2).max())

    assert needed(found) == pytest.approx(found.sum(), rel=0.01)
    # the detailed query of the leaves keeps a tenth of what it would have with the plan's own shares
    detailed = asked.pairs.index(("block", "detailed"))
    floor = 0.1 * asked.reference[detailed] / compute_excess(asked)
    dice, compared = np.random.default_rng(1), 0
    for _ in range(400):
        other = found * np.exp(dice.normal(0, 0.5, len(found)))
        other *= needed(other) / other.sum()
        if other[detailed] >= floor:
            compared += 1
            assert other.sum() > 0.99 * found.sum()
    assert compared > 50


def test_a_plan_whose_goals_are_met_gets_the_smallest_budget(tmp_path, capsys) -> None:
    write_preset("demo", tmp_path / "census", households=300)
    (tmp_path / "plan.toml").write_text(
        'title = "t"\ncensus = "census/census.toml"\n[[mechanism]]\nname = "topdown"\nworkload = "small"\n'
    )
    goals = ["--goal", "mae votingage×county <= 30"]
    assert main(["plan", "tune", str(tmp_path / "plan.toml"), *goals, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentence"].startswith("The goals are met already at ρ² = ")
    assert "falls" not in found["sentence"]
    made = Workload.load(tmp_path / "tuned-workload.toml")
    assert made.rho_squared < SMALL.rho_squared
    assert f"exactly {made.rho_squared}" in found["sentence"]
    assert all(error["after"] <= error["goal"] for error in found["errors"])


# ---- goals for the worst-off -------------------------------------------------------------------------------------------

PERSONS = Workload.preset("pl94-persons")


def asked_for(monkeypatch, text: str, workload: Workload = PERSONS) -> Goal:
    monkeypatch.setattr(tuning, "count_blocks", lambda variable, code, persons: persons // 50 + code)
    return tuning.read_goals(workload, "block", [Goal.parse(text)])[0]


def test_a_goal_for_a_group_in_packed_districts_is_read(monkeypatch) -> None:
    goal = asked_for(monkeypatch, "mae Black voting age in packed districts of 6,000 <= 40")
    assert (goal.by, goal.limit, goal.areas) == (("cenrace", "votingage", "block"), 40.0, 122)
    assert str(goal) == "black voting age in packed districts of 6,000 persons"
    assert asked_for(monkeypatch, "hispanic in packed districts <= 9").by == ("hispanic", "block")
    assert asked_for(monkeypatch, "asian in packed districts <= 9", SMALL).by == ("race", "block")
    for text in ("martian in packed districts <= 3", "black in lonely districts <= 3"):
        with pytest.raises(InputError, match="is not understood") as caught:
            asked_for(monkeypatch, text)
        assert "hispanic, white, black, american indian, asian, pacific" in str(caught.value)
    with pytest.raises(InputError, match="does not count"):
        asked_for(monkeypatch, "hispanic in packed districts <= 3", SMALL)


def test_a_block_of_households_has_the_variance_of_its_own_measurements(monkeypatch) -> None:
    """A dense solve of the cells that such a block may have; a district has as many times that variance as blocks."""
    goal = asked_for(monkeypatch, "mae black voting age in packed districts <= 40")
    shape = TreeShape(("state", "county", "block"), (1, 3, 300))
    asked = build_problem(PERSONS, shape, [goal], ())
    rho = dict(zip(asked.pairs, asked.reference, strict=True))
    cells = np.arange(
        PERSONS.histogram.cells // 8
    )  # quarters are the first axis, households the first of them
    information = np.zeros((len(cells), len(cells)))
    for query in asked.workload.queries:
        answer = query.of(cells)
        information += rho.get(("block", query.name), 0.0) * (answer[:, None] == answer[None])
    cover = np.linalg.inv(information)
    own = PERSONS.histogram.query("own", ("votingage", "cenrace")).of(cells) == 63 + 1  # adults, black alone
    want = cover[np.ix_(own, own)].sum()
    assert asked.errors.variances(asked.reference, asked.asked)[0] == pytest.approx(want)
    assert _predict_errors(asked, asked.reference)[0] == pytest.approx((2 / np.pi * goal.areas * want) ** 0.5)
    tables = [*asked.asked, ("block", PERSONS.query("total"))]
    values, slopes = asked.errors.gradients(asked.reference, tables)
    for place in range(0, len(asked.pairs), 5):
        step = np.zeros(len(asked.pairs))
        step[place] = 1e-5 * asked.reference[place]
        moved = asked.errors.variances(asked.reference + step, tables) - values
        assert moved / step[place] == pytest.approx(
            slopes[:, place], rel=1e-3, abs=1e-6 * np.abs(slopes).max()
        )


def test_a_goal_for_the_worst_off_is_reached(monkeypatch) -> None:
    goal = asked_for(monkeypatch, "mae black in packed districts <= 100", SMALL)
    asked = build_problem(SMALL, SHAPE, [goal], ())
    before = _predict_errors(asked, asked.reference)[0]
    asked = build_problem(SMALL, SHAPE, [replace(goal, limit=0.9 * before)], ())
    assert _predict_errors(asked, choose_shares(asked))[0] <= 0.9 * before


def test_packed_districts_of_the_stand_in_have_their_persons(monkeypatch) -> None:
    monkeypatch.setattr(tuning, "STAND_IN_HOUSEHOLDS", 1_500)
    count = tuning.count_blocks.__wrapped__
    assert 1 < count("race", 2, 500) < count("race", 2, 1_500)
    with pytest.raises(InputError, match="larger than the stand-in"):
        count("race", 2, 10**6)
