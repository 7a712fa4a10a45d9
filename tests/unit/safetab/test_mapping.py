"""From codes to population groups: the Bureau's own test cases, and how many groups one record can touch."""

import csv
import random
from itertools import product

import pytest

from shared_data import extract, shared
from stirred.census.synthetic.households import (
    DETAILED_RACE_WEIGHTS,
    ETHNICITY_WEIGHTS,
    NOT_HISPANIC_CODE,
    parse_weights,
)
from stirred.errors import DataError, InputError
from stirred.mechanisms.census2020.safetab.groups import CodeLists, GroupMap, Iteration

CASES = "race_eth_codes_to_iterations_testcases.txt"


def cases() -> list[dict[str, str]]:
    with extract("safetab_mapping", CASES).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="|"))


@pytest.mark.parametrize("fine", [True, False], ids=["fine", "coarse"])
def test_the_bureaus_cases(fine: bool) -> None:
    lists = CodeLists.read(extract("safetab_mapping"))
    assert len(cases()) == 12
    for case in cases():
        found: list[str] = []
        for level in (1, 2):
            mapping = GroupMap.of(lists, level, fine=fine, most_codes=8)
            groups = mapping.groups(case["RACE_CODES"].split(","), case["ETHNICITY_CODE"])
            found += [mapping.codes[group] for group in groups]
        column = "DETAILED_ITERATION_CODES" if fine else "COARSE_ITERATION_CODES"
        assert sorted(found) == sorted(case[column].split(","))


@pytest.mark.parametrize(("level", "fine"), list(product((1, 2), (True, False))))
def test_the_invented_lists_have_sensitivity_nine(level: int, fine: bool) -> None:
    lists = CodeLists.own()
    assert lists.sensitivity(level, fine=fine, most_codes=8) == 9
    assert lists.list_iterations(level, fine=fine)


def test_the_invented_lists_fit_the_synthetic_census() -> None:
    lists = CodeLists.own()
    wanted = {
        code for text in (*DETAILED_RACE_WEIGHTS, ETHNICITY_WEIGHTS) for code, _ in parse_weights(text)
    } | {str(NOT_HISPANIC_CODE)}
    assert wanted <= set(lists.leads_to)
    assert len(lists.leads_to) >= 200
    assert {item.level for item in lists.iterations} == {0, 1, 2}
    assert any(item.detailed_only for item in lists.iterations)
    assert any(item.coarse_only for item in lists.iterations)
    kinds = {item.alone for item in lists.iterations}
    assert kinds == {True, False, None}


@pytest.mark.slow
def test_the_production_lists_have_sensitivity_nine() -> None:
    lists = CodeLists.read(shared("safetab", "p_production_NMFv7-2020"))
    assert len(lists.leads_to) == 1755
    for level, fine in product((1, 2), (True, False)):
        assert lists.sensitivity(level, fine=fine, most_codes=8) == 9
    assert [len(lists.list_iterations(2, fine=fine)) for fine in (True, False)] == [2944, 2150]


def test_no_record_touches_more_groups_than_the_sensitivity() -> None:
    """Over many random sets of codes, and over lists where one code leads to several groups."""
    rng = random.Random(5)
    several = CodeLists(
        iterations=tuple(Iteration(str(i), f"g{i}", 1, [True, False, None][i % 3]) for i in range(12)),
        leads_to={str(c): frozenset(rng.sample([str(i) for i in range(12)], 5)) for c in range(8)},
    )
    for lists in (CodeLists.own(), several):
        codes = list(lists.leads_to)
        for level, fine, most in product((1, 2), (True, False), (1, 2, 8)):
            mapping = GroupMap.of(lists, level, fine=fine, most_codes=most)
            for _ in range(200):
                races = rng.choices(codes, k=rng.randint(0, most))
                groups = mapping.groups(races, rng.choice(codes))
                assert len(groups) == len(set(groups)) <= mapping.sensitivity


def test_lists_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(DataError, match="not listed"):
        CodeLists(iterations=(), leads_to={"1": frozenset({"x"})})
    with pytest.raises(DataError, match="both DETAILED_ONLY and COARSE_ONLY"):
        CodeLists(iterations=(Iteration("1", "a", 1, True, True, True),), leads_to={})
    with pytest.raises(InputError, match="has no race-characteristic"):
        CodeLists.read(extract("pl94"))
