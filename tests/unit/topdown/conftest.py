"""Small random censuses on random trees, for every test of TopDown."""

import numpy as np
import polars as pl
import pytest

from stirred.census import Census

GATHER = "stirred.mechanisms.topdown.run.subtrees.gather"
SPINE = ["state", "county", "tract", "block_group", "block"]


def random_census(
    seed: int, *, states: int = 1, width: int = 3, units: int = 6, quarters: float = 0.15
) -> Census:
    """Between one and ``width`` children everywhere; blocks without units, vacant units and group quarters occur."""
    rng = np.random.default_rng(seed)
    homes, people = [], []
    number = 0

    def grow(codes: list[str]) -> None:
        nonlocal number
        if len(codes) < len(SPINE):
            for i in range(int(rng.integers(1, width + 1))):
                grow([*codes, f"{codes[-1] if codes else ''}{i}"])
            return
        if rng.random() < 0.2:
            return
        for _ in range(int(rng.integers(1, units + 1))):
            number += 1
            size = int(rng.integers(0, 5))
            homes.append((number, *codes, 1 if size else 2, 0))
            people.extend((number, *person(rng)) for _ in range(size))
        if rng.random() < quarters:
            number += 1
            kind = int(rng.integers(1, 8))
            homes.append((number, *codes, 3, kind))
            people.extend((number, *person(rng, adult=kind == 3)) for _ in range(int(rng.integers(1, 6))))

    for s in range(states):
        grow([str(s)])
    columns = ["household_id", *SPINE, "kind", "gq_type"]
    household = pl.DataFrame(homes, schema=columns, orient="row", infer_schema_length=None)
    persons = pl.DataFrame(
        people or None,
        schema={"household_id": pl.Int64, "age": pl.Int64, "hispanic": pl.Int64, "race": pl.Int64},
        orient="row",
    )
    schema = {
        "geography": {"spine": SPINE},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    return Census.of(schema, {"household": household, "person": persons})


def person(rng: np.random.Generator, *, adult: bool = False) -> tuple[int, int, int]:
    """Age, Hispanic origin and race."""
    age = int(rng.integers(20 if adult else 0, 95))
    race = int(rng.choice([1, 1, 1, 1, 2, 2, 4, 6, 7, 63]))
    return age, 1 + int(rng.random() < 0.2), race


@pytest.fixture
def make_census():
    """The maker of random censuses."""
    return random_census


@pytest.fixture(autouse=True)
def _few_parts(monkeypatch):
    """Cut into three parts and not into eight, which takes twice as long; the golden packets are cut into eight."""
    monkeypatch.setattr(f"{GATHER}.MIN_PARTS", 3)


@pytest.fixture
def cut_at(monkeypatch):
    """Choose the shard level by number."""

    def choose(depth: int) -> None:
        monkeypatch.setattr(f"{GATHER}.choose_cut_level", lambda sizes: min(depth, len(sizes) - 1))

    return choose
