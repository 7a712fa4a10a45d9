"""Matrices of tests: a few cases that represent the others run in ``make test``, all of them in ``make test-slow``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mark_slow(cases: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Return every case, those that are not quick with the mark ``slow``; each quick one must be a case."""
    every = list(cases)
    assert all(case in every for case in quick), "a quick case is none of the cases"
    return [
        case
        if case in quick
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in every
    ]
