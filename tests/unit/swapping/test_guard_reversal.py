"""Held columns that undo a swap: measured on the released file, beside what chance gives."""

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.frames import frame_of
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.guards import REFUSED_SHARE, Reversal, measure_reversals

REGIONS, AREAS, HOMES = 10, 58, 15  # a survey like Ghana's: 8,700 households in 580 enumeration areas


def survey() -> pl.DataFrame:
    """Households in enumeration areas, with a weight for each area and coordinates near its centre."""
    rng = np.random.default_rng(7)
    area = np.repeat(np.arange(REGIONS * AREAS), HOMES)
    weights = np.round(rng.gamma(4.0, 250.0, REGIONS * AREAS), 4)
    centre = rng.random((REGIONS * AREAS, 2)) * 5
    near = centre[area] + rng.normal(0, 0.004, (area.size, 2))
    return pl.DataFrame(
        {
            "hid": np.arange(area.size),
            "region": area // AREAS,
            "ea": area,
            "size": rng.choice([1, 2, 3, 4], area.size),
            "weight": weights[area],
            "north": near[:, 0],
            "east": near[:, 1],
            "rooms": rng.integers(1, 7, area.size),
            "water": rng.choice(["pipe", "well", "river"], area.size),
        }
    )


def released(rate: str = "1/10", *drop: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    frame = survey()
    schema = {
        "geography": {"spine": ["region", "ea"], "type": "integer"},
        "record": {"household": {"id": "hid", "weight": "weight"}},
    }
    psa = PermutationSwapping(
        match=["region", "size"],
        swap=["ea"],
        rate=rate,
        drop=drop,
        release_identifiers={n: "a test" for n in ("weight", "north", "east") if n not in drop},
        accept_reversal=[name for name in ("weight", "north", "east") if name not in drop],
    )
    found = psa.release(Census.of(schema, {"household": frame}), key=Key.for_tests(3)).microdata["household"]
    return frame, frame_of(found.to_table() if hasattr(found, "to_table") else found)


def asked(frame: pl.DataFrame, held: list[str]) -> dict[tuple[str, ...], Reversal]:
    found = measure_reversals(frame, match=["region", "size"], swap=["ea"], held=held)
    return {one.columns: one for one in found}


def put_back(truth: pl.DataFrame, public: pl.DataFrame) -> float:
    """The share of households that an attacker places correctly by their weight, from the public file alone."""
    area = public.group_by("weight").agg(pl.col("ea").mode().first().alias("guess"))
    right = truth.select("weight", "ea").unique().join(area, on="weight")
    return right.filter(pl.col("guess") == pl.col("ea")).height / right.height


def test_weights_of_areas_reverse_the_swap() -> None:
    truth, public = released()
    assert put_back(truth, public) > 0.99  # the attack itself: nearly all areas are found by their weight
    found = asked(public, ["weight", "rooms", "water"])
    assert found["weight",].share > 0.8 > REFUSED_SHARE
    assert found["rooms",].share < 0.05
    assert found["water",].share < 0.05
    assert "weight" in str(found["weight",])


def test_without_the_weight_nothing_reverses_it() -> None:
    _, public = released("1/10", "weight", "north", "east")
    assert max(one.share for one in asked(public, ["rooms", "water"]).values()) < 0.05


def test_coordinates_reverse_it_in_bins_of_two() -> None:
    """No two coordinates are equal; only together, in bins, do they tell the area."""
    _, public = released()
    found = asked(public, ["north", "east", "rooms"])
    assert found["north", "east"].share > max(found["north",].share, found["rooms",].share)
    assert found["north", "east"].share > 0.3


def test_two_columns_that_reverse_it_only_together() -> None:
    frame = survey().with_columns(tens=pl.col("ea") // 24, ones=pl.col("ea") % 24)
    found = asked(frame, ["tens", "ones", "rooms"])
    assert found["tens", "ones"].share > 0.98
    assert found["ones",].share < 0.9


@pytest.mark.parametrize("seed", range(3))
def test_independent_columns_stay_at_chance(seed: int) -> None:
    """The measure compares with chance, so columns of any number of values that say nothing stay near zero."""
    rng = np.random.default_rng(seed)
    noise = {f"x{k}": rng.integers(0, k, 8_700) for k in (2, 50, 3_000, 10**9)}
    frame = survey().with_columns(**{name: pl.Series(values) for name, values in noise.items()})
    assert max(one.share for one in asked(frame, list(noise)).values()) < 0.1


def test_nothing_to_measure() -> None:
    empty = survey().head(0)
    assert measure_reversals(empty, match=["region"], swap=["ea"], held=["weight"]) == ()
    assert measure_reversals(survey(), match=["region"], swap=["ea"], held=[]) == ()
    gaps = survey().with_columns(weight=pl.when(pl.col("rooms") > 2).then("weight"))
    assert asked(gaps, ["weight"])["weight",].share > 0.5
