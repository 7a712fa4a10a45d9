r"""What a workload costs inside the multiverse: a measured query that the invariants determine costs nothing there.

Two data sets of one universe have the same answers to such a query, in every geounit, so its noisy answers have the same
law for both. What is left of the path's $\rho^2$ is what a change of one person can move (Lemma 6 of ``proof.md``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from stirred.mechanisms.topdown.tree.geounits import ALIASES
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec.invariants.rank import Row, Span, rows_of

MOST_ATOMS = (
    4096  # beyond, several exact queries are not combined: a query may then be charged that could be free
)


@dataclass(frozen=True, slots=True)
class Inside:
    """The ρ² of a workload inside its multiverse, and the measured parts that cost nothing there, by level and query."""

    rho_squared: Fraction
    free: dict[tuple[str, str], Fraction]

    @property
    def saved(self) -> Fraction:
        """What the stated total counts for queries that the invariants determine."""
        return sum(self.free.values(), Fraction(0))


def inside(
    workload: Workload, options: SpineOptions | None = None, spine: Sequence[str] | None = None
) -> Inside:
    """The cost of every path inside the multiverse, in the tree that the options describe.

    ``spine`` names the levels of the census. Left out, a tree in parts may lack any of them, and more is charged.

    >>> small = Workload.preset("small")
    >>> found = inside(small)
    >>> sorted(found.free), round(float(found.rho_squared), 4)
    ([('state', 'total')], 1.7052)
    """
    free: dict[tuple[str, str], Fraction] = {}
    for level in workload.levels:
        given = [workload.query(name) for name in exact_at(workload, level, options, spine)]
        for query in workload.queries:
            part = workload.rho(level, query.name)
            if part and determined(query, given):
                free[level, query.name] = part
    return Inside(workload.rho_squared - sum(free.values(), Fraction(0)), free)


def exact_at(
    workload: Workload, level: str, options: SpineOptions | None = None, spine: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The queries whose answers are invariants in every geounit of a level: exact there, or in parts that make it up.

    A split tree measures parts of areas: what is exact for a whole area is not exact for its parts, only what is exact in
    every leaf is. The earlier product that a workload agrees with is published with noise and is no invariant.
    """
    order = {name: place for place, name in enumerate(workload.levels)}
    leaf = len(workload.levels) - 1
    needed = leaf if in_parts(workload, level, options, spine or ()) else order[level]
    return tuple(
        rule.query for rule in workload.rules if rule.kind == "exact" and order.get(rule.level, -1) >= needed
    )


def in_parts(workload: Workload, level: str, options: SpineOptions | None, spine: Sequence[str]) -> bool:
    """Whether the geounits of a level in the measured tree are not the census's own areas.

    The share of a level that the census lacks is spent below it: above split areas, on their parts.
    """
    if not options or level == workload.levels[-1]:
        return False
    split = spine.index(options.split_at) if options.split_at in spine else 0
    here = next((spine.index(name) for name in (level, *ALIASES.get(level, ())) if name in spine), None)
    cut = options.aian is not None and (here is None or here >= split)
    return cut or level in options.added or (options.primitives is not None and level == "tract")


def determined(query: Query, given: Sequence[Query]) -> bool:
    """Whether the answers of the given queries determine those of the query, for every histogram: by rank, exactly.

    >>> from stirred.mechanisms.topdown.workload.histogram import Histogram, HistogramAxis
    >>> kind = HistogramAxis(name="kind", size=3, recodes={"first": (0, -1, -1), "others": (-1, 0, 0)})
    >>> h = Histogram(axes=(kind, HistogramAxis(name="sex", size=2)))
    >>> total, first, others = (h.query("", parts) for parts in [(), ("first",), ("others",)])
    >>> determined(total, [first]), determined(total, [first, others]), determined(first, [total])
    (False, True, False)
    """
    if any(_sums(query, one) for one in given):
        return True
    return len(given) > 1 and _combined(query, given)


def _sums(query: Query, whole: Query) -> bool:
    """Whether every answer is a sum of answers of one other query; a product of rows is, if each of its factors is."""
    for wanted, factor in zip(query.factors, whole.factors, strict=True):
        span = Span()
        for key, row in _rows(factor).items():
            span.add(key, row)
        if any(span.combination(row) is None for row in _rows(wanted).values()):
            return False
    return True


def _rows(factor: Sequence[int]) -> dict[tuple[str, ...], Row]:
    return rows_of([None if group < 0 else (str(group),) for group in factor])


def _combined(query: Query, given: Sequence[Query]) -> bool:
    """Whether the rows of all given queries together span those of the query, on the cells that none of them tells apart."""
    every = (query, *given)
    classes = [
        sorted(
            {tuple(one.factors[axis][level] for one in every) for level in range(len(query.factors[axis]))}
        )
        for axis in range(len(query.factors))
    ]
    if prod(map(len, classes)) > MOST_ATOMS:
        return False
    atoms: list[tuple[tuple[int, ...], ...]] = [()]
    for axis in classes:
        atoms = [(*atom, one) for atom in atoms for one in axis]
    span = Span()
    for place in range(1, len(every)):
        for key, row in rows_of([_answer(atom, place) for atom in atoms]).items():
            span.add((place, key), row)
    return all(
        span.combination(row) is not None for row in rows_of([_answer(atom, 0) for atom in atoms]).values()
    )


def _answer(atom: tuple[tuple[int, ...], ...], place: int) -> tuple[str, ...] | None:
    """The answer of a query that an atom is counted in, None where one of its levels is dropped."""
    groups = [axis[place] for axis in atom]
    return None if min(groups, default=0) < 0 else tuple(map(str, groups))
