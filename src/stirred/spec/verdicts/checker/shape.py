"""What a derivation must look like before any rule is tried: plain objects of a bounded size.

A derivation may come from anywhere. Its objects are of the classes named here and of no subclass, because a subclass can
lie about what it equals; and it is small enough that every rule ends soon.
"""

from collections.abc import Mapping
from typing import Any

from stirred.spec.multiverse import Margin
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.witness import DataSet, Witness

MAX_STEPS = 20_000  # steps of a derivation, a step that is shared counted each time
MAX_DEPTH = 100
MAX_ROWS_PER_DATA_SET = 20_000  # different records of a data set
MAX_RECORDS_PER_ROW = 10**30  # records of one kind in a data set


def check_form(step: object) -> str:
    """Return why this derivation cannot be checked; empty where it can."""
    left = MAX_STEPS
    open_ones: list[tuple[object, int]] = [(step, 1)]
    while open_ones:
        now, depth = open_ones.pop()
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            return "the derivation is too large to be checked"
        if type(now) is not Derivation:
            return "a step is no derivation"
        if type(now.rule) is not str or type(now.premises) is not tuple or not isinstance(now.facts, Mapping):
            return "a step has no rule, premises or facts of the usual kind"
        if now.witness is not None and (problem := _check_pair(now.witness)):
            return problem
        open_ones += [(premise, depth + 1) for premise in now.premises]
    return ""


def _check_pair(witness: object) -> str:
    if type(witness) is not Witness or type(witness.first) is not DataSet is not type(witness.second):
        return "a witness is no pair of data sets"
    return _check_data_set(witness.first) or _check_data_set(witness.second)


def _check_data_set(data: object) -> str:
    if type(data) is not DataSet or type(data.rows) is not tuple or len(data.rows) > MAX_ROWS_PER_DATA_SET:
        return "a witness is no pair of data sets"
    for row in data.rows:
        if type(row) is not tuple or len(row) != 3:
            return "a row of a data set is not a record type with values and a number"
        kind, values, number = row
        if type(kind) is not str or type(number) is not int or not 0 < number < MAX_RECORDS_PER_ROW:
            return "a number of records is not positive"
        if type(values) is not tuple or not all(
            type(pair) is tuple and len(pair) == 2 and all(type(text) is str for text in pair)
            for pair in values
        ):
            return "the values of a record are not texts"
        if len({name for name, _ in values}) < len(values):
            return "a record has two values of one variable"
    return ""


def read_whole_number(facts: Mapping[str, Any], name: str, default: int) -> int | None:
    """Return a fact that is a whole number, or None where it is anything else."""
    found = facts.get(name, default)
    return found if type(found) is int else None


def read_margins(value: object) -> tuple[Margin, ...] | None:
    """Return a fact that is a tuple of tables, or None where it is anything else."""
    if type(value) is not tuple or not all(type(item) is Margin for item in value):
        return None
    return value
