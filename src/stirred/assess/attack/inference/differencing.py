r"""Differencing: numbers of small areas that follow by subtraction, between overlapping areas and between releases.

Two published partitions of a region cut it into pieces. A piece is an edge between the two areas it lies in. The totals of
the areas determine a piece exactly if its edge is a bridge of this graph: without it the areas fall apart into two groups,
and the piece is the difference between the totals of one group's areas of either kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from stirred.assess.attack.result import AttackResult
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.errors import InputError
from stirred.frames import frame_of

COUNT, ERROR = "count", "standard_error"
SMALL_RECORDS = 10  # a piece with fewer records is small


@dataclass(frozen=True, slots=True)
class Graph:
    """The areas of two partitions as nodes, the pieces as edges, and for each bridge the areas on one side of it."""

    edges: tuple[tuple[int, int], ...]
    nodes: int

    def find_bridges(self) -> dict[int, list[int]]:
        """Return the bridges by the number of their edge, each with the nodes below it in a depth-first tree."""
        near: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for number, (a, b) in enumerate(self.edges):
            near[a].append((b, number))
            near[b].append((a, number))
        order, low, entered = [-1] * self.nodes, [0] * self.nodes, list[int]()
        ends, found = [0] * self.nodes, dict[int, list[int]]()
        for start in range(self.nodes):
            if order[start] >= 0:
                continue
            stack = [(start, -1, iter(near[start]))]
            order[start] = low[start] = len(entered)
            entered.append(start)
            while stack:
                node, above, rest = stack[-1]
                step = next(rest, None)
                if step is None:
                    stack.pop()
                    ends[node] = len(entered)
                    if stack:
                        parent = stack[-1][0]
                        low[parent] = min(low[parent], low[node])
                        if low[node] > order[parent]:
                            found[above] = entered[order[node] : ends[node]]
                    continue
                other, number = step
                if number == above:
                    continue
                if order[other] >= 0:
                    low[node] = min(low[node], order[other])
                    continue
                order[other] = low[other] = len(entered)
                entered.append(other)
                stack.append((other, number, iter(near[other])))
        return found


def difference_areas(
    pieces: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    *,
    areas: Sequence[str],
    small: int = SMALL_RECORDS,
) -> AttackResult:
    """Find the pieces of two overlapping geographies that follow from their published totals, with errors.

    ``pieces`` lists which two areas overlap (two columns, named in ``areas``), with ``count`` where the truth is known;
    ``first`` and ``second`` are the published totals, with ``standard_error`` where they are noisy.

    >>> pieces = pl.DataFrame({"tract": ["1", "1", "2"], "place": ["x", "y", "y"]})
    >>> tracts = pl.DataFrame({"tract": ["1", "2"], "count": [12, 30]})
    >>> places = pl.DataFrame({"place": ["x", "y"], "count": [9, 33]})
    >>> difference_areas(pieces, tracts, places, areas=["tract", "place"]).tables["pieces"]["difference"].to_list()
    [9.0, 3.0, 30.0]
    """
    one, two = areas
    for frame, needed in ((pieces, {one, two}), (first, {one, COUNT}), (second, {two, COUNT})):
        if not needed <= {*frame.columns}:
            raise InputError(
                f"a table lacks {sorted(needed - {*frame.columns})[0]}",
                why="pieces name both areas, and totals their area and a count",
                fix=f"give columns {', '.join(sorted(needed))}",
            )
    given = pieces.with_columns(pl.col(one, two).cast(pl.String))
    totals, errors, place = dict[int, float](), dict[int, float](), dict[tuple[str, str], int]()
    for side, frame in ((one, first), (two, second)):
        for row in frame.with_columns(pl.col(side).cast(pl.String)).iter_rows(named=True):
            number = place.setdefault((side, row[side]), len(place))
            totals[number], errors[number] = float(row[COUNT]), float(row.get(ERROR) or 0.0)
    edges = tuple(
        (place[one, a], place[two, b])
        for a, b in given.select(one, two).iter_rows()
        if (one, a) in place and (two, b) in place
    )
    kept = given.filter(
        pl.col(one).is_in([a for s, a in place if s == one])
        & pl.col(two).is_in([b for s, b in place if s == two])
    )
    sides = Graph(edges, len(place)).find_bridges()
    kind = {number: side for (side, _), number in place.items()}
    differences: list[float | None] = [None] * len(edges)
    spreads: list[float | None] = [None] * len(edges)
    numbers: list[int | None] = [None] * len(edges)
    for edge, nodes in sides.items():
        gap = sum(totals[node] if kind[node] == one else -totals[node] for node in nodes)
        # the side that holds the piece's own first area counts it with a plus
        differences[edge] = gap if edges[edge][0] in nodes else -gap
        spreads[edge] = sum(errors[node] ** 2 for node in nodes) ** 0.5
        numbers[edge] = len(nodes)
    found = kept.with_columns(
        pl.Series("difference", differences, pl.Float64),
        pl.Series("spread", spreads, pl.Float64),
        pl.Series("totals_used", numbers, pl.Int64),
    )
    return AttackResult(measures=_piece_measures(found, areas, small), tables={"pieces": found})


def _piece_measures(found: pl.DataFrame, areas: Sequence[str], small: int) -> tuple[RiskMeasure, ...]:
    many = max(found.height, 1)
    known = found.filter(pl.col("difference").is_not_null())
    # one total that is itself the piece was published anyway
    new = known.filter(pl.col("totals_used") > 1)
    tiny = new.filter(pl.col("difference").round() < small)
    about = f"pieces where {areas[0]} and {areas[1]} overlap"
    exact = all((known["spread"] == 0).to_list())
    note = "" if exact else "the totals are noisy: a difference has the noise of all totals that it uses"
    measures = [
        _piece_measure("pieces that follow by subtraction", about, new.height / many, note),
        _piece_measure(
            f"pieces that follow by subtraction and count fewer than {small} records",
            about,
            tiny.height / many,
            note,
        ),
    ]
    if COUNT in found.columns and new.height:
        right = new.filter(pl.col("difference").round() == pl.col(COUNT)).height / new.height
        measures.append(
            RiskMeasure(
                name=name_measure("differences"),
                about=f"{about} and that follow",
                kind="absolute",
                value=right,
                unit="share",
                baselines=(Baseline(name="if the totals were exact", value=1.0),),
            )
        )
    return tuple(measures)


def _piece_measure(name: str, about: str, value: float, reason: str) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, unit="share", public=True, reason=reason
    )


def compare_releases(
    first: pl.DataFrame, second: pl.DataFrame, *, by: Sequence[str], small: int = SMALL_RECORDS
) -> AttackResult:
    """Compare two publications of one table: records that came or left, or noise that averages out.

    Cells that both publish exactly differ by the records that changed; of two noisy numbers the better mean is known.

    >>> old, new = (pl.DataFrame({"block": ["a", "b"], "count": c}) for c in ([3, 7], [4, 7]))
    >>> compare_releases(old, new, by=["block"]).tables["changes"]["difference"].to_list()
    [1.0]
    """
    one, two = (_plain_counts(frame, by) for frame in (first, second))
    both = one.join(two, on=list(by), how="full", coalesce=True, nulls_equal=True, suffix="_second")
    both = both.with_columns(pl.selectors.numeric().fill_null(0.0))
    variance = pl.col("variance") + pl.col("variance_second")
    both = both.with_columns(
        (pl.col(f"{COUNT}_second") - pl.col(COUNT)).alias("difference"), variance.sqrt().alias("spread")
    )
    exact = both.filter(pl.col("spread") == 0)
    changed = exact.filter(pl.col("difference") != 0)
    telling = changed.filter(pl.col("difference").abs() < small)
    noisy = both.filter((pl.col("variance") > 0) & (pl.col("variance_second") > 0))
    weight = pl.col("variance_second") / variance
    mean = weight * pl.col(COUNT) + (1 - weight) * pl.col(f"{COUNT}_second")
    better = (pl.col("variance") * pl.col("variance_second") / variance).sqrt()
    averaged = noisy.select(*by, mean.alias("mean"), better.alias("spread"))
    about = f"cells by {', '.join(by)} that two releases publish"
    many = max(both.height, 1)
    measures = [
        _piece_measure("cells whose exact change is shown", about, changed.height / many, ""),
        _piece_measure(f"cells that changed by fewer than {small} records", about, telling.height / many, ""),
    ]
    if noisy.height:
        ratio = float((averaged["spread"] / noisy["variance"].sqrt()).to_numpy().mean())
        measures.append(
            RiskMeasure(
                name=name_measure("averaged"),
                about=about,
                kind="relative",
                value=ratio,
                unit="share",
                public=True,
                baselines=(Baseline(name="of the first release alone", value=1.0),),
                reason="both budgets are spent: the composition of the two releases bounds it",
            )
        )
    return AttackResult(measures=tuple(measures), tables={"changes": changed, "averaged": averaged})


def _plain_counts(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    error = pl.col(ERROR).fill_null(0.0).cast(pl.Float64) ** 2 if ERROR in frame.columns else pl.lit(0.0)
    value = "estimate" if "estimate" in frame.columns else COUNT
    return frame.select(
        *(pl.col(name).cast(pl.String) for name in by),
        pl.col(value).cast(pl.Float64).alias(COUNT),
        error.alias("variance"),
    )


def make_pieces(counts: pl.DataFrame | pa.Table, areas: Sequence[str]) -> pl.DataFrame:
    """Return the pieces of a table of counts by two areas, for ``difference_areas``."""
    frame = counts if isinstance(counts, pl.DataFrame) else frame_of(counts)
    return frame.group_by(list(areas)).agg(pl.col(COUNT).sum()).sort(list(areas))
