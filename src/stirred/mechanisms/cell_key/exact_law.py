"""The exact law of one table of perturbed counts: cells are disjoint, so their keys are independent and uniform."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import pyarrow as pa

from stirred.frames import frame_of
from stirred.mechanisms.cell_key.perturbation import UNITS_PER_ONE, Perturbation
from stirred.mechanisms.contents import MAX_OUTPUTS, Content, Law, Row, make_content, rows_of

COUNT_COLUMN = "count"


def enumerate_table(
    counts: pa.Table, by: Sequence[str], perturbation: Perturbation, *, name: str, threshold: int
) -> Law | None:
    """Return the law of everything that one table may show, or None where there are too many outputs.

    A key differs from uniform by less than its modulus / 2⁵³, which is left out here.
    """
    frame = frame_of(counts)
    numbers = frame[COUNT_COLUMN].to_list()
    cells = rows_of(frame.select(list(by))) if by else [()] * len(numbers)
    options = [
        _enumerate_cell(cell, number, by, perturbation, threshold)
        for cell, number in zip(cells, numbers, strict=True)
    ]
    if prod(len(option) for option in options) > MAX_OUTPUTS:
        return None
    found: dict[tuple[Row, ...], Fraction] = {(): Fraction(1)}
    for option in options:
        found = {
            (*rows, *row): chance * more for rows, chance in found.items() for row, more in option.items()
        }
    law: dict[Content, Fraction] = {}
    for rows, chance in found.items():
        content = make_content({name: rows})
        law[content] = law.get(content, Fraction(0)) + chance
    return law


def _enumerate_cell(
    cell: Row, number: int, by: Sequence[str], perturbation: Perturbation, threshold: int
) -> dict[tuple[Row, ...], Fraction]:
    """Return the law of everything that one cell may show: its row with a count, or nothing."""
    reach = int(perturbation.largest)
    noise = np.arange(-reach, reach + 1)
    chances = perturbation.chance(np.full(len(noise), number), noise)
    names = sorted([*by, COUNT_COLUMN])
    values = dict(zip(sorted(by), cell, strict=True))
    found: dict[tuple[Row, ...], Fraction] = {}
    for value, chance in zip((number + noise).tolist(), chances.tolist(), strict=True):
        if chance:
            row = tuple(str(value) if name == COUNT_COLUMN else values[name] for name in names)
            key = (row,) if value >= max(threshold, 1) else ()
            found[key] = found.get(key, Fraction(0)) + Fraction(chance).limit_denominator(UNITS_PER_ONE)
    return found
