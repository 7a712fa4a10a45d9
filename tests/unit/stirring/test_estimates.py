"""Estimates from a stirred file: unbiased, with the variance of the law, by cycles and by types, shuffled or not."""

from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.stirring import Stirring
from stirred.mechanisms.stirring.estimates import MAX_POINTS, _invert, _list_channel, _vary_more, _vary_two
from stirred.mechanisms.stirring.law import BY_HELD, BY_PLACE, CYCLES, StratumLaw, enumerate_types

LAWS = [
    ((0, 0, 1), Fraction(7, 2)),
    ((0, 1, 1, 0, 0), Fraction(1, 3)),
    ((0, 1, 2), Fraction(4)),
    ((0, 0, 1, 2), Fraction(9)),
    ((0, 0, 1, 1, 2), Fraction(9, 4)),
    ((0, 0, 0, 1, 2, 3), Fraction(25)),
]


@pytest.mark.parametrize(("types", "weight"), LAWS)
def test_sums_over_slots_have_the_mean_and_variance_of_the_law(
    types: tuple[int, ...], weight: Fraction
) -> None:
    rng = np.random.default_rng(1)
    law, n = enumerate_types(types, weight), len(types)
    counts = np.bincount(types).astype(float)
    size = counts.size
    channel, inverse = np.empty((size, size)), np.empty((size, size))
    points, weights = np.empty(MAX_POINTS + 1), np.empty(MAX_POINTS + 1)
    moments = np.empty((MAX_POINTS, size, 4))
    scale = float(1 / weight if size == 2 else StratumLaw(BY_HELD, weight).root - 1)
    found = _list_channel(counts, scale, channel, points, weights, moments)
    exact = np.zeros((size, size))
    for s, p in law.items():
        for i, j in enumerate(s):
            exact[types[i], types[j]] += float(p) / counts[types[i]]
    assert channel == pytest.approx(exact, abs=1e-9)
    assert _invert(channel.copy(), inverse)
    assert inverse @ channel == pytest.approx(np.eye(size), abs=1e-9)
    for _ in range(5):
        a, b = rng.integers(0, 4, n), rng.normal(size=size)
        sums = np.bincount(types, weights=a, minlength=size)
        squares = np.bincount(types, weights=a * a, minlength=size)
        shown = {s: sum(a[i] * b[types[j]] for i, j in enumerate(s)) for s in law}
        mean = sum(float(p) * shown[s] for s, p in law.items())
        spread = sum(float(p) * (shown[s] - mean) ** 2 for s, p in law.items())
        assert mean == pytest.approx(sums @ channel @ b, abs=1e-9)
        if size == 2:
            varied = _vary_two(counts, moments[0, 0, 0], moments[0, 0, 1], sums, squares, b)
        else:
            varied = _vary_more(counts, found, points, weights, moments, sums, squares, b)
        assert varied == pytest.approx(spread, rel=1e-7, abs=1e-8)


