r"""What the invariants alone say about the data: the range of a cell, and whether a universe is a single data set.

The counts $x' \ge 0$ with $A x' = A x$ are all data sets of the universe of $x$. A cell's largest value is the largest
$c \cdot x'$ among them. A data set that reaches a value proves it from below; numbers $y$ with $A^T y \ge c$ prove
$c \cdot x' \le y \cdot A x$ from above. Both are verified in exact arithmetic; where they do not meet, the bound
holds
and whether it is attained is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import TYPE_CHECKING

from stirred.spec.domain import Domain
from stirred.spec.finite_model import UndecidedError
from stirred.spec.invariants import Margin, pluralize
from stirred.spec.multiverse import Multiverse
from stirred.spec.nearest import ask_own_tables, write_pair
from stirred.spec.verdict import DataSet, Derivation, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_CELLS = 4000
MAX_COMBINATIONS = 200_000
MAX_SEARCH_NODES = 2000
MAX_DENOMINATOR = 720  # the prices that prove a bound are rationals with small denominators

Cell = dict[str, str]
Rows = tuple[tuple[tuple[int, ...], int], ...]  # which cells a row adds up, and what they add up to


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a count within one universe; ``high`` None: no bound. An end may not be attained."""

    low: int
    high: int | None
    low_attained: bool
    high_attained: bool

    def __str__(self) -> str:
        high = "any number" if self.high is None else str(self.high)
        known = "" if self.low_attained and self.high_attained else " (unknown whether attained)"
        return f"{self.low} to {high}{known}"


def is_singleton(domain: Domain, multiverse: Multiverse, record_type: str) -> Verdict:
    """Decide whether every universe is a single data set of this record type; a no has a pair of data sets.

    Identifiers are left out: a table of counts does not show them.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> toy = Domain(name="toy", record_types=(RecordType(name="person", variables=(Variable(name="age"),)),))
    >>> is_singleton(toy, Multiverse.of(Margin("person", ("age",))), "person").answer.value
    'yes'
    >>> print(is_singleton(toy, Multiverse.of(Margin("person")), "person").derivation.witness)
    x = 1 × (age = age 2); x' = 1 × (age = age 1)
    """
    question = ask_own_tables(domain, multiverse, record_type, total=False)
    try:
        change = question.find_nearest()
    except UndecidedError as why:
        return Verdict.unknown(str(why))
    if change is None:
        claim = f"the tables have as many independent cells as the {pluralize(record_type)} have combinations of values"
        return Verdict.yes(
            claim, Derivation(rule="singleton", claim=claim, facts={"tables": question.margins})
        )
    others = [i for i in multiverse if not isinstance(i, Margin) or i.record_type != record_type]
    if others or domain.constraints:
        return Verdict.unknown(
            f"the tables of {pluralize(record_type)} leave a pair of data sets, which other invariants or rules may exclude"
        )
    claim = f"two data sets of {pluralize(record_type)} agree on every table"
    pair = write_pair(domain, change.signed, multiverse, record_type)
    return Verdict.no(claim, Derivation(rule="pair", claim=claim, witness=pair))


def find_cell_range(
    domain: Domain, multiverse: Multiverse, data: DataSet, record_type: str, cell: Mapping[str, str]
) -> Range:
    """Return the smallest and largest count of records with these values over the universe of a data set.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> variables = tuple(Variable(name=name, levels=("0", "1")) for name in "hs")
    >>> toy = Domain(name="toy", record_types=(RecordType(name="unit", variables=variables),))
    >>> x = DataSet.of("unit", [({"h": "0", "s": "0"}, 3), ({"h": "1", "s": "1"}, 2)])
    >>> tables = Multiverse.of(Margin("unit", ("h",)), Margin("unit", ("s",)))
    >>> print(find_cell_range(toy, tables, x, "unit", {"h": "0", "s": "1"}))
    0 to 2
    """
    margins = [i for i in multiverse if isinstance(i, Margin) and i.record_type == record_type]
    whole = len(margins) == len(multiverse) and not domain.constraints
    cells = _list_cells(domain, margins, data, record_type, cell)
    rows = tuple(_rows(margins, data, cells))
    asked = [all(found.get(name) == value for name, value in cell.items()) for found in cells]
    here = [_count(data, record_type, found) for found in cells]
    low, low_met = _find_largest(rows, [-int(hit) for hit in asked], here)
    high, high_met = _find_largest(rows, [int(hit) for hit in asked], here)
    return Range(
        -low if low is not None else 0, high, low_met and whole, high is None or (high_met and whole)
    )


