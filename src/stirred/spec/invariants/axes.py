r"""A finite model of one record type in which questions about margins have the same answer as in the domain.

A margin is a product of one subspace per variable: all levels (in ``by``), the sum over some levels (in ``where``), or the
sum over all. Three facts make the model small:

- *Alike levels.* Levels of a variable that no restriction tells apart can be exchanged for one another. The space of a class
  of alike levels is the constants and the zero-sum part; permutations act irreducibly on the latter, and it is there
  as soon as the class has two levels. So two levels stand for any larger number.
- *Plain variables.* A variable that no margin is restricted by has one class. A table contains the zero-sum part of a set
  of plain variables exactly when it shows all of them, so only a comparison of sets is left of them.
- *Own parts.* Where block → county, the value of block is county's value and a part of its own. Under functional
  dependencies with one source each, showing a variable is showing the own parts of everything it determines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from stirred.spec.domain import Domain
from stirred.spec.invariants.margins import Margin

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
