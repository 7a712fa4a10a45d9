"""Persons in group quarters drawn from models: fits, what stays exact, and why no budget is finite."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InputError
from stirred.frames import frame_of
from stirred.mechanisms.swap import Swapping2010
from stirred.mechanisms.swap.group_quarters import fit_multinomial, fit_poisson, multinomial_shares

KEY = Key.for_tests(2010)
PLACES = ["state", "county", "block"]


def town(seed: int = 3, *, races: int = 3, quarters: int = 40) -> Census:
    """Forty group quarters of two kinds among six hundred homes: prisons of men of race 0, dormitories of young people."""
    rng = np.random.default_rng(seed)
    n = 640
    block = rng.integers(0, 12, n)
    kind = np.where(np.arange(n) < quarters, np.where(rng.random(n) < 0.5, "prison", "dorm"), "home")
    size = np.where(kind == "home", rng.integers(1, 4, n), rng.integers(8, 30, n))
    home = np.repeat(np.arange(n), size)
    of = kind[home]
    age = np.where(of == "dorm", rng.poisson(20, home.size), rng.poisson(38, home.size))
    race = np.where(
        of == "prison", rng.choice(races, home.size, p=_shares(races)), rng.integers(0, races, home.size)
    )
    homes = pl.DataFrame(
        {
            "hid": np.arange(n),
            "state": (block // 6).astype(str),
            "county": (block // 3).astype(str),
            "block": np.char.add("b", block.astype(str)),
            "kind": kind,
            "size": size,
            "tenure": rng.choice(["own", "rent"], n),
        }
    )
    people = pl.DataFrame({"hid": home, "age": age, "sex": rng.integers(0, 2, home.size), "race": race})
    schema = {
        "geography": {"spine": PLACES},
        "record": {
            "household": {
                "id": "hid",
                "kind": {"column": "kind", "occupied": ["home"], "group_quarters": ["prison", "dorm"]},
            },
            "person": {"household": "hid", "of": "household"},
        },
    }
    return Census.of(schema, {"household": homes, "person": people})


def _shares(races: int) -> list[float]:
    rest = 0.3 / max(races - 1, 1)
    return [1.0 if races == 1 else 0.7, *[rest] * (races - 1)]


def swap(**settings: Any) -> Swapping2010:
    usual: dict[str, Any] = {
        "swap": ["county", "block"],
        "equal": ["size", "tenure"],
        "rate": "1/5",
        "synthetic": {"race": "multinomial", "age": "poisson"},
        "synthetic_by": ["sex"],
        "without_guarantee": "a test",
    }
    return Swapping2010(**(usual | settings))


def joined(homes: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    text = pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)
    return people.with_columns(text).join(homes.with_columns(text), on="hid")


def released(mechanism: Swapping2010, census: Census, **more: Any) -> pl.DataFrame:
    made = mechanism.release(census, key=KEY, **more)
    return joined(made.to_polars("household"), made.to_polars("person"))


def true(census: Census) -> pl.DataFrame:
    return joined(frame_of(census.table("household")), frame_of(census.table("person")))


GQ = pl.col("kind") != "home"


def test_the_models_are_maximum_likelihood() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([np.ones((12, 1)), rng.normal(size=(12, 2))], axis=1)
    counts = rng.integers(0, 20, (12, 3)).astype(float)

    def loss(flat: np.ndarray) -> float:
        b = flat.reshape(3, 2)
        return float(-(counts * np.log(multinomial_shares(x, b))).sum() + 0.05 * (b**2).sum())

    b = fit_multinomial(x, counts, ridge=0.1)
    assert np.abs(minimize(loss, np.zeros(6), tol=1e-12).x.reshape(3, 2) - b).max() < 1e-4
    sums, numbers = rng.poisson(30, 12).astype(float), rng.integers(1, 9, 12).astype(float)
    b1 = fit_poisson(x, sums, numbers, ridge=0.0)
    assert np.abs(x.T @ (sums - numbers * np.exp(x @ b1))).max() < 1e-6  # the likelihood equations


def test_totals_by_kind_and_block_and_everyone_else_stay_exact() -> None:
    census = town()
    made = swap().release(census, key=KEY)
    after, before = joined(made.to_polars("household"), made.to_polars("person")), true(census)
    by = ["kind", "block"]
    counts = [table.filter(GQ).group_by(by).len().sort(by) for table in (before, after)]
    assert counts[0].equals(counts[1])
    held = ["size", "tenure", "age", "sex", "race"]
    exact = [table.filter(~GQ).group_by(held).len().sort(held) for table in (before, after)]
    assert exact[0].equals(exact[1])
    told = [check.invariant for check in made.checks]
    assert told[-2:] == [
        "persons outside group quarters by all their variables and all held variables of their household",
        "the number of persons in each group quarters, and so of each type at each place",
    ]
    assert all(check.kept for check in made.checks)
    assert not any("persons" in name and "group quarters" not in name for name in told)


def test_values_are_drawn_anew_and_follow_the_model() -> None:
    census = town()
    before, after = true(census).filter(GQ), released(swap(), census).filter(GQ)
    columns = ["kind", "block", "size", "sex", "race", "age"]
    assert before.select(columns).sort(columns).rows() != after.select(columns).sort(columns).rows()
    for kind in ("prison", "dorm"):
        was, now = (table.filter(pl.col("kind") == kind) for table in (before, after))
        first, second = ((table["race"].to_numpy() == 0).mean() for table in (was, now))
        assert abs(first - second) < 0.08
        assert abs(was["age"].to_numpy().mean() - now["age"].to_numpy().mean()) < 1.5
    assert after["age"].min() >= before["age"].min()  # type: ignore[operator]
    sexes = [table.group_by("kind", "block", "sex").len().sort(pl.all()) for table in (before, after)]
    assert sexes[0].equals(sexes[1])  # what is not drawn stays


def test_the_order_of_persons_tells_nothing_of_the_true_values() -> None:
    made = swap().release(town(), key=KEY)
    people = made.to_polars("person")
    names = [name for name in people.columns if name != "hid"]
    assert people.equals(people.sort("hid", *names))


def test_neither_the_order_of_the_file_nor_the_place_of_writing_changes_a_draw(tmp_path: Path) -> None:
    census = town()
    turned = Census.of(
        census.schema,
        {
            "household": frame_of(census.table("household")).reverse(),
            "person": frame_of(census.table("person")).reverse(),
        },
    )
    plain = released(swap(), census)
    assert plain.equals(released(swap(), turned))
    assert plain.equals(released(swap(), census, out=tmp_path))
    assert not plain.filter(GQ).equals(released(swap(synthetic_by=["sex", "county"]), census).filter(GQ))


def test_the_witness_a_level_that_nobody_has_is_never_drawn() -> None:
    """Nobody in group quarters has race 1; then one person has: it is drawn in one of them alone."""
    first = town(races=1)
    people = frame_of(first.table("person")).with_columns(
        race=pl.when(pl.int_range(pl.len()) == 0).then(1).otherwise("race").cast(pl.Int64)
    )
    second = Census.of(first.schema, {"household": first.table("household"), "person": people})
    mechanism = swap(synthetic={"race": "multinomial"})
    seen = []
    for census in (first, second):
        drawn = [
            mechanism.release(census, key=Key.for_tests(k)).to_polars("person")["race"].sum()
            for k in range(5)
        ]
        seen.append(max(drawn) > 0)
    assert seen == [False, True]
    more = mechanism.details()["more_witnesses"]
    assert isinstance(more, list)
    assert more[-1]["distance"] == 1


class Nothing(Local):
    """An engine without memory."""

    def fits(self, size: int) -> bool:
        del size
        return False


def test_a_census_in_parts_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for call in (
        lambda: swap().release(town(), key=KEY, engine=Nothing(), out=tmp_path),
        lambda: swap().refuse(town(), Nothing()),
    ):
        with pytest.raises(InputError, match="cannot be drawn anew here"):
            call()
    assert not list(tmp_path.iterdir())


def test_the_promise_says_so() -> None:
    census = town()
    promise = swap().specification(census)
    words = [str(part) for part in promise.multiverse.invariants]
    assert "the number of persons in each group quarters, and so of each type at each place" in words
    assert any("drawn from a model" in str(note) for note in promise.notes)
    assert not promise.budget.is_finite
    assert promise == swap().release(census, key=KEY).specification
    assert not swap().keeps(["race"], census.schema)
    assert swap(synthetic={}, synthetic_by=[]).keeps(["race"], census.schema)
    assert (
        swap(synthetic={}, synthetic_by=[]).parameters().keys()
        == Swapping2010(swap=["block"]).parameters().keys()
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"synthetic": {}}, "synthetic_by without synthetic"),
        ({"synthetic": {"rase": "multinomial"}}, "no published variable rase"),
        ({"synthetic": {"race": "gamma"}}, "'multinomial' or 'poisson'"),
        ({"synthetic_by": ["race"]}, "no model depends on race"),
        ({"untouched": "drop"}, "nobody is there"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        swap(**settings).roles(town())
