"""State the promise of a TopDown run and its exact cost, by level, query, attribute and geography."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa

from stirred.errors import PrivacyError
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing, Series, round_digits
from stirred.mechanisms.release import Check
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.rules import Record, declare_multiverse, source_columns
from stirred.mechanisms.topdown.tree import ALIASES, require_order
from stirred.mechanisms.topdown.workload import (
    OPTIMIZED_SUFFIX,
    PART_SUFFIX,
    SpineOptions,
    Workload,
    describe_axis,
    describe_query,
)
from stirred.spec import (
    Budget,
    Evidence,
    Hamming,
    Ledger,
    NormalizedRenyi,
    Specification,
    rho_squared_to_epsilon,
)
from stirred.spec.finite_model import Row, Span, build_rows
from stirred.spec.invariants import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# What a workload costs inside the multiverse: a measured query that the invariants determine costs nothing there.
#
# Two data sets of one universe have the same answers to such a query, in every geounit, so its noisy answers have the same
# law for both. What is left of the path's $\rho^2$ is what a change of one person can move (Lemma 6 of ``proof.md``).

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

    >>> from stirred.mechanisms.topdown.histogram import Histogram, HistogramAxis
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


# The exact cost of a workload by level, query, attribute and geography, and what a report shows of it.

CERTIFICATE_DELTA = Fraction(1, 10**10)  # of the Bureau's certificates


def cost_by_level(workload: Workload) -> dict[str, Fraction]:
    """Return ρ² by level; the parts add up to the total.

    >>> cost_by_level(Workload.preset("small"))["state"] / Workload.preset("small").rho_squared
    Fraction(288, 799)
    """
    return {
        level: workload.rho_squared * workload.level_shares.get(level, Fraction(0))
        for level in workload.levels
    }


def cost_of_attribute(workload: Workload, axis: str) -> Fraction:
    """Return the ρ² of changing one attribute of one person: the queries that distinguish its levels."""
    number = workload.histogram.axes.index(workload.histogram.axis(axis))
    return _sum_cost(workload, lambda name, _: workload.query(name).counts_for(number))


def cost_within(workload: Workload, level: str) -> Fraction:
    """Return the ρ² of moving one person inside an area of ``level``: the levels strictly below it."""
    below = workload.levels[workload.levels.index(level) + 1 :]
    return _sum_cost(workload, lambda _, own: own in below)


def list_semantics(
    workload: Workload, delta: Fraction = CERTIFICATE_DELTA
) -> dict[str, tuple[Fraction, Decimal]]:
    """Return ρ² and its ε at δ (tight conversion) for each attribute and each geography."""
    lines: dict[str, Fraction] = {Phrase("topdown.exhibit.all"): workload.rho_squared}
    lines |= {axis.name: cost_of_attribute(workload, axis.name) for axis in workload.histogram.axes}
    lines |= {_describe_area(workload, level): cost_within(workload, level) for level in workload.levels[:-1]}
    return {name: (rho_squared, epsilon(rho_squared, delta)) for name, rho_squared in lines.items()}


def epsilon(rho_squared: Fraction, delta: Fraction = CERTIFICATE_DELTA) -> Decimal:
    """Return ε at δ by the tight conversion, rounded up."""
    return rho_squared_to_epsilon(rho_squared, delta, tight=True) if rho_squared else Decimal(0)


def _describe_area(workload: Workload, level: str) -> Phrase:
    return Phrase("topdown.exhibit.within", leaf=workload.levels[-1], level=level)


def standard_deviations(workload: Workload) -> dict[tuple[str, str], float]:
    """Return the standard deviation σ of the noise by level and query."""
    result = {}
    for level in workload.levels:
        for query in workload.queries:
            rho = workload.rho(level, query.name)
            if rho:
                result[level, query.name] = float(1 / rho) ** 0.5
    return result


def _sum_cost(workload: Workload, counts: Callable[[str, str], bool]) -> Fraction:
    return sum(
        (
            workload.rho(level, query.name)
            for level in workload.levels
            for query in workload.queries
            if counts(query.name, level)
        ),
        Fraction(0),
    )


def show_noise(
    workload: Workload,
    measured: pa.Table | None = None,
    proved: MultiverseCost | None = None,
    options: SpineOptions | None = None,
) -> Exhibit:
    """Build the exhibit of noise by level and query, with the cost of each attribute and area.

    ``measured`` is the table of the run (``…-noise``): its levels are those of the census, and each level and query has the
    standard deviation that most of its geounits were measured with. Before a run it is what the workload asks for.
    """
    rows = [
        row | {"query": describe_query(workload, str(row["query"]))}
        for row in (_list_asked_noise(workload) if measured is None else _list_usual_noise(measured))
    ]
    least = min(rows, key=lambda row: float(str(row["standard deviation"])))
    most = max(rows, key=lambda row: float(str(row["standard deviation"])))
    finding = Phrase(
        "topdown.exhibit.finding",
        least=_figure(least),
        least_at=_describe_row(least),
        most=_figure(most),
        most_at=_describe_row(most),
    )
    several = measured is not None and measured.num_rows > len(rows)
    series = Series(
        name=f"noise-{workload.name}",
        kind="dots",
        title=Phrase("topdown.exhibit.chart"),
        sentence=Phrase("topdown.exhibit.rows_and_less" if several else "topdown.exhibit.rows"),
        rows=rows,
        x=Phrase("topdown.exhibit.query"),
        y=Phrase("topdown.exhibit.deviation"),
        group=Phrase("topdown.exhibit.level"),
    )
    levels = None if measured is None else {str(row["level"]) for row in rows}
    return Exhibit(
        title=Phrase("topdown.exhibit.title", name=workload.name),
        finding=finding,
        parts=(series, list_costs(workload, levels, proved, options)),
    )


def _describe_row(row: Mapping[str, object]) -> Phrase:
    """Return the query and the level of a row in words."""
    words = row["query"]
    return Phrase(
        "topdown.exhibit.at",
        query=words if isinstance(words, Phrase) else str(words),
        level=str(row["level"]),
    )


def _figure(row: Mapping[str, object]) -> Decimal:
    """Return the standard deviation of a row with the digits that the report shows."""
    return round_digits(float(str(row["standard deviation"])))


def _list_asked_noise(workload: Workload) -> list[dict[str, object]]:
    """Return the noise by level and query of a census that has every level of the workload."""
    return [
        {"level": level, "query": query, "standard deviation": sigma}
        for (level, query), sigma in standard_deviations(workload).items()
    ]


def _list_usual_noise(measured: pa.Table) -> list[dict[str, object]]:
    """Return the noise that most geounits of each level were measured with."""
    usual: dict[tuple[str, str], tuple[int, float]] = {}
    for row in measured.to_pylist():
        here = (int(row["geounits"]), float(row["standard_deviation"]))
        place = (str(row["level"]), str(row["query"]))
        usual[place] = max(usual.get(place, here), here)
    return [
        {"level": level, "query": query, "standard deviation": sigma}
        for (level, query), (_, sigma) in usual.items()
    ]


def list_costs(
    workload: Workload,
    levels: set[str] | None = None,
    proved: MultiverseCost | None = None,
    options: SpineOptions | None = None,
) -> Listing:
    """List what one person's record may change, each with the part of ρ² that depends on it.

    Moves inside areas are listed for ``levels`` alone.

    ``proved`` adds the line of the smaller figure that holds inside the multiverse. In a tree of ``options`` that cuts areas
    the lines are about moves that stay in one part: a move across the border is seen from the level of the parts down.
    """
    columns = [Phrase("topdown.exhibit.change"), "ρ²", Phrase("topdown.exhibit.epsilon", delta="10⁻¹⁰")]
    named: dict[str, str] = {axis.name: describe_axis(axis.name) for axis in workload.histogram.axes}
    rows = [
        (named.get(name, name), str(Budget.of(rho)), str(at_delta))
        for name, (rho, at_delta) in _name_in_tree(workload, levels, options).items()
    ]
    if proved is not None:
        shown = str(Budget.of(proved.rho_squared)), str(epsilon(proved.rho_squared))
        rows.insert(1, (Phrase("topdown.inside.row"), *shown))
    return Listing(
        caption=Phrase("topdown.exhibit.meaning"),
        columns=columns,
        rows=rows,
        numeric=columns[1:],
    )


def _name_in_tree(
    workload: Workload, levels: set[str] | None, options: SpineOptions | None
) -> dict[str, tuple[Fraction, Decimal]]:
    """Return the lines of :func:`semantics` that hold in the measured tree, under their names there."""
    if levels is not None:
        shown = {name.removesuffix(PART_SUFFIX).removesuffix(OPTIMIZED_SUFFIX) for name in levels}
    else:  # of a split tree only those of parts: whether the census has a level above them is not known
        shown = {level for level in workload.levels if not _is_above_parts(workload, level, options)}
    absent = {_describe_area(workload, level) for level in workload.levels if level not in shown}
    moves: dict[str, str] = {
        _describe_area(workload, level): _describe_move(workload, level, options) for level in workload.levels
    }
    return {
        moves.get(name, name): line for name, line in list_semantics(workload).items() if name not in absent
    }


def _describe_move(workload: Workload, level: str, options: SpineOptions | None) -> Phrase:
    """Describe a move inside an area of a level as the measured tree sees it: in a part, or in a new area."""
    leaf = workload.levels[-1]
    if options and level in options.extra_levels:
        return Phrase("topdown.exhibit.within_new", leaf=leaf, level=level)
    if options and options.aian is not None and not _is_above_parts(workload, level, options):
        return Phrase("topdown.exhibit.within_part", leaf=leaf, level=level, areas=options.aian)
    return _describe_area(workload, level)


def _is_above_parts(workload: Workload, level: str, options: SpineOptions | None) -> bool:
    """Return whether a level lies above the one whose areas are cut into parts."""
    levels = workload.levels
    if options is None or options.aian is None or options.split_at not in levels:
        return False
    return levels.index(level) < levels.index(options.split_at)


def build_document(
    workload: Workload, found: MultiverseCost, options: SpineOptions | None, *, noiseless: bool
) -> dict[str, object]:
    """Return the same costs for programs, as plain data.

    A census with AIAN areas may be measured in parts, and nothing is free there.
    """
    lines = {} if noiseless else _name_in_tree(workload, None, options)
    inner: dict[str, object] = {}
    if found.saving and not noiseless:
        inner["inside_the_multiverse"] = {
            "rho_squared": str(found.rho_squared),
            "epsilon": str(epsilon(found.rho_squared)),
            "free": {f"{level}: {query}": str(part) for (level, query), part in found.free.items()},
            "holds": "where states are measured whole",
        }
    return inner | {
        "rho_squared": str(workload.rho_squared),
        "levels": {level: str(part) for level, part in cost_by_level(workload).items()},
        "semantics": {name: {"rho_squared": str(r), "epsilon": str(e)} for name, (r, e) in lines.items()},
    }


# State the promise of a TopDown run: its specification, ledger and notes, from the workload and the rules alone.


def build_budget(rho_squared: Fraction | None) -> Budget:
    """Return ρ, the square root of the usual zCDP parameter; None means no noise."""
    return Budget.infinite() if rho_squared is None else Budget.sqrt(rho_squared)


def build_specification(
    census: "Census",
    workload: Workload,
    rho_squared: Fraction | None,
    notes: tuple[str, ...],
    *,
    options: SpineOptions | None = None,
) -> Specification:
    """Return ρ-DP(X, D_c, d_Ham(person), D_nor) of one workload; ``options`` is the measured tree."""
    require_order(workload.levels, census.schema.spine)
    unit = find_unit(workload, census.schema)
    if unit == workload.record:
        evidence = Evidence(status="proved", source=Phrase("topdown.source.proved"))
    else:
        evidence = Evidence(status="published", source=Phrase("topdown.source.published"))
    return Specification(
        domain=census.domain,
        multiverse=declare_multiverse(census, workload, options),
        input_premetric=Hamming(unit),
        output_premetric=NormalizedRenyi(),
        budget=build_budget(rho_squared),
        evidence=evidence,
        notes=(*notes, *note_moved_shares(census, workload, options), *census.notes),
        released=list_views(census, workload, options),
    )


def list_views(census: "Census", workload: Workload, options: SpineOptions | None = None) -> Views:
    """Return the measured queries as tables of the census's areas and columns; records follow from them.

    Of areas that the census does not have (parts of areas, and areas made for the tree) only the sum is taken.
    """
    domain, spine = census.domain, census.schema.spine
    here = {level: _find_level(level, spine) for level in workload.levels}
    where = {name: tuple(str(v) for v in values) for name, values in workload.where}
    found = []
    for place, level in enumerate(workload.levels):
        # the share of a level that the census lacks is spent below it, else above
        near = [*workload.levels[place:], *reversed(workload.levels[:place])]
        areas = [here[name] for name in near if here[name]][:1]
        if is_in_parts(workload, level, options, spine):
            areas = []
        found += [
            make_view(domain, workload.record, (*areas, *source_columns(workload, query.name)), where)
            for query in workload.queries
            if workload.rho(level, query.name)
        ]
    return largest_views(domain, found)


def _find_level(level: str, spine: Sequence[str]) -> str:
    """Return the census's own name of a level, or nothing."""
    return next((name for name in (level, *ALIASES.get(level, ())) if name in spine), "")