def _list_cells(
    domain: Domain, margins: Sequence[Margin], data: DataSet, record_type: str, asked: Mapping[str, str]
) -> list[Cell]:
    """Return the combinations of values that a record may have, given the exact tables of the data set."""
    names = sorted({*asked, *(name for m in margins for name in (*m.by, *m.conditions()))})
    levels = []
    for name in names:
        seen = {values.get(name, "") for values, _ in data.records(record_type)}
        stated = domain.levels(record_type, name)
        if stated is None:
            seen |= {value for margin in margins for value in margin.conditions().get(name, ())}
            stated = (f"another {name}",)
        levels.append(sorted({*stated, *seen, *([asked[name]] if name in asked else [])}))
    if prod(map(len, levels)) > MAX_COMBINATIONS:
        raise UndecidedError(
            f"more than {MAX_COMBINATIONS:,} combinations of values would have to be weighed"
        )
    tables = [(margin, data.table(margin)) for margin in margins]
    nested = [rule for rule in domain.rules(record_type) if {*rule.of, *rule.determines} <= {*names}]
    met = [
        {
            tuple(v.get(n, "") for n in rule.of): tuple(v.get(n, "") for n in rule.determines)
            for v, _ in data.records(record_type)
        }
        for rule in nested
    ]
    found: list[Cell] = []
    for values in product(*levels):
        cell = dict(zip(names, values, strict=True))
        # an area that the data set has lies where it lies there
        if any(
            known.get(tuple(cell[n] for n in rule.of), here) != here
            for rule, known in zip(nested, met, strict=True)
            for here in [tuple(cell[n] for n in rule.determines)]
        ):
            continue
        if all(table.get(key, 0) for margin, table in tables if (key := _key(margin, cell)) is not None):
            found.append(cell)
        if len(found) > MAX_CELLS:
            raise UndecidedError(f"more than {MAX_CELLS} cells would have to be weighed")
    return found


def _key(margin: Margin, cell: Mapping[str, str]) -> tuple[str, ...] | None:
    if any(cell[name] not in values for name, values in margin.conditions().items()):
        return None
    return tuple(cell[name] for name in margin.by)


def _rows(
    margins: Sequence[Margin], data: DataSet, cells: Sequence[Cell]
) -> Iterator[tuple[tuple[int, ...], int]]:
    for margin in margins:
        members: dict[tuple[str, ...], list[int]] = {}
        for place, cell in enumerate(cells):
            key = _key(margin, cell)
            if key is not None:
                members.setdefault(key, []).append(place)
        counts = data.table(margin)
        yield from ((tuple(places), counts.get(key, 0)) for key, places in members.items())


def _count(data: DataSet, record_type: str, cell: Mapping[str, str]) -> int:
    return sum(
        n for values, n in data.records(record_type) if all(values.get(k) == v for k, v in cell.items())
    )


def _find_largest(rows: Rows, objective: Sequence[int], here: Sequence[int]) -> tuple[int | None, bool]:
    """Return a proved upper bound of the objective over the universe (None: no bound), and if it is attained."""
    reached = sum(c * x for c, x in zip(objective, here, strict=True))
    if not any(objective):
        return 0, True
    bound = _bound_from_above(rows, objective)
    if bound is None:
        return None, True
    counts = _solve_integers(rows, objective)
    if (
        counts is not None
        and min(counts) >= 0
        and all(sum(counts[i] for i in p) == total for p, total in rows)
    ):
        reached = max(reached, sum(c * x for c, x in zip(objective, counts, strict=True)))
    return bound, reached == bound


def _bound_from_above(rows: Rows, objective: Sequence[int]) -> int | None:
    """Return the smallest whole number that rational prices prove, or None where no row bounds the objective."""
    proved: list[int] = []
    solved = _find_prices(rows, objective)
    if solved is not None:
        prices = [Fraction(price).limit_denominator(MAX_DENOMINATOR) for price in solved]
        cover = [Fraction(0)] * len(objective)
        for (places, _), price in zip(rows, prices, strict=True):
            for place in places:
                cover[place] += price
        if all(covered >= wanted for covered, wanted in zip(cover, objective, strict=True)):
            proved.append(floor(sum((p * t for p, (_, t) in zip(prices, rows, strict=True)), Fraction(0))))
    if all(c <= 0 for c in objective):
        proved.append(0)  # counts are not negative
    # each record that is counted stands in some row of the table
    wanted = {place for place, c in enumerate(objective) if c > 0}
    limits = [(total, {*places}) for places, total in rows]
    if wanted and all(any(place in places for _, places in limits) for place in wanted):
        proved.append(sum(min(t for t, places in limits if place in places) for place in wanted))
    return min(proved, default=None)


def _find_prices(rows: Rows, objective: Sequence[int]) -> list[float] | None:
    """Return the prices of the rows in the linear programme as floats; the caller verifies what they prove."""
    import numpy as np
    from scipy.optimize import linprog

    if not rows:
        return None
    found = linprog(
        -np.array(objective, float), A_eq=_matrix(rows, len(objective)), b_eq=_totals(rows), method="highs"
    )
    return None if found.x is None else [-float(price) for price in found.eqlin.marginals]


def _solve_integers(rows: Rows, objective: Sequence[int]) -> list[int] | None:
    """Return whole numbers that solve the integer programme by floats; the caller verifies that they fit."""
    import numpy as np
    from scipy.optimize import LinearConstraint, milp

    if not rows:
        return None
    totals = _totals(rows)
    found = milp(
        -np.array(objective, float),
        constraints=LinearConstraint(_matrix(rows, len(objective)), totals, totals),
        integrality=np.ones(len(objective), np.int64),
        options={"node_limit": MAX_SEARCH_NODES},
    )
    return None if found.x is None else [round(float(value)) for value in found.x]


def _matrix(rows: Rows, width: int) -> "NDArray[np.float64]":
    import numpy as np

    matrix = np.zeros((len(rows), width))
    for number, (places, _) in enumerate(rows):
        matrix[number, list(places)] = 1
    return matrix


def _totals(rows: Rows) -> "NDArray[np.float64]":
    import numpy as np

    return np.array([total for _, total in rows], float)
