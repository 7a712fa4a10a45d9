"""Codes against the Census Bureau's own lists."""

import csv

import numpy as np

from shared_data import extract
from stirred.census.synthetic.households import (
    CENRACE_OF_MASK,
    CODE_LABELS,
    CODE_VALUES,
    DETAILED_RACE_WEIGHTS,
    ETHNICITY_WEIGHTS,
    GQ_CODES,
    NOT_HISPANIC_CODE,
    OLDEST,
    RACE_MASKS,
    YOUNGEST,
    gq_type,
    parse_weights,
)
from stirred.census.synthetic.writing import list_edit_rules

# PL 94-171 table P1, in its order: six races alone, 15 pairs, 20 triples, 15 of four, 6 of five, all six.
PL94 = {1: "W", 2: "B", 3: "I", 4: "A", 5: "P", 6: "O", 7: "WB", 8: "WI", 11: "WO", 12: "BI", 21: "PO", 22: "WBI",
        41: "APO", 42: "WBIA", 56: "IAPO", 57: "WBIAP", 62: "BIAPO", 63: "WBIAPO"}  # fmt: skip


def test_races_are_numbered_as_in_pl94() -> None:
    for code, letters in PL94.items():
        assert RACE_MASKS[code - 1] == sum(1 << "WBIAPO".index(letter) for letter in letters)
        assert CENRACE_OF_MASK[RACE_MASKS[code - 1]] == code
    assert sorted(RACE_MASKS) == list(range(1, 64))


def test_group_quarters_codes_and_types() -> None:
    assert len(GQ_CODES) == 24
    by_type = [sum(gq_type(code) == kind for code in GQ_CODES) for kind in range(1, 8)]
    assert by_type == [6, 3, 1, 5, 1, 2, 6]


def test_detailed_codes_belong_to_their_race() -> None:
    folder = extract("race_codes")

    def rows(name: str) -> list[dict[str, str]]:
        with (folder / name).open(newline="", encoding="utf-8", errors="replace") as file:
            return list(csv.DictReader(file, delimiter="|"))

    major = {
        row["ITERATION_CODE"]: row["ITERATION_NAME"].removesuffix(" alone")
        for row in rows("race-characteristic-iterations.txt")
        if row["LEVEL"] == "0" and row["ALONE"] == "True"
    }
    of_code: dict[int, set[str]] = {}
    for row in rows("race-and-ethnicity-code-to-iteration.txt"):
        if row["ITERATION_CODE"] in major:
            of_code.setdefault(int(row["RACE_ETH_CODE"]), set()).add(major[row["ITERATION_CODE"]])
    words = ("White", "Black", "American Indian", "Asian", "Native Hawaiian", "Some Other Race")
    for word, text in zip(words, DETAILED_RACE_WEIGHTS, strict=True):
        for code, _ in parse_weights(text):
            assert any(name.startswith(word) for name in of_code[int(code)]), code
    known = {int(row["RACE_ETH_CODE"]) for row in rows("race-and-ethnicity-codes.txt")}
    assert {int(code) for code, _ in parse_weights(ETHNICITY_WEIGHTS)} | {NOT_HISPANIC_CODE} <= known
    assert set(np.unique(CODE_VALUES).tolist()) <= known


def test_residents_are_of_ages_the_rules_allow() -> None:
    for rule in list_edit_rules():
        forbid = rule["forbid"]
        assert isinstance(forbid, dict)
        low, high = map(int, forbid["age"].split(".."))
        for relationship in forbid["relationship"]:
            if relationship >= 18:
                place = relationship - 18
                assert OLDEST[place] < low or YOUNGEST[place] > high


def test_every_code_has_a_word() -> None:
    assert sorted(CODE_LABELS["relationship"]) == list(range(42))
    assert sorted(CODE_LABELS["race"]) == list(range(64))
