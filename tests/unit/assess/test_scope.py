"""Questions take the records that they are about; every number here is computed again with polars, numpy and scipy."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats.contingency import association

from stirred.assess.conclusions import choose_scope, is_nominal
from stirred.census import Census
from stirred.census import toml as codebook
from stirred.census.synthetic import synthesise
from stirred.engine import Local
from stirred.errors import SchemaError
from stirred.mechanisms.release import Release
from stirred.publish.documents import Sides, _conclusions, _relations
from stirred.publish.plan import Questions, parse
from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification

QUESTIONS = Questions(
    relations=(("race", "tenure"), ("size", "county")),
    segregation=(("tract", "race"),),
    regressions=(("size", ("tenure", "county")),),
)
PLAN = 'title = "t"\ncensus = "c"\n[[mechanism]]\nname = "permutation-swapping"\nswap = ["county"]\nrate = "1/20"\n'


@cache
def town(households: int) -> tuple[Census, pl.DataFrame, pl.DataFrame]:
    """A synthetic census; its households; its persons with their place."""
    made = synthesise("demo", households=households, seed=1)
    home, person = (pl.DataFrame(pl.from_arrow(made.tables[name])) for name in ("household", "person"))
    lived = person.join(home.select("household_id", "tract", "tenure", "kind"), on="household_id")
    return Census.of(made.schema, made.tables), home, lived


def sides(census: Census, home: pl.DataFrame, record_type: str) -> Sides:
    """The census beside a release of the very same records."""
    specification = Specification(
        domain=Domain(name="t"),
        multiverse=Multiverse(frozenset()),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    records = {"household": home.to_arrow(), "person": census.source("person").collect().to_arrow()}
    release = Release(
        mechanism="none",
        parameters={},
        specification=specification,
        microdata=records,
        schema=census.schema,
    )
    return Sides(census, release, record_type, Local())


def independent_v(frame: pl.DataFrame, first: str, second: str) -> float:
    codes = [frame[name].cast(pl.String).rank("dense").to_numpy() - 1 for name in (first, second)]
    table = np.zeros([int(c.max()) + 1 for c in codes], dtype=np.int64)
    np.add.at(table, tuple(codes), 1)
    return float(association(table, method="cramer"))


def independent_dissimilarity(frame: pl.DataFrame, area: str, group: str) -> float:
    one, other = frame[group].value_counts(sort=True)[group][:2]
    shares = frame.group_by(area).agg(a=(pl.col(group) == one).sum(), b=(pl.col(group) == other).sum())
    return float((shares["a"] / shares["a"].sum() - shares["b"] / shares["b"].sum()).abs().sum() / 2)


def answers(households: int) -> tuple[dict[str, tuple[str, float]], pl.DataFrame]:
    census, home, _ = town(households)
    asked = sides(census, home, "household")
    mechanism = parse(PLAN, folder=census.folder).mechanisms[0]
    found = {
        f"{r.first} x {r.second}": (r.about, r.original) for r in _relations(mechanism, QUESTIONS, asked)
    }
    concluded = _conclusions(QUESTIONS, asked)
    found |= {change.what: (change.about, change.original) for change in concluded.changes}
    found |= {fit.original.name: (fit.about, fit.original.value) for fit in concluded.coefficients}
    return found, home.filter(pl.col("kind") == 1)


def test_vacant_homes_are_no_race_no_tenure_and_no_category() -> None:
    found, occupied = answers(1500)
    assert {about for about, _ in found.values()} == {"occupied households"}
    assert found["race x tenure"][1] == pytest.approx(independent_v(occupied, "race", "tenure"))
    assert found["size x county"][1] == pytest.approx(independent_v(occupied, "size", "county"))
    by_race = next(name for name in found if name.startswith("dissimilarity of White and"))
    assert found[by_race][1] == pytest.approx(independent_dissimilarity(occupied, "tract", "race"))
    # least squares with a column of 0 and 1 for each tenure and county but the first
    levels = [
        ("tenure=owned free and clear", occupied["tenure"] == 2),
        ("tenure=rented", occupied["tenure"] == 3),
        ("tenure=no rent paid", occupied["tenure"] == 4),
        *((f"county={code}", occupied["county"] == code) for code in sorted(occupied["county"].unique())[1:]),
    ]
    matrix = np.column_stack([np.ones(occupied.height), *(mark.to_numpy() for _, mark in levels)])
    beta = np.linalg.lstsq(matrix.astype(float), occupied["size"].to_numpy().astype(float), rcond=None)[0]
    assert {name for name in found if "=" in name or name == "intercept"} == {
        "intercept",
        *(n for n, _ in levels),
    }
    for (name, _), value in zip([("intercept", None), *levels], beta, strict=True):
        assert found[name][1] == pytest.approx(value)


@pytest.mark.slow
def test_the_figures_of_the_demo() -> None:
    """The census of the demo: 60,000 occupied households among 66,591 records."""
    found, occupied = answers(60_000)
    assert occupied.height == 60_000
    assert round(found["race x tenure"][1], 3) == 0.067 == round(independent_v(occupied, "race", "tenure"), 3)
    name = "dissimilarity of White and other, race over tract"
    assert round(found[name][1], 3) == 0.319 == round(independent_dissimilarity(occupied, "tract", "race"), 3)


def test_a_question_about_persons_says_so_and_takes_their_homes_where_it_names_them() -> None:
    census, home, lived = town(1500)
    asked = sides(census, home, "person")
    plain = asked.select_cells(["tract", "race"])
    assert plain.about == "persons"
    assert plain.sides[0]["count"].sum() == lived.height
    housed = asked.select_cells(["race", "tenure"])
    assert housed.about == "persons in occupied households"
    assert housed.sides[0]["count"].sum() == lived.filter(pl.col("kind") == 1).height


def test_questions_about_vacant_homes_and_group_quarters_are_about_them() -> None:
    census, home, _ = town(1500)
    asked = sides(census, home, "household")
    for name, kind in (("vacancy", 2), ("gq_type", 3)):
        found = asked.select_cells(["county", name])
        assert found.about == f"households to which {name} applies"
        assert found.sides[0]["count"].sum() == home.filter(pl.col("kind") == kind).height


def schema(**variables: object) -> dict[str, object]:
    return {
        "record": {
            "household": {
                "size": "size",
                "kind": {"column": "kind", "vacant": [2], "housing_units": [3]},
                "variables": {"kind": [1, 2, 3], "size": "0..9", **variables},
            }
        }
    }


HOMES = pl.DataFrame(
    {"kind": [1, 1, 2, 3, 3], "size": [2, 1, 0, 0, 4], "stay": [0, 5, 5, 5, 0], "count": [1, 1, 1, 1, 1]}
)


@pytest.mark.parametrize(
    ("asked", "there", "words", "records"),
    [
        (["stay"], ["kind", "size", "stay"], "occupied households", 3),
        (["stay"], ["stay"], "households, vacant units included", 5),
        (["kind", "stay"], ["kind", "size", "stay"], "households", 5),
    ],
)
def test_files_of_others(asked: list[str], there: list[str], words: str, records: int) -> None:
    """Kinds decide, where they are released; a question about the kinds themselves is about all records."""
    found = choose_scope(codebook.parse_schema(schema(stay=[0, 5])), "household", asked, there)
    assert (found.words, found.keep_cells(HOMES, asked)["count"].sum()) == (words, records)


def test_a_file_that_says_what_does_not_apply() -> None:
    stay = {"levels": [0, 5], "not_applicable": [0]}
    known = codebook.parse_schema(schema(stay=stay))
    found = choose_scope(known, "household", ["stay"], ["kind", "size", "stay"])
    assert found.words == "households to which stay applies"
    assert found.keep_cells(HOMES, ["stay"]).rows() == [(5, 3)]
    assert is_nominal(known, "household", "stay")
    assert is_nominal(known, "household", "size") is False
    with pytest.raises(SchemaError, match="not a level of the variable"):
        codebook.parse_schema(schema(stay={"levels": [0, 5], "not_applicable": [7]}))


def test_without_kinds_a_home_of_size_0_is_vacant() -> None:
    record = {"size": "size", "variables": {"size": "0..9", "stay": [0, 5]}}
    known = codebook.parse_schema({"record": {"household": record}})
    found = choose_scope(known, "household", ["stay"], ["size", "stay"])
    assert found.words == "occupied households"
    assert found.keep_cells(HOMES, ["stay"])["count"].sum() == 3
