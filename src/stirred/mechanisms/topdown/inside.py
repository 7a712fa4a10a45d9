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
from stirred.spec.invariants.rank import Row, Span, build_rows

MAX_ATOMS = (
    4096  # beyond, several exact queries are not combined: a query may then be charged that could be free
)


@dataclass(frozen=True, slots=True)
class MultiverseCost:
    """The ρ² of a workload inside its multiverse, and the measured parts that are free there."""

    rho_squared: Fraction
    free: dict[tuple[str, str], Fraction]

    @property
    def saving(self) -> Fraction:
        """Return the part of the stated total spent on queries that the invariants determine."""
        return sum(self.free.values(), Fraction(0))


def cost_in_multiverse(
    workload: Workload, options: SpineOptions | None = None, spine: Sequence[str] | None = None
) -> MultiverseCost:
    """Compute the cost of every path inside the multiverse, in the tree that the options describe.

    ``spine`` names the levels of the census. Left out, a tree in parts may lack any of them, and more is charged.

    >>> small = Workload.preset("small")
    >>> found = cost_in_multiverse(small)
    >>> sorted(found.free), round(float(found.rho_squared), 4)
    ([('state', 'total')], 1.7052)
    """
    free: dict[tuple[str, str], Fraction] = {}
    for level in workload.levels:
        given = [workload.query(name) for name in list_exact_queries(workload, level, options, spine)]
        for query in workload.queries:
            part = workload.rho(level, query.name)
            if part and is_determined(query, given):
                free[level, query.name] = part
    return MultiverseCost(workload.rho_squared - sum(free.values(), Fraction(0)), free)


def list_exact_queries(
    workload: Workload, level: str, options: SpineOptions | None = None, spine: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the queries whose answers are invariants in every geounit of a level.

    A split tree measures parts of areas: what is exact for a whole area is not exact for its parts, only what is exact in
    every leaf is. The earlier product that a workload agrees with is published with noise and is no invariant.
    """
    order = {name: place for place, name in enumerate(workload.levels)}
    leaf = len(workload.levels) - 1
    needed = leaf if is_in_parts(workload, level, options, spine or ()) else order[level]
    return tuple(
        rule.query for rule in workload.rules if rule.kind == "exact" and order.get(rule.level, -1) >= needed
    )


def is_in_parts(workload: Workload, level: str, options: SpineOptions | None, spine: Sequence[str]) -> bool:
    """Return whether the geounits of a level in the measured tree are not the census's own areas.

    The share of a level that the census lacks is spent below it: above split areas, on their parts.
    """
    if not options or level == workload.levels[-1]:
        return False
    split = spine.index(options.split_at) if options.split_at in spine else 0
    here = next((spine.index(name) for name in (level, *ALIASES.get(level, ())) if name in spine), None)
    cut = options.aian is not None and (here is None or here >= split)
    return cut or level in options.extra_levels or (options.primitives is not None and level == "tract")


def is_determined(query: Query, given: Sequence[Query]) -> bool:
    """Return whether the given queries determine the query for every histogram, by exact rank.

    >>> from stirred.mechanisms.topdown.workload.histogram import Histogram, HistogramAxis
    >>> kind = HistogramAxis(name="kind", size=3, recodes={"first": (0, -1, -1), "others": (-1, 0, 0)})
    >>> h = Histogram(axes=(kind, HistogramAxis(name="sex", size=2)))
    >>> total, first, others = (h.query("", parts) for parts in [(), ("first",), ("others",)])
    >>> is_determined(total, [first]), is_determined(total, [first, others]), is_determined(first, [total])
    (False, True, False)
    """
    if any(_is_sum(query, one) for one in given):
        return True
    return len(given) > 1 and _is_spanned(query, given)


def _is_sum(query: Query, whole: Query) -> bool:
    """Return whether every answer is a sum of answers of one other query, factor by factor."""
    for wanted, factor in zip(query.factors, whole.factors, strict=True):
        span = Span()
        for key, row in _rows(factor).items():
            span.add(key, row)
        if any(span.find_combination(row) is None for row in _rows(wanted).values()):
            return False
    return True


def _rows(factor: Sequence[int]) -> dict[tuple[str, ...], Row]:
    return build_rows([None if group < 0 else (str(group),) for group in factor])


def _is_spanned(query: Query, given: Sequence[Query]) -> bool:
    """Return whether the rows of all given queries together span those of the query."""
    every = (query, *given)
    classes = [
        sorted(
            {tuple(one.factors[axis][level] for one in every) for level in range(len(query.factors[axis]))}
        )
        for axis in range(len(query.factors))
    ]
    if prod(map(len, classes)) > MAX_ATOMS:
        return False
    atoms: list[tuple[tuple[int, ...], ...]] = [()]
    for axis in classes:
        atoms = [(*atom, one) for atom in atoms for one in axis]
    span = Span()
    for place in range(1, len(every)):
        for key, row in build_rows([_find_answer(atom, place) for atom in atoms]).items():
            span.add((place, key), row)
    return all(
        span.find_combination(row) is not None
        for row in build_rows([_find_answer(atom, 0) for atom in atoms]).values()
    )


def _find_answer(atom: tuple[tuple[int, ...], ...], place: int) -> tuple[str, ...] | None:
    """Return the answer that an atom is counted in, or None where one of its levels is dropped."""
    groups = [axis[place] for axis in atom]
    return None if min(groups, default=0) < 0 else tuple(map(str, groups))