def find_unit(workload: Workload, schema: "Schema") -> str:
    """Return the unit of the promise: a person, where the census has persons."""
    return "person" if "person" in schema.record_types else workload.record


def find_proved_cost(
    workload: Workload, options: SpineOptions | None, schema: "Schema"
) -> MultiverseCost | None:
    """Return the cost inside the multiverse where it is proved and smaller than the total, else None."""
    found = cost_in_multiverse(workload, options, schema.spine)
    return found if found.saving and find_unit(workload, schema) == workload.record else None


def note_determined(workload: Workload, found: MultiverseCost, schema: "Schema") -> tuple[str, ...]:
    """Return notes on measured queries that the invariants determine, with the proved smaller figure."""
    if not found.saving or find_unit(workload, schema) != workload.record:
        return ()
    queries = ", ".join(f"{query} ({level})" for level, query in found.free)
    words = Phrase(
        "topdown.inside.note",
        name=workload.name,
        queries=queries,
        rho_squared=Decimal(str(Budget.of(found.rho_squared))),
        exact=str(found.rho_squared),
        epsilon=Decimal(format_epsilon(epsilon(found.rho_squared))),
        stated=Decimal(str(Budget.of(workload.rho_squared))),
    )
    return (words,)


def format_epsilon(number: Decimal) -> str:
    """Return an ε with two digits, rounded up."""
    return str(number.quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def note_moved_shares(
    census: "Census", workload: Workload, options: SpineOptions | None = None
) -> tuple[str, ...]:
    """Return notes on where the ρ² of missing levels is spent; a split area is measured in parts."""
    added = options.extra_levels if options else ()
    split = options.split_at if options and options.aian else None
    present = [
        any(n in (*census.schema.spine, *added) for n in (level, *ALIASES.get(level, ())))
        for level in workload.levels
    ]
    notes = []
    for i, level in enumerate(workload.levels):
        if not present[i] and cost_by_level(workload)[level]:
            lower = [
                name for name, here in zip(workload.levels[i + 1 :], present[i + 1 :], strict=True) if here
            ]
            upper = [name for name, here in zip(workload.levels[:i], present[:i], strict=True) if here]
            if lower or upper:
                target = lower[0] if lower else upper[-1]
                key = "topdown.note.missing_above_parts" if target == split else "topdown.note.missing_level"
                words = Phrase(key, name=workload.name, level=level, target=target)
                notes.append(words)
    return tuple(notes)


def build_ledger(workloads: list[tuple[Workload, MultiverseCost | None]], limit: Budget) -> Ledger:
    """Return the account of a run: a line per level of each workload, and one for what invariants determine.

    The lines add up to the stated total; without the lines of determined queries they add up to the cost inside the
    multiverse. None means no noise.
    """
    account = Ledger(limit=limit, output_premetric=NormalizedRenyi())
    for workload, found in workloads:
        if found is None:
            account = account.spend("topdown", f"{workload.name}: exact answers", Budget.infinite())
            continue
        for level, part in cost_by_level(workload).items():
            free = {query: share for (own, query), share in found.free.items() if own == level}
            charged = part - sum(free.values(), Fraction(0))
            if charged:
                account = account.spend("topdown", f"{workload.name}: {level}", Budget.sqrt(charged))
            for query, share in free.items():
                on = f"{workload.name}: {level}, {query} (determined by the invariants: free inside the multiverse)"
                account = account.spend("topdown", on, Budget.sqrt(share))
    return account


def approve(stated: Specification, checks: tuple[Check, ...], record: Record) -> None:
    """Refuse a run that used more invariants than it states, or that did not keep one."""
    more = set(record.multiverse) - set(stated.multiverse)
    if more:
        raise PrivacyError(
            "the run used an invariant that its specification does not list",
            why="; ".join(sorted(i.words() for i in more)),
            fix="report this; nothing was released",
        )
    broken = [check.invariant for check in checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="report this; nothing was released"
        )
