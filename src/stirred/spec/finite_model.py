"""Decide by exact linear algebra on a finite model whether tables of one record type determine another."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import lcm
from typing import TypeVar

from stirred.spec.domain import Domain
from stirred.spec.invariants import Margin
from stirred.spec.verdict import DataSet, Witness

# A finite model of one record type in which questions about margins have the same answer as in the domain.
#
# A margin is a product of one subspace per variable: all levels (in ``by``), the sum over some levels (in ``where``),
# or the sum over all. Three facts make the model small:
#
# - *Alike levels.* Levels of a variable that no restriction tells apart can be exchanged for one another. The space of
#   a class of alike levels is the constants and the zero-sum part; permutations act irreducibly on the latter, and it
#   is there as soon as the class has two levels. So two levels stand for any larger number.
# - *Plain variables.* A variable that no margin is restricted by has one class. A table contains the zero-sum part of a set
#   of plain variables exactly when it shows all of them, so only a comparison of sets is left of them.
# - *Own parts.* Where block → county, the value of block is county's value and a part of its own. Under functional
#   dependencies with one source each, showing a variable is showing the own parts of everything it determines.

MAX_MODEL_CELLS = 1200
MAX_MAPS = 600


class UndecidedError(Exception):
    """Raised when a model would be too large, or the domain does not say enough; the text says which."""


@dataclass(frozen=True, slots=True)
class ModelAxis:
    """Variables that are restricted somewhere, with joint levels that stand for all others."""

    variables: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A finite model: the axes of restricted variables written out, and the own parts of plain variables."""

    record_type: str
    axes: tuple[ModelAxis, ...]
    plain: frozenset[str]  # own parts that take at least two values
    parts: Mapping[str, frozenset[str]]  # the own parts that a plain variable shows

    def cells(self) -> list[dict[str, str]]:
        """Return all combinations of levels on the axes."""
        found = []
        for choice in product(*(axis.levels for axis in self.axes)):
            cell: dict[str, str] = {}
            for axis, level in zip(self.axes, choice, strict=True):
                cell.update(zip(axis.variables, level, strict=True))
            found.append(cell)
        return found

    def find_shown_parts(self, names: Iterable[str]) -> frozenset[str]:
        """Return the own parts of plain variables that these variables show."""
        return frozenset[str]().union(*(self.parts.get(name, frozenset()) for name in names)) & self.plain

    def list_restricted(self) -> frozenset[str]:
        return frozenset(name for axis in self.axes for name in axis.variables)


def build_models(domain: Domain, record_type: str, margins: Sequence[Margin]) -> Iterator[Model]:
    """Yield the models of a question: one for each map of areas that the domain leaves open.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> kinds = Variable(name="kind", levels=("a", "b", "c", "d"))
    >>> toy = Domain(name="toy", record_types=(RecordType(name="unit", variables=(kinds, Variable(name="x"))),))
    >>> (model,) = build_models(toy, "unit", [Margin("unit", ("x",), {"kind": ["a"]})])
    >>> model.axes[0].levels, sorted(model.plain)
    ((('a',), ('b',), ('c',)), ['x'])
    """
    named = sorted({name for margin in margins for name in (*margin.by, *margin.conditions())})
    limits: dict[str, list[frozenset[str]]] = {}
    for margin in margins:
        for name, values in margin.conditions().items():
            limits.setdefault(name, []).append(frozenset(values))
    tied = _group_tied_variables(domain, record_type, named)
    joint = [group for group in tied if len(group) > 1 and any(name in limits for name in group)]
    together = {name for group in joint for name in group}
    single = [
        _group_levels(domain, record_type, name, limits[name])
        for name in sorted(limits)
        if name not in together
    ]
    parts = {
        name: domain.closure(record_type, (name,))
        for name in named
        if name not in limits and name not in together
    }
    plain = frozenset(
        part
        for shown in parts.values()
        for part in shown
        if part not in limits and part not in together and not _is_constant(domain, record_type, part)
    )
    choices = [list(_enumerate_joint_levels(domain, record_type, group)) for group in joint]
    if _count_choices(choices) > MAX_MAPS:
        raise UndecidedError(
            "the domain does not say which area lies in which, and too many ways are possible"
        )
    for chosen in product(*choices):
        axes = (*single, *chosen)
        if _count_choices([axis.levels for axis in axes]) > MAX_MODEL_CELLS:
            raise UndecidedError(
                f"more than {MAX_MODEL_CELLS} combinations of restricted levels would have to be weighed"
            )
        yield Model(record_type=record_type, axes=axes, plain=plain, parts=parts)