class Parted(Local):
    """This machine, where nothing fits."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def make_copies(stratum: dict[str, list], copies: int) -> Census:
    """Return a census with many strata that are alike: match variable size."""
    n = len(stratum["county"])
    table = pa.table(
        {
            "hid": np.arange(n * copies),
            "state": np.ones(n * copies, np.int64),
            "size": np.repeat(np.arange(copies), n),
            **{name: np.tile(np.array(values), copies) for name, values in stratum.items()},
        }
    )
    schema = {"geography": {"spine": ["state", "county"]}, "record": {"household": {"id": "hid"}}}
    return Census.of(schema, {"household": table})


STRATA = {
    "by three places, all records differ": (
        BY_PLACE,
        {"county": [0, 0, 0, 1, 1, 2, 2, 2, 2], "race": list(range(9))},
        {"rate": "1/4", "law": "types"},
    ),
    "by three held types": (
        BY_HELD,
        {"county": [0, 1, 2, 3, 0, 1, 2, 3, 0, 5], "race": [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]},
        {"rate": "1/4", "law": "types"},
    ),
    "by two places": (
        BY_PLACE,
        {"county": [0, 0, 0, 1, 1, 1, 1], "race": [0, 1, 2, 0, 1, 2, 3]},
        {"rate": "1/3"},
    ),
    "by two held types": (
        BY_HELD,
        {"county": [0, 1, 2, 3, 0, 1, 2], "race": [0, 0, 0, 0, 1, 1, 1]},
        {"rate": "1/3"},
    ),
    "by cycles": (CYCLES, {"county": [0, 1, 2, 3, 0, 1], "race": [0, 1, 2, 3, 4, 4]}, {"rate": "1/3"}),
    "shuffled first, by places": (
        BY_PLACE,
        {"county": [0, 0, 0, 1, 1, 2, 2, 2, 2], "race": [0, 0, 0, 0, 1, 1, 2, 3, 4]},
        {"rate": "1/4", "law": "types", "shuffle_first": "race", "shuffle_levels": ["0"]},
    ),
    "shuffled first, by cycles": (
        CYCLES,
        {"county": [0, 0, 0, 1, 1, 2, 2, 2, 2], "race": [0, 0, 0, 0, 1, 1, 2, 3, 4]},
        {"rate": "1/4", "law": "cycles", "shuffle_first": "race", "shuffle_levels": ["0"]},
    ),
}
FREE = {
    "release_identifiers": {"size": "a test", "race": "a test"},
    "accept_reversal": ["race", "size"],
}


@pytest.mark.parametrize("name", STRATA)
def test_tables_are_unbiased_with_the_stated_error(name: str) -> None:
    kind, stratum, settings = STRATA[name]
    data = make_copies(stratum, 1_500)
    mechanism = Stirring(match=["size"], swap=["county"], **settings, **FREE)
    assert {*mechanism._choose_laws(mechanism.frame(data)).kinds().tolist()} == {kind}
    by = ["size", "county", "race"]
    table = read(mechanism.table(mechanism.release(data, key=Key.for_tests(1)), by))
    truth = data.scan("household").group_by(by).len().collect()
    both = table.join(truth, on=by, how="left").with_columns(pl.col("len").fill_null(0))
    assert both["count"].sum() == data.count("household")
    off, error = pl.col("estimate") - pl.col("len"), pl.col("standard_error")
    cells = both.group_by("county", "race").agg(
        score=off.sum() / (error**2).sum().sqrt(), ratio=(off**2).sum() / (error**2).sum()
    )
    # 8 to 40 cells, each the sum of 1,500 strata, so nearly normal: one beyond 5.5 has a chance below 10⁻⁶
    assert cells["score"].abs().max() < 5.5
    # parts of a cell by type are held between 0 and all of it, which changes the stated variance of tiny strata
    assert both.select((off**2).sum() / (error**2).sum()).item() == pytest.approx(1, abs=0.25)


def read(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table))


def test_nothing_is_left_of_who_was_where_among_the_shuffled() -> None:
    stratum = {"county": [0, 0, 1, 1, 2, 2], "tenure": [0, 0, 0, 0, 1, 1], "race": [0, 1, 2, 0, 1, 2]}
    data = make_copies(stratum, 300)
    mechanism = Stirring(
        match=["size"],
        swap=["county"],
        rate="1/4",
        shuffle_first="tenure",
        shuffle_levels=["0"],
        **{**FREE, "accept_reversal": ["race", "size", "tenure"]},
    )
    release = mechanism.release(data, key=Key.for_tests(1))
    by_race = read(mechanism.table(release, ["county", "race"]))
    assert by_race["standard_error"].is_infinite().all()
    truth = data.scan("household").group_by("county", "race").len().collect()
    both = by_race.join(truth, on=["county", "race"])
    assert ((both["low"] <= both["len"]) & (both["len"] <= both["high"])).all()
    by_tenure = read(mechanism.table(release, ["county", "tenure"]))
    assert by_tenure["standard_error"].is_finite().all()


def test_weights_and_parts_give_the_same_estimates() -> None:
    rng = np.random.default_rng(2)
    n = 4_000
    data = make_copies(
        {
            "county": rng.integers(0, 5, n).tolist(),
            "race": rng.integers(0, 4, n).tolist(),
            "weight": rng.integers(1, 4, n).tolist(),
        },
        3,
    )
    mechanism = Stirring(match=["size"], swap=["county"], rate="1/10", **FREE)
    release = mechanism.release(data, key=Key.for_tests(1))
    tables = []
    for engine in (Local(), Parted()):
        table = mechanism.table(release, ["county", "race"], weight="weight", engine=engine)
        tables.append(read(table))
    assert tables[0].equals(tables[1])
    truth = data.scan("household").group_by("county", "race").agg(pl.col("weight").sum()).collect()
    both = tables[0].join(truth, on=["county", "race"])
    scores = ((both["estimate"] - both["weight"]) / both["standard_error"]).to_numpy()
    assert np.abs(scores).max() < 5.5
    plain = read(mechanism.table(release, ["county", "race"]))
    assert plain["count"].sum() == 3 * n
