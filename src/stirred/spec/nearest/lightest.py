r"""The lightest signed table that every exact table sums to zero: the smallest change inside a universe.

A data set is a table of counts, so two data sets of one universe differ by an integer table $z \ne 0$ that every exact table
sums to zero. On a model (see `axes`) a table of cells times plain parts, the smallest norm is
$\min_J 2^{|J|}\, m(J)$: alternate in the plain parts $J$, and let $m(J)$ be the smallest norm on the cells of what the
tables that show all of $J$ sum to zero. *Proof.* Such a product is a kernel vector. Conversely take a plain part $p$. If the
sum of $z$ over $p$ is not zero, it is a kernel vector without $p$ and no heavier. Else two slices along $p$ are nonzero,
and the tables that show $p$ sum both to zero: at least twice $m$ with $p$ in $J$. Repeat for the other parts. Without
restrictions there is one cell, and this is $2^{|F|}$ for the smallest set $F$ contained in no margin. Two levels of a class
stand for all: adding up the others of the class keeps a kernel vector, makes it no heavier, and not zero for some choice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred.spec.invariants.axes import Model, UndecidedError
from stirred.spec.invariants.determine import find_keys
from stirred.spec.invariants.rank import Span, build_rows
from stirred.spec.multiverse import Margin

MAX_TABLE_SETS = 20_000
MAX_CELLS = 400
MAX_STEPS = 40_000


@dataclass(frozen=True, slots=True)
class TableKeys:
    """An exact table on a model: the key of each cell (None: not counted), and the plain parts it shows."""

    keys: tuple[tuple[str, ...] | None, ...]
    shown: frozenset[str]

    @staticmethod
    def of(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> "TableKeys":
        return TableKeys(tuple(find_keys(margin, model, cells)), model.find_shown_parts(margin.by))

    def on(self, places: Sequence[int]) -> "TableKeys":
        """Return the table restricted to these cells."""
        return TableKeys(tuple(self.keys[place] for place in places), self.shown)


@dataclass(frozen=True, slots=True)
class LightestVector:
    """A vector on cells and the plain parts to alternate in; ``proved`` where no lighter one exists."""

    vector: Mapping[int, int]
    alternating: frozenset[str]
    proved: bool

    @property
    def norm(self) -> int:
        return int(sum(map(abs, self.vector.values()))) << len(self.alternating)


def find_lightest(
    tables: Sequence[TableKeys],
    parts: Iterable[str],
    group: Iterable[int],
    size: int,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> LightestVector | None:
    """Return the lightest signed table on ``size`` cells that every table sums to zero and the group does not.

    With a ``view``, the keys under which a released table counts the cells, the view does not sum it to zero. Then ``parts``
    are the plain parts that the view shows. *Proof* that no other part has to alternate: the sum over a part that the view
    does not show is a kernel vector with the same view, and no heavier. For a part that it shows the argument above holds
    with "the view is not zero" for "is not zero".

    >>> pairs = [TableKeys(((),), frozenset(names)) for names in ("uv", "vw", "uw")]
    >>> found = find_lightest(pairs, "uvw", [0], 1)
    >>> sorted(found.alternating), found.norm
    (['u', 'v', 'w'], 8)
    >>> find_lightest([TableKeys(((),), frozenset("uvw"))], "uvw", [0], 1) is None
    True
    """
    if size > MAX_CELLS:
        raise UndecidedError(f"more than {MAX_CELLS} kinds of records would have to be weighed")
    chosen = sorted(group)
    best: LightestVector | None = None
    proved = True
    for seeing, alternating in _find_hidden_parts(tables, parts).items():
        below = None if best is None else -(-best.norm >> len(alternating))
        if best is not None and below is not None and below <= 1:
            # of two equally light ones, the one that keeps to one kind of records is easier to read
            free = _find_uncounted_cell([tables[place].keys for place in seeing], chosen)
            if free is not None and len(best.vector) > 1 and best.norm == 1 << len(alternating):
                best = LightestVector({free: 1}, alternating, proved)
            continue
        found, sure = find_shortest(
            [tables[place].keys for place in sorted(seeing)], chosen, size, below, view
        )
        proved &= sure
        if found is not None:
            best = LightestVector(found, alternating, proved)
    return best and LightestVector(best.vector, best.alternating, proved)


def _find_hidden_parts(
    tables: Sequence[TableKeys], parts: Iterable[str]
) -> dict[frozenset[int], frozenset[str]]:
    """Return for each set of tables left over the fewest plain parts that the others do not show together.

    Parts that the same tables show can stand for one another, so one of each kind is enough.
    """
    kinds: dict[frozenset[int], str] = {}
    for part in sorted(parts):
        kinds.setdefault(frozenset(i for i, table in enumerate(tables) if part in table.shown), part)
    found = {frozenset(range(len(tables))): frozenset[str]()}
    layer = list(found)
    while layer:
        following = []
        for seeing in layer:
            for kind, part in kinds.items():
                less = seeing & kind
                if less not in found:
                    found[less] = found[seeing] | {part}
                    following.append(less)
        if len(found) > MAX_TABLE_SETS:
            raise UndecidedError("too many combinations of exact tables would have to be weighed")
        layer = following
    return found


def find_shortest(
    tables: Sequence[Sequence[tuple[str, ...] | None]],
    group: Sequence[int],
    size: int,
    below: int | None = None,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> tuple[dict[int, int] | None, bool]:
    """Return the integer vector of smallest norm below ``below`` that all tables sum to zero, the group not.

    With a ``view`` (the key of each cell; None: not in it), the view does not sum it to zero; the group are its cells.

    The second answer says whether this is proved. A depth-first search with growing limits: each further record changes
    each table in one cell at most, so what a table still shows bounds how many are missing.

    >>> rows = [[("a",), ("a",), ("b",), ("b",)], [("c",), ("d",), ("c",), ("d",)]]
    >>> found, proved = find_shortest(rows, [0], 4)
    >>> sorted(found.items()), proved
    ([(0, 1), (1, -1), (2, -1), (3, 1)], True)
    """
    free = _find_uncounted_cell(tables, group)
    if free is not None:
        return {free: 1}, True
    known = _find_kernel_vector(tables, group, size, view)
    if known is None:
        return None, True
    weight = sum(map(abs, known.values()))
    light = known if below is None or weight < below else None
    search = _Search(tables, size, view)
    for limit in range(2, weight if below is None else min(weight, below)):
        for start in group:
            found = search.find_within({start: 1}, limit)
            if found is not None:
                return found, True
            if search.steps > MAX_STEPS:
                return light, False
    return light, True


def _find_uncounted_cell(
    tables: Sequence[Sequence[tuple[str, ...] | None]], group: Sequence[int]
) -> int | None:
    """Return a cell of the group that no table counts, or None."""
    return next((place for place in group if all(table[place] is None for table in tables)), None)


def _find_kernel_vector(
    tables: Sequence[Sequence[tuple[str, ...] | None]],
    group: Sequence[int],
    size: int,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> dict[int, int] | None:
    """Return the lightest kernel vector at hand that the group or the view shows, or None."""
    span = Span()
    for number, table in enumerate(tables):
        for key, row in build_rows(table[:size]).items():
            span.add((number, key), row)
    found: dict[int, int] | None = None
    wanted = (
        [{place: Fraction(1)} for place in group] if view is None else [*build_rows(view[:size]).values()]
    )
    for row in wanted:
        if span.find_combination(row) is None:
            vector = span.find_kernel_vector(row)
            if sum(vector.get(place, 0) for place in row) and (
                found is None or sum(map(abs, vector.values())) < sum(map(abs, found.values()))
            ):
                found = vector
    return found


class _Search:
    """The state of a search: which cells each row of a table counts, and how many steps were made."""

    def __init__(
        self,
        tables: Sequence[Sequence[tuple[str, ...] | None]],
        size: int,
        view: Sequence[tuple[str, ...] | None] | None = None,
    ) -> None:
        self.view = view
        self.keys = [table[:size] for table in tables]
        self.members: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for number, table in enumerate(self.keys):
            for place, key in enumerate(table):
                if key is not None:
                    self.members.setdefault((number, key), []).append(place)
        self.steps = 0

    def find_within(self, vector: dict[int, int], limit: int) -> dict[int, int] | None:
        """Return a kernel vector of at most this norm that extends the given one, or None."""
        return self._extend(vector, limit - sum(map(abs, vector.values())), set())

    def _extend(
        self, vector: dict[int, int], left: int, met: set[frozenset[tuple[int, int]]]
    ) -> dict[int, int] | None:
        state = frozenset(vector.items())
        if state in met or self.steps > MAX_STEPS:
            return None
        met.add(state)
        self.steps += 1
        sums = self._sums(vector)
        if not sums:
            # a vector that the view does not show is part of no lightest one: the rest would be lighter
            return vector if self._is_noticed(vector) else None
        weight: dict[int, int] = {}
        for (number, _), value in sums.items():
            weight[number] = weight.get(number, 0) + abs(value)
        if max(weight.values()) > left:
            return None
        row = min(sums, key=lambda at: (len(self.members[at]), at))
        sign = -1 if sums[row] > 0 else 1
        for place in self.members[row]:
            if vector.get(place, 0) * sign >= 0:
                found = self._extend({**vector, place: vector.get(place, 0) + sign}, left - 1, met)
                if found is not None:
                    return found
        return None

    def _is_noticed(self, vector: Mapping[int, int]) -> bool:
        """Return whether the view shows the vector: it does not sum it to zero."""
        if self.view is None:
            return True
        counts: dict[tuple[str, ...], int] = {}
        for place, value in vector.items():
            key = self.view[place]
            if key is not None:
                counts[key] = counts.get(key, 0) + value
        return any(counts.values())

    def _sums(self, vector: Mapping[int, int]) -> dict[tuple[int, tuple[str, ...]], int]:
        sums: dict[tuple[int, tuple[str, ...]], int] = {}
        for place, value in vector.items():
            for number, table in enumerate(self.keys):
                key = table[place]
                if key is not None:
                    sums[number, key] = sums.get((number, key), 0) + value
        return {row: value for row, value in sums.items() if value}