def _count_choices(choices: Iterable[Sequence[object]]) -> int:
    total = 1
    for options in choices:
        total *= len(options)
    return total


def count_levels(domain: Domain, record_type: str, name: str) -> int | None:
    """Return how many levels a variable has, or None where the domain does not say."""
    if not domain.has(record_type):
        return None
    return next((v.size for v in domain.record_type(record_type).variables if v.name == name), None)


def _is_constant(domain: Domain, record_type: str, name: str) -> bool:
    """Return whether the own part of a variable has one value only.

    It has one level, or as many levels as a variable that it determines.
    """
    size = count_levels(domain, record_type, name)
    if size is None:
        return False
    above = domain.closure(record_type, (name,)) - {name}
    return size == 1 or any(count_levels(domain, record_type, other) == size for other in above)


def _group_levels(domain: Domain, record_type: str, name: str, limits: Sequence[frozenset[str]]) -> ModelAxis:
    """Return the axis of one restricted variable: two levels of each class that restrictions do not tell apart."""
    levels = domain.levels(record_type, name)
    if levels is None:
        mentioned = tuple(sorted(frozenset[str]().union(*limits)))
        size = count_levels(domain, record_type, name)
        rest = 2 if size is None else max(0, min(2, size - len(mentioned)))
        levels = (*mentioned, *(f"another {name} {i + 1}" for i in range(rest)))
    classes: dict[tuple[bool, ...], list[str]] = {}
    for level in levels:
        classes.setdefault(tuple(level in limit for limit in limits), []).append(level)
    kept = [level for members in classes.values() for level in members[:2]]
    return ModelAxis((name,), tuple((level,) for level in kept))


def _group_tied_variables(domain: Domain, record_type: str, named: Sequence[str]) -> list[list[str]]:
    """Return the named variables in groups that dependencies tie together."""
    groups: list[set[str]] = []
    for name in named:
        reach = set(domain.closure(record_type, (name,)))
        met = [group for group in groups if group & reach]
        for group in met:
            reach |= group
            groups.remove(group)
        groups.append(reach)
    return [sorted({*group} & {*named}) for group in groups]


def _enumerate_joint_levels(domain: Domain, record_type: str, group: Sequence[str]) -> Iterator[ModelAxis]:
    """Yield the joint levels of tied, restricted variables: one axis for each map that fits the stated levels."""
    levels = {name: domain.levels(record_type, name) for name in group}
    # a chain: each variable determines the ones before it
    chain = sorted(group, key=lambda name: len(domain.closure(record_type, (name,)) & {*group}))
    nested = all(
        {*chain[: place + 1]} <= domain.closure(record_type, (name,)) for place, name in enumerate(chain)
    )
    if not nested or any(found is None for found in levels.values()):
        raise UndecidedError(
            f"a table is restricted by one of {', '.join(group)}, and the domain does not list which lies in which"
        )
    steps = [levels[name] or () for name in chain]
    possible = 1
    for coarse, fine in pairwise(steps):
        possible *= len(coarse) ** len(fine)
    if possible > MAX_MAPS:
        raise UndecidedError(f"the domain does not say which {chain[-1]} lies in which {chain[0]}")
    maps = [_enumerate_maps(coarse, fine) for coarse, fine in pairwise(steps)]
    for chosen in product(*maps):
        rows = []
        for leaf in steps[-1]:
            path = [leaf]
            for above in reversed(chosen):
                path.append(above[path[-1]])
            rows.append(tuple(reversed(path)))
        yield ModelAxis(tuple(chain), tuple(rows))


def _enumerate_maps(coarse: Sequence[str], fine: Sequence[str]) -> list[dict[str, str]]:
    """Return all maps from fine to coarse areas in which every coarse area has at least one part."""
    found = [dict(zip(fine, above, strict=True)) for above in product(coarse, repeat=len(fine))]
    return [way for way in found if set(way.values()) == set(coarse)]


# Exact linear algebra over the rationals on sparse rows: spans with their combinations, and kernel vectors.

Row = dict[int, Fraction]
Label = TypeVar("Label", bound=Hashable)


