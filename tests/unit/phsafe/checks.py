"""What PHSafe claims, as checks that a wrong implementation fails; proof.md names them."""

from fractions import Fraction

import numpy as np

from stirred import Key, PHSafe
from stirred.frames import frame_of
from unit.phsafe.neighbours import (
    HOMES,
    PERSONS,
    START,
    UNITS,
    Data,
    code_neighbours,
    contents,
    l1,
    largest,
    squared,
    vectors,
)
from unit.phsafe.small import census, home, person


def is_home(place: str) -> bool:
    """Whether a table counts households."""
    return place.partition(".")[0] in HOMES


def code_relation() -> None:
    """Theorem 1: one person row and any two unit rows move a table by 2τ + 2, a table of households by 2."""
    data = [START, *code_neighbours(START)]
    for tau in (1, 2):
        for place, rows in vectors(data, tau).items():
            most = 2 if is_home(place) else 2 * tau + 2
            assert largest(rows, rows[0], l1) <= most, place
            assert largest(rows, rows[0], squared) <= most**2, place


def one_household() -> None:
    """Lemma 2: whatever one household's records are, it adds at most τ; any change of them moves a table by √2·τ."""
    data = contents("a", 4)
    for tau in (1, 2, 3):
        for place, rows in vectors(data, tau).items():
            cap = 1 if is_home(place) else tau
            assert rows.min() >= 0
            assert rows.sum(axis=1).max() <= cap, place
            gram = rows @ rows.T
            apart = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
            assert apart.max() <= 2 * cap**2, place


def additive() -> None:
    """A table is the sum of what its households add: the order in one household does not depend on another."""
    first, second = contents("a", 4)[::5], contents("b", 4)[::7]
    both: list[Data] = [(x[0] + y[0], x[1] + y[1]) for x in first for y in second]
    for tau in (1, 2):
        apart = [vectors(data, tau) for data in (first, second, both)]
        for place, whole in apart[2].items():
            one, other = apart[0][place], apart[1][place]
            assert np.array_equal(whole, (one[:, None, :] + other[None, :, :]).reshape(whole.shape)), place


def moving_person() -> None:
    """Theorem 2: a person who moves, both unit records following, moves a table by 2√2·τ: factor 2 at most."""
    for tau in (1, 2):
        steps = []
        for name in "ab":
            units = [(), *((row,) for row in UNITS if row[0] == name)]
            people = [row for row in PERSONS if row[0] == name]
            before = [data for data in contents(name, 3) if len(data[0]) <= 1]
            pairs = [(data, (some, (*data[1], who))) for data in before for some in units for who in people]
            made = vectors([data for pair in pairs for data in pair], tau)
            steps.append({place: rows[1::2] - rows[0::2] for place, rows in made.items()})
        for place, gone in steps[0].items():
            cap, code = (1, 2) if is_home(place) else (tau, 2 * tau + 2)
            left, come = np.unique(-gone, axis=0), np.unique(steps[1][place], axis=0)
            lengths = ((left[:, None, :] + come[None, :, :]) ** 2).sum(axis=2)
            assert lengths.max() <= 8 * cap**2 <= 2 * code**2, place


def published_variance() -> None:
    """The budget that is promised is the one that the published variances cost."""
    release = PHSafe().release(census([home("a")], [person("a")]), key=Key.for_tests(1))
    spent = Fraction(0)
    for name, table in release.tables.items():
        if name in ("ph5_num", "ph8_num"):
            continue
        tau = {"ph3": 6, "ph6": 6}.get(name, 10)
        length = 2 if name.endswith("denom") else 2 * tau + 2
        frame = frame_of(table)
        level = frame["iteration"].replace_strict(
            {**dict.fromkeys("ABCDEFG", "r"), "H": "o", "I": "o", "*": "*"}
        ) if "iteration" in frame.columns else frame["region"]  # fmt: skip
        kinds = frame.with_columns(level.alias("level")).select("region_type", "level", "variance").unique()
        if "iteration" not in frame.columns:
            kinds = kinds.unique(["region_type", "variance"])
        spent += sum(
            (Fraction(length**2, 2) / Fraction(variance) for variance in kinds["variance"]), Fraction(0)
        )
    assert abs(spent - Fraction("1.257281")) < Fraction(1, 10**9)


def noise_of_its_own() -> None:
    """No two counts that are measured share a draw."""
    release = PHSafe().release(census([home("a")], [person("a")]), key=Key.for_tests(1))
    drawn = [
        frame_of(release.tables[name]).filter(region_type="STATE", iteration="*")["count"].to_list()
        for name in ("ph1_num", "ph4", "ph7")
    ]
    assert len({tuple(counts[:2]) for counts in drawn}) == 3
    again = PHSafe().release(census([home("a")], [person("a"), person("a")]), key=Key.for_tests(1))
    apart = frame_of(again.tables["ph1_denom"])["count"] - frame_of(release.tables["ph1_denom"])["count"]
    assert apart.abs().max() > 1  # another census has other noise
