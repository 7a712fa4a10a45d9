"""The exact cost of a workload by level, query, attribute and geography, and what a report shows of it."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing, Series, round_digits
from stirred.mechanisms.topdown.inside import MultiverseCost
from stirred.mechanisms.topdown.workload.options import OPTIMIZED_SUFFIX, PART_SUFFIX, SpineOptions
from stirred.mechanisms.topdown.workload.words import describe_axis, describe_query
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec import Budget, rho_squared_to_epsilon

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


def cost_by_query(workload: Workload) -> dict[str, Fraction]:
    """Return ρ² by query, summed over all levels of a path."""
    return {
        query.name: sum((workload.rho(level, query.name) for level in workload.levels), Fraction(0))
        for query in workload.queries
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