@dataclass(slots=True)
class Span:
    """The span of labelled rows in echelon form; each stored row keeps the labels it is a combination of.

    >>> span = Span()
    >>> span.add("a", {0: Fraction(1), 1: Fraction(1)})
    >>> span.add("b", {1: Fraction(1)})
    >>> span.find_combination({0: Fraction(2)})
    {'a': Fraction(2, 1), 'b': Fraction(-2, 1)}
    """

    pivots: dict[int, tuple[Row, dict[Hashable, Fraction]]] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.pivots)

    def _reduce(self, row: Mapping[int, Fraction]) -> tuple[Row, dict[Hashable, Fraction]]:
        rest, used = dict(row), dict[Hashable, Fraction]()
        while True:
            place = next((c for c in sorted(rest) if c in self.pivots), None)
            if place is None:
                return rest, used
            pivot, made = self.pivots[place]
            factor = rest[place]
            _subtract(rest, pivot, factor)
            _subtract(used, made, -factor)

    def add(self, label: Hashable, row: Mapping[int, Fraction]) -> None:
        """Add a row; a row that lies in the span changes nothing."""
        rest, used = self._reduce(row)
        if not rest:
            return
        place = min(rest)
        scale = 1 / rest[place]
        made = {name: -value * scale for name, value in used.items()}
        made[label] = made.get(label, Fraction(0)) + scale
        self.pivots[place] = ({c: value * scale for c, value in rest.items()}, made)

    def find_combination(self, row: Mapping[int, Fraction]) -> dict[Hashable, Fraction] | None:
        """Return the row as a combination of the labelled rows, or None where it lies outside their span."""
        rest, used = self._reduce(row)
        return None if rest else {label: value for label, value in used.items() if value}

    def find_kernel_vector(self, outside: Mapping[int, Fraction]) -> dict[int, int]:
        """Return an integer vector that is orthogonal to every row of the span, but not to ``outside``."""
        rest, _ = self._reduce(outside)
        free = min(c for c in rest if c not in self.pivots)
        # back substitution: set the free column to 1, every other free column to 0
        value: Row = {free: Fraction(1)}
        for place in sorted(self.pivots, reverse=True):
            pivot, _ = self.pivots[place]
            total = sum((pivot[c] * value[c] for c in pivot if c != place and c in value), Fraction(0))
            if total:
                value[place] = -total
        scale = lcm(*(entry.denominator for entry in value.values()))
        return {c: int(entry * scale) for c, entry in value.items() if entry}


def _subtract(row: dict[Label, Fraction], other: Mapping[Label, Fraction], factor: Fraction) -> None:
    for name, value in other.items():
        left = row.get(name, Fraction(0)) - factor * value
        if left:
            row[name] = left
        else:
            row.pop(name, None)


def build_rows(keys: Sequence[tuple[str, ...] | None]) -> dict[tuple[str, ...], Row]:
    """Return the 0/1 rows of a table: cell i is counted under its key, or not at all where the key is None.

    >>> build_rows([("a",), None, ("a",)])
    {('a',): {0: Fraction(1, 1), 2: Fraction(1, 1)}}
    """
    found: dict[tuple[str, ...], Row] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, {})[place] = Fraction(1)
    return found


# Whether tables of one record type determine another table of it: by linear algebra on the finite model.

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedTable:
    """A signed table that every given table sums to zero: numbers on cells, alternating in plain variables."""

    model: Model
    cells: tuple[tuple[Mapping[str, str], int], ...]
    alternating: frozenset[str]


def find_keys(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> list[Key | None]:
    """Return the cell of the margin under which each cell of the model is counted; plain variables are ignored."""
    inside = model.list_restricted()
    shown = [name for name in margin.by if name in inside]
    conditions = margin.conditions()
    return [
        tuple(cell[name] for name in shown) if all(cell[n] in v for n, v in conditions.items()) else None
        for cell in cells
    ]


def build_table_rows(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> dict[Key, Row]:
    return build_rows(find_keys(margin, model, cells))


def find_combinations(
    given: Sequence[Margin], wanted: Margin, model: Model
) -> "dict[Key, dict[object, object]] | SignedTable":
    """Return each row of the wanted table as a combination of given rows, or a signed table that refutes it.

    Only given tables that show all plain variables of the wanted one can contribute to its part that is zero-sum in
    each of them; and that part contains the others.
    """
    cells = model.cells()
    shown = model.find_shown_parts(wanted.by)
    span = Span()
    for place, margin in enumerate(given):
        if model.find_shown_parts(margin.by) >= shown:
            for key, row in build_table_rows(margin, model, cells).items():
                span.add((place, key), row)
    found: dict[Key, dict[object, object]] = {}
    for key, row in build_table_rows(wanted, model, cells).items():
        combination = span.find_combination(row)
        if combination is None:
            vector = span.find_kernel_vector(row)
            table = tuple((cells[place], n) for place, n in sorted(vector.items()))
            return SignedTable(
                model=model, cells=table, alternating=_find_fewest_parts(given, table, shown, model)
            )
        found[key] = dict(combination)
    return found


def _sums_to_zero(margin: Margin, table: Sequence[tuple[Mapping[str, str], int]], model: Model) -> bool:
    sums: dict[Key, int] = {}
    places = find_keys(margin, model, [cell for cell, _ in table])
    for key, (_, n) in zip(places, table, strict=True):
        if key is not None:
            sums[key] = sums.get(key, 0) + n
    return not any(sums.values())


def _find_fewest_parts(
    given: Sequence[Margin],
    table: Sequence[tuple[Mapping[str, str], int]],
    shown: frozenset[str],
    model: Model,
) -> frozenset[str]:
    """Return the fewest plain variables to alternate in so that every given table sums to zero."""
    needed = [shown - model.find_shown_parts(m.by) for m in given if not _sums_to_zero(m, table, model)]
    for number in range(len(shown) + 1):
        for chosen in combinations(sorted(shown), number):
            if all({*chosen} & hidden for hidden in needed):
                return frozenset(chosen)
    raise AssertionError("a table that shows every plain variable sums the vector to zero by itself")


def generate_pairs(
    signed: SignedTable, domain: Domain, wanted: Margin, names: frozenset[str]
) -> Iterator[Witness]:
    """Yield pairs of data sets whose difference is the signed table, then those with records changed in place.

    In place means that each record of x becomes one of x' by a change of one plain variable (and of what determines
    it), so that identifiers can be kept and tables of other record types stay the same.
    """
    yield _write_pair(signed, domain, names, flip=None)
    for flip in sorted(signed.model.find_shown_parts(wanted.by)):
        more = SignedTable(model=signed.model, cells=signed.cells, alternating=signed.alternating | {flip})
        yield _write_pair(more, domain, names, flip=flip)


def _write_pair(signed: SignedTable, domain: Domain, names: frozenset[str], flip: str | None) -> Witness:
    kind = signed.model.record_type
    order = sorted(signed.alternating)
    identifiers = domain.identifiers(kind) & names
    sides: tuple[list[tuple[dict[str, str], int]], ...] = ([], [])
    plain = sorted(names - {name for cell, _ in signed.cells for name in cell} - identifiers)
    shown = {name: _order_parts(domain, kind, name) for name in plain}
    numbers: dict[tuple[object, ...], int] = {}
    for place, (cell, n) in enumerate(signed.cells):
        for bits in product((0, 1), repeat=len(order)):
            own = dict(zip(order, bits, strict=True))
            record = dict(cell)
            for name in plain:
                parts = signed.model.parts.get(name, frozenset())
                record[name] = make_label(domain, kind, name, shown[name], own, parts)
            positive = (n > 0) == (sum(bits) % 2 == 0)
            side = sides[1 if positive else 0]
            if flip is None or not identifiers:
                side.append((record, abs(n)))
                continue
            # the two records that differ in the flipped variable alone are one and the same household
            rest = tuple(bit for part, bit in own.items() if part != flip)
            first = numbers.setdefault((place, rest), len(numbers) * 1000)
            for copy in range(abs(n)):
                side.append(({**record, **{name: f"{name} {first + copy + 1}" for name in identifiers}}, 1))
    return Witness(DataSet.of(kind, sides[0]), DataSet.of(kind, sides[1]))


def _order_parts(domain: Domain, kind: str, name: str) -> list[str]:
    """Return the own parts that a variable shows, coarse ones first."""
    return sorted(domain.closure(kind, (name,)), key=lambda part: (len(domain.closure(kind, (part,))), part))


def make_label(
    domain: Domain, kind: str, name: str, shown: Sequence[str], own: Mapping[str, int], parts: frozenset[str]
) -> str:
    """Return a value of a plain variable for the own parts it shows; a listed level where the domain has one."""
    profile = next((part for part in sorted(parts) if part.startswith("profile of ") and part in own), None)
    if profile is not None:
        return f"{name} of profile {own[profile] + 1}"
    levels = domain.levels(kind, name)
    if levels is not None and len(shown) == 1 and len(levels) > own.get(name, 0):
        if name == "occupancy" and "vacant" in levels and name not in own:
            return "vacant"  # a vacant unit concerns nobody else
        return levels[own.get(name, 0)]
    return f"{name} " + ".".join(str(own.get(part, 0) + 1) for part in shown)
