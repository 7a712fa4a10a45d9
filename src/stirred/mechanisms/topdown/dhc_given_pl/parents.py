"""Make a product agree with an earlier one: its microdata as exact sums, which every parent's children then keep."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InfeasibleError, InputError, did_you_mean
from stirred.kernels import compile_kernel
from stirred.mechanisms.release import count_cells
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.dhc_given_pl import dual
from stirred.mechanisms.topdown.dhc_given_pl.dual import PricedRows, estimate_linearly, solve_dual
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityQuery, build_given_query
from stirred.mechanisms.topdown.histogram import Query, name_column
from stirred.mechanisms.topdown.measure import ClassicTargets, Targets
from stirred.mechanisms.topdown.rules import Constraints, HeldQuery, sum_bounds
from stirred.mechanisms.topdown.solve.batch import Family, LevelArrays
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.parent import Certificate, Solution
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Workload
from stirred.spec import Specification
from stirred.spec.files import load

if TYPE_CHECKING:
    from stirred.census import Census


Ints = NDArray[np.int64]


def find_public_folder(packet: Path) -> Path:
    """Return the public part of a packet."""
    folder = packet / "public" if (packet / "public").is_dir() else packet
    if not (folder / "data").is_dir():
        raise InputError(
            "the given packet holds no microdata",
            why="the earlier counts are taken from its microdata",
            fix="--given a packet that stirred topdown --workload pl94 wrote",
        )
    return folder


def load_promise(packet: Path) -> Specification:
    """Return the promise of the given packet; its budget composes with that of the new product."""
    return load(find_public_folder(packet) / "spec.json")


@dataclass(frozen=True, slots=True)
class EarlierProduct:
    """The files of the earlier product, and the cell of the new histogram's query for each of its records."""

    path: Path
    query: Query
    columns: tuple[tuple[str, int, int], ...]  # name, what is subtracted, how many levels

    @staticmethod
    def of(workload: Workload, packet: Path) -> "EarlierProduct":
        """Open the microdata of a packet; only its columns are read here."""
        earlier = Workload.preset(workload.given)
        path = find_public_folder(packet) / "data" / f"{earlier.record}.parquet"
        if not path.exists():
            raise InputError(
                f"the given packet has no {earlier.record} records",
                why="the workload builds on these records",
                fix=f"--given a packet of workload {workload.given}",
            )
        query = build_given_query(workload)
        names = {axis: name_column(earlier.histogram.axis(axis), {}) for axis, _ in workload.given_map}
        there = pl.scan_parquet(path).collect_schema().names()
        for name, _ in names.values():
            if name not in there:
                raise InputError(
                    f"the given microdata have no column {name}",
                    why="an axis of the earlier workload needs it",
                    fix=did_you_mean(name, there),
                )
        shape = [size for size, kept in zip(query.shape, query.kept, strict=True) if kept]
        order = sorted(workload.given_map, key=lambda pair: _place(workload, pair[1]))
        columns = [(*names[axis], size) for (axis, _), size in zip(order, shape, strict=True)]
        return EarlierProduct(path, query, tuple(columns))

    @property
    def cell(self) -> pl.Expr:
        """Return the answer of the query that each record is counted in."""
        cell = pl.lit(0, dtype=pl.Int64)
        for name, offset, size in self.columns:
            cell = cell * size + (pl.col(name).cast(pl.Int64) - offset)
        return cell


def build_agreement(census: "Census", workload: Workload, spine: Tree, packet: Path) -> HeldQuery:
    """Return the sums that the new histogram must have in every leaf: the published earlier histogram.

    Nothing confidential is read: the right-hand sides come from the packet.
    """
    earlier = EarlierProduct.of(workload, packet)
    depth = len(spine.levels) - 1
    leaf, number, count = count_earlier_records(census, earlier, spine)
    exact = np.zeros((spine.size(depth), earlier.query.size), np.int64)
    exact[leaf, number] = count
    return sum_bounds(name_agreement(workload), earlier.query, exact, exact, spine, depth)


def count_earlier_records(census: "Census", earlier: EarlierProduct, spine: Tree) -> tuple[Ints, Ints, Ints]:
    """Count the earlier product's records by leaf and answer: numbers of both, and counts."""
    leaf = census.schema.spine[-1]
    published = pl.scan_parquet(earlier.path).select(pl.col(leaf).cast(pl.String), earlier.cell.alias("cell"))
    counts = count_cells(published, [leaf, "cell"]).collect()
    depth = len(spine.levels) - 1
    number = pl.DataFrame({leaf: [str(code) for code in spine.codes[depth]]}).with_row_index("number")
    joined = counts.join(number, on=leaf, how="inner")
    places, cell, count = (joined[name].cast(pl.Int64).to_numpy() for name in ("number", "cell", "count"))
    return places, cell, count


def name_agreement(workload: Workload) -> str:
    """Return the name of the agreement."""
    return f"the published {workload.given}"


def _place(workload: Workload, target: str) -> int:
    for i, axis in enumerate(workload.histogram.axes):
        if target == axis.name or target in axis.recodes:
            return i
    raise InputError(
        f"the workload has no axis or recode {target}",
        why="a line of given_map names it",
        fix="name an axis or a recode of the workload in given_map",
    )


# Collect the rows of a parent's queries: which cells count in them, their weighted sums, their weights.

Floats = NDArray[np.float64]


class QueryRows:
    """Rows of some queries while they are collected: their cells, weighted sums and weights."""

    def __init__(self, cells: int) -> None:
        self.number = 0
        self.cells = cells
        self.index: list[NDArray[np.int32]] = []
        self.linear: list[Floats] = []
        self.weight: list[Floats] = []
        self.times: list[Floats] = []

    def add(
        self, place: Ints, first: Ints, count: Ints, taken: NDArray[np.bool_], linear: Floats, weight: Floats,
        times: float = 1.0,
    ) -> None:  # fmt: skip
        """Add the taken groups of one query as new rows, or to rows of the same cells, ``times`` as heavy."""
        for older, sums, heavy, most in zip(self.index, self.linear, self.weight, self.times, strict=True):
            begin = int(older.max(initial=-1)) + 1 - len(sums)
            same = older[first] - begin
            size = np.bincount(older[older >= 0] - begin, minlength=len(sums))
            # A row of a finer query with as many cells, the first of them included, has the same cells if it lies inside.
            inside = np.ones(len(first), bool)
            inside[place[older - begin != same[place]]] = False
            equal = taken & inside & (same >= 0)
            equal[equal] = size[same[equal]] == count[equal]
            sums[same[equal]] += linear[equal]
            heavy[same[equal]] += weight
            most[same[equal]] = np.maximum(most[same[equal]], times)
            taken = taken & ~equal
        if not taken.any():
            return
        row = np.where(taken, self.number + np.cumsum(taken) - 1, -1)
        self.index.append(row[place].astype(np.int32))
        self.linear.append(linear[taken])
        self.weight.append(np.repeat(weight[None], int(taken.sum()), axis=0))
        self.times.append(np.full(int(taken.sum()), times))
        self.number += int(taken.sum())

    def sums(self, children: int) -> tuple[Floats, Floats]:
        """Return the targets of all rows, and 1 / weight."""
        none = np.zeros((0, children))
        weight = np.maximum(np.concatenate([none, *self.weight]), 1e-9)
        return np.concatenate([none, *self.linear]) / weight, 1.0 / weight

    def weigh_rows(self) -> Floats:
        """Return the weight factor of each row: that of its query with the fewest answers."""
        return np.concatenate([np.zeros(0), *self.times])

    def list_rows_of_cells(self, begin: int) -> list[NDArray[np.int32]]:
        """Return the rows of each cell, one array for each query, counted from ``begin``."""
        return [np.where(own >= 0, own + begin, -1).astype(np.int32) for own in self.index]

    def kinds(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return rows by kind of cell, and the kind of every cell: cells of one kind share their rows."""
        label = np.zeros(self.cells, np.int64)
        for own in self.index:
            label = np.unique(label * (self.number + 1) + own + 1, return_inverse=True)[1].ravel()
        _, first, kind = np.unique(label, return_index=True, return_inverse=True)
        members = (
            np.stack([own[first] for own in self.index], axis=1) if self.index else np.zeros((1, 0), np.int32)
        )
        return np.ascontiguousarray(members.astype(np.int32)), kind.ravel().astype(np.int32)


# Integers near fractional histograms: every exact sum and every parent's count kept, the measured sums as near as can be.
#
# A first rounding gives each cell's persons, one by one, to the child that is furthest behind its fractional sums so far.
# Then persons of two cells of one exact group are exchanged between two children (at the root: moved between two cells)
# as long as that brings the sums nearer, in the same weights as the fractional fit: no exchange changes an exact sum.

Index = NDArray[np.int32]


@compile_kernel
def round_in_turn(
    F: Floats, order: Ints, parent: Ints, begin: Ints, exact: Ints, allowed: NDArray[np.bool_], X: Ints
) -> bool:
    """Give each cell's persons to the child furthest behind, then correct every exact group."""
    C = F.shape[0]
    behind = np.zeros(C)
    given = np.zeros(C, np.int64)
    fine = True
    for g in range(len(begin) - 1):
        behind[:] = 0.0
        given[:] = 0
        for k in range(begin[g], begin[g + 1]):
            j = order[k]
            left = parent[j]
            for c in range(C):
                behind[c] += F[c, j]
                sure = min(max(int(np.floor(F[c, j])) - 1, 0), left)
                X[c, j] = sure
                behind[c] -= sure
                given[c] += sure
                left -= sure
            for _ in range(left):
                best = -1
                for c in range(C):
                    if allowed[c, j] and (best < 0 or behind[c] > behind[best]):
                        best = c
                X[best, j] += 1
                behind[best] -= 1.0
                given[best] += 1
        for c in range(C):
            while given[c] > exact[c, g]:
                moved = False
                for other in range(C):
                    if given[other] >= exact[other, g]:
                        continue
                    for k in range(begin[g], begin[g + 1]):
                        j = order[k]
                        if X[c, j] > 0 and allowed[other, j]:
                            X[c, j] -= 1
                            X[other, j] += 1
                            given[c] -= 1
                            given[other] += 1
                            moved = True
                            break
                    if moved:
                        break
                if not moved:
                    fine = False
                    break
    return fine


@compile_kernel
def round_systematically(F: Floats, order: Ints, begin: Ints, exact: Ints, X: Ints) -> None:
    """Round the root: running sums, group by group, stay within one of their fractional sums."""
    for g in range(len(begin) - 1):
        total, before, last = 0.0, 0, -1
        for k in range(begin[g], begin[g + 1]):
            j = order[k]
            total += F[j]
            now = min(int(np.floor(total + 0.5)), exact[g])
            X[j] = now - before
            before = now
            if F[j] > 0.0 or last < 0:
                last = j
        X[last] += exact[g] - before


@compile_kernel
def measure_errors(X: Ints, F: Floats, rows: Index, off: Floats) -> None:
    """Compute by how much the sums of the integers differ from those of the fractions."""
    off[:] = 0.0
    for c in range(X.shape[0]):
        for q in range(rows.shape[0]):
            for j in range(X.shape[1]):
                if rows[q, j] >= 0:
                    off[c, rows[q, j]] += X[c, j] - F[c, j]


@compile_kernel
def compute_slope(
    c: int, j: int, off: Floats, rows: Index, weight: Floats, stiff: Floats, X: Ints, F: Floats
) -> float:
    """Return half the slope of the distance when cell j of child c grows."""
    s: float = stiff[c, j] * (X[c, j] - F[c, j])
    for q in range(rows.shape[0]):
        r = rows[q, j]
        if r >= 0:
            s += weight[c, r] * off[c, r]
    return s


@compile_kernel
def compute_bend(c: int, i: int, j: int, rows: Index, weight: Floats, stiff: Floats) -> float:
    """Return the curvature of moving one person of child c from cell i to cell j."""
    s: float = stiff[c, i] + stiff[c, j]
    for q in range(rows.shape[0]):
        a, b = rows[q, i], rows[q, j]
        if a != b:
            if a >= 0:
                s += weight[c, a]
            if b >= 0:
                s += weight[c, b]
    return s


@compile_kernel
def move_person(c: int, i: int, j: int, rows: Index, off: Floats, X: Ints) -> None:
    """Move one person of child c from cell i to cell j."""
    X[c, i] -= 1
    X[c, j] += 1
    for q in range(rows.shape[0]):
        if rows[q, i] >= 0:
            off[c, rows[q, i]] -= 1.0
        if rows[q, j] >= 0:
            off[c, rows[q, j]] += 1.0


@compile_kernel
def exchange_persons(
    X: Ints, F: Floats, rows: Index, weight: Floats, stiff: Floats, off: Floats, order: Ints, begin: Ints,
    allowed: NDArray[np.bool_], sweeps: int, most: int,
) -> int:  # fmt: skip
    """Exchange persons in place while it reduces the distance; return the number of exchanges."""
    C = X.shape[0]
    done = 0
    for sweep in range(sweeps):
        before = done
        for g in range(len(begin) - 1):
            for c in range(C):
                other = (c + 1 + sweep % max(C - 1, 1)) % C
                for _ in range(most):
                    take, give, low, high = -1, -1, np.inf, -np.inf
                    for k in range(begin[g], begin[g + 1]):
                        j = order[k]
                        if C == 1:
                            h = compute_slope(c, j, off, rows, weight, stiff, X, F)
                            into, out = True, X[c, j] > 0
                        else:
                            into = X[other, j] > 0 and allowed[c, j]
                            out = X[c, j] > 0 and allowed[other, j]
                            if not (into or out):
                                continue
                            h = compute_slope(c, j, off, rows, weight, stiff, X, F)
                            h -= compute_slope(other, j, off, rows, weight, stiff, X, F)
                        if into and h < low:
                            take, low = j, h
                        if out and h > high:
                            give, high = j, h
                    if take < 0 or give < 0 or take == give:
                        break
                    cost = compute_bend(c, give, take, rows, weight, stiff)
                    if C > 1:
                        cost += compute_bend(other, take, give, rows, weight, stiff)
                    if 2.0 * (high - low) <= cost * (1.0 + 1e-9):
                        break
                    move_person(c, give, take, rows, off, X)
                    if C > 1:
                        move_person(other, take, give, rows, off, X)
                    done += 1
        if done == before and sweep >= C - 2:
            break
    return done


# A parent's children, or the root, of a product that agrees with an earlier one: fit, certificate, integers.
#
# The measured queries with few answers come first, as the production system's outer passes have it: they count
# ``FIRST_WEIGHT_FACTOR`` times as much as measured, so that the many near-empty cells, which non-negativity can only lift,
# do not move them. Below a parent their best linear estimates take the place of their noisy answers, and the fewest answers
# count most. The earlier product's sums are exact. A cell of few persons says next to nothing about its children, so what
# the earlier product says is added to the measurements of cells: the shares of the exact group that the cell belongs to,
# with the variance of a binomial. It is published, so it costs nothing. Noise and budget are what the workload says.

MAX_FIRST_ANSWERS = 1_000  # answers of a query that comes first
FIRST_WEIGHT_FACTOR = 30.0
FIRST_WEIGHT_ANSWERS, FIRST_WEIGHT_POWER = (
    12.0,
    1.5,
)  # below a parent (12 / answers) ** 1.5 times as much, never less
MIN_SURE_DEVIATIONS = 3.0  # where an answer is on average so many standard deviations of its noise
MAX_SWEEPS = 40
MAX_EXCHANGES = 400  # exchanges of one pair of children in one group and sweep
TOLERANCE_PERSONS = 1e-3  # persons


@dataclass(frozen=True, slots=True)
class GivenSumsParent:
    """One parent: its children's nodes, the cells that may be positive, and what is exact in every child."""

    depth: int
    nodes: Ints
    cells: Ints
    counts: Ints  # of the parent; length 0 at the root
    allowed: NDArray[np.bool_]
    held: HeldQuery
    queries: tuple[Query, ...]
    weights: Floats  # children × queries
    above: Floats | None = (
        None  # 1 × queries: the weights of a root that is estimated together with its children
    )

    def rows(self, targets: Targets) -> PricedRows:
        """Collect the rows of all queries; a group of one cell is part of the cell itself."""
        C, n = len(self.nodes), len(self.cells)
        noisy = targets.measurements.key is not None
        # Where the parent is measured and not yet known, its rows and cells are a last column beside the children's.
        weights = self.weights if self.above is None else np.concatenate([self.weights, self.above])
        d, linear = np.zeros((n, len(weights))), np.zeros((n, len(weights)))
        few, many = QueryRows(n), QueryRows(n)
        for number in sorted(range(len(self.queries)), key=lambda number: -self.queries[number].size):
            query, weight = self.queries[number], weights[:, number]
            if not weight.any():
                continue
            numbers, first, place, count = np.unique(
                query.of(self.cells), return_index=True, return_inverse=True, return_counts=True
            )
            real = numbers >= 0
            here = np.zeros((len(numbers), len(weights)))
            here[real] = self._sum_answers(targets, self.cells[first[real]], query)
            ahead, rows = (
                (self._weigh_query(query, weight, noisy=noisy), few)
                if query.size <= MAX_FIRST_ANSWERS
                else (1.0, many)
            )
            alone = real & (count == 1)
            d[first[alone]] += weight * ahead
            linear[first[alone]] += here[alone] * ahead
            rows.add(place, first, count, real & ~alone, here, weight, ahead)
        groups, place = np.unique(self.held.query.of(self.cells), return_inverse=True)
        exact = self.held.low[self.depth][self.nodes][:, groups].astype(float).T
        if len(self.counts) and noisy:  # exact measurements need no help
            precise, mean = self._compute_shares(exact[place])
            d += precise
            linear += precise * mean
        if not noisy and isinstance(self.held.query, FacilityQuery):
            # Exact answers of leaves are exact sums by set of types as well; noisy ones say next to nothing about these.
            d += 1.0
            linear[:, :C] += self._read_known_counts(targets.measurements.truth[self.depth]).T
        # Cells that no fine query counts have only a very weak pull to zero of their own.
        np.maximum(d, 1e-3 * float(weights.max()), out=d)
        members, kind = few.kinds()
        lines = [few.number + place.astype(np.int32), *(many.list_rows_of_cells(few.number + len(groups)))]
        none = np.zeros((len(groups), len(weights)))
        first_target, first_soft = few.sums(len(weights))
        last_target, last_soft = many.sums(len(weights))
        target = np.concatenate([first_target, none, last_target])
        times = few.weigh_rows()
        soft = np.concatenate([first_soft / times[:, None], none, last_soft])
        target[few.number : few.number + len(groups), :C] = exact
        parent, give = self.counts.astype(float), np.zeros(len(self.counts))
        lump, pulled = np.zeros(len(target)), np.zeros(len(target))
        if self.above is not None:
            parent, give = linear[:, C] / d[:, C], 1.0 / d[:, C]
            measured = soft[:, C] > 0.0
            lump[measured] = 1.0 / soft[measured].sum(axis=1)
            pulled = target[:, :C].sum(axis=1) - target[:, C]
        allowed = self.allowed.T
        found = PricedRows(
            kind=kind,
            members=members,
            lines=np.ascontiguousarray(np.stack(lines, axis=1)),
            small=few.number,
            exact=len(groups),
            centre=np.where(allowed, linear[:, :C] / d[:, :C], dual.NEVER_CENTRE),
            inverse=np.where(allowed, 1.0 / d[:, :C], 0.0),
            target=np.ascontiguousarray(target[:, :C]),
            soft=np.ascontiguousarray(soft[:, :C]),
            parent=parent,
            give=give,
            lump=lump,
            pulled=pulled,
            ahead=np.concatenate([times / FIRST_WEIGHT_FACTOR, np.ones(len(target) - few.number)]),
        )
        if (times > FIRST_WEIGHT_FACTOR).any():
            found.target[: found.small] = estimate_linearly(found, times)
        return found

    def _weigh_query(self, query: Query, weight: Floats, *, noisy: bool) -> float:
        """Return the factor of a query's measured weight: the fewer its answers, the larger.

        Not where answers are small beside their noise, as in blocks: linear estimates know nothing of non-negativity there.
        """
        if not len(self.counts) or not noisy or not weight.all():
            return FIRST_WEIGHT_FACTOR
        mean = float(self.counts.sum()) / len(self.nodes) / query.size
        if mean < MIN_SURE_DEVIATIONS / float(np.sqrt(weight.min())):
            return FIRST_WEIGHT_FACTOR
        return float(
            FIRST_WEIGHT_FACTOR * max((FIRST_WEIGHT_ANSWERS / query.size) ** FIRST_WEIGHT_POWER, 1.0)
        )

    def _sum_answers(self, targets: Targets, cells: Ints, query: Query) -> Floats:
        """Return weighted answers of one query, cells × children, with a measured parent's last."""
        own = targets.linear(self.depth, self.nodes, cells, frozenset([query.name])).T
        if self.above is None:
            return own
        above = targets.linear(self.depth - 1, np.zeros(1, np.int64), cells, frozenset([query.name])).T
        return np.concatenate([own, above], axis=1)

    def _read_known_counts(self, truth: Sparse) -> Floats:
        """Return the counts that are measured without noise, children × cells."""
        known = np.zeros((len(self.nodes), len(self.cells)))
        for row, node in enumerate(self.nodes.tolist()):
            cells, counts = truth.at(node)
            inside = np.isin(cells, self.cells)
            known[row, np.searchsorted(self.cells, cells[inside])] = counts[inside]
        return known

    def _compute_shares(self, exact: Floats) -> tuple[Floats, Floats]:
        """Return prior means and variances: each cell spreads as its exact group, binomially."""
        share = exact / np.maximum(exact.sum(axis=1, keepdims=True), 1.0)
        spread = self.counts[:, None] * np.maximum(share * (1.0 - share), 1e-2)
        return 1.0 / np.maximum(spread, 1e-2), self.counts[:, None] * share

    def solve(self, targets: Targets) -> tuple[Ints, Solution]:
        """Return the integers of every child, and the fractional optimum with its certificate."""
        rows = self.rows(targets)
        solution = self.fit(rows)
        return self.round_counts(rows, solution.x), solution

    def fit(self, rows: PricedRows) -> Solution:
        """Return the fractional optimum, children × cells, with its certificate."""
        found = solve_dual(rows, tolerance=TOLERANCE_PERSONS)
        weakest = 1.0 / float(rows.inverse.max())
        distance = float(np.sqrt(2.0 * found.gap / weakest / len(self.nodes)))
        x = np.ascontiguousarray(found.x.T)
        return Solution(x, found.gap, found.residual, found.products, "newton", distance)

    def round_counts(self, rows: PricedRows, x: Floats) -> Ints:
        """Return integers near x, children × cells, that keep every exact sum."""
        group, coarse = rows.lines[:, 0] - rows.small, rows.members[rows.kind].T
        measured = np.ascontiguousarray(np.concatenate([coarse, rows.lines[:, 1:].T]))
        order = np.lexsort((*coarse, group)).astype(np.int64)
        begin = np.searchsorted(group[order], np.arange(rows.exact + 1)).astype(np.int64)
        exact = np.ascontiguousarray(rows.target[rows.small : rows.small + rows.exact].T.astype(np.int64))
        X = np.zeros(x.shape, np.int64)
        if len(self.counts):
            fine = round_in_turn(x, order, self.counts, begin, exact, self.allowed, X)
            if not fine:
                raise InfeasibleError(
                    "the children's exact sums do not add up to their parent's cells",
                    why="the exact sums of the levels contradict each other",
                    fix="check the constraints of the two levels, and report this if they agree",
                )
        else:
            round_systematically(x[0], order, begin, exact[0], X[0])
        # Exchanges of single persons get stuck where some sums count far more than others, so here all small ones are alike.
        weight = np.ascontiguousarray(1.0 / np.maximum((rows.soft * rows.ahead[:, None]).T, 1e-12))
        stiff = np.ascontiguousarray(1.0 / np.maximum(rows.inverse.T, 1e-12))
        off = np.empty(weight.shape)
        measure_errors(X, x, measured, off)
        exchange_persons(
            X, x, measured, weight, stiff, off, order, begin, self.allowed, MAX_SWEEPS, MAX_EXCHANGES
        )
        return X


# The estimator of a product that agrees with an earlier one in every geounit.

MAX_ROOT_CELLS = 20_000_000  # cells of all children that are estimated together with the root


def choose_estimator(estimator: Estimator) -> Estimator:
    """Return the estimator with Newton's method, if the only held sums are those of an earlier product."""
    given = estimator.allotment.workload.given
    fits = given and isinstance(estimator.targets, ClassicTargets)
    if not fits or not _holds_one_product(estimator.constraints):
        return estimator
    return GivenSumsEstimator(*(getattr(estimator, own.name) for own in fields(estimator)))


def _holds_one_product(constraints: Constraints) -> bool:
    """Return whether exactly one query is held, exact everywhere, and counts every cell."""
    if len(constraints.solve_queries) != 1:
        return False
    held = constraints.solve_queries[0]
    exact = all(a is b or np.array_equal(a, b) for a, b in zip(held.low, held.high, strict=True))
    return exact and all(min(factor) >= 0 for factor in held.query.factors)


@dataclass(frozen=True, slots=True)
class GivenSumsEstimator(Estimator):
    """Estimator that solves each parent as a Newton problem with exact sums."""

    def has_arrays(self) -> bool:
        """Return False: every parent is a problem of its own."""
        return False

    def root(self) -> tuple[Sparse, Certificate]:
        """Return the histogram of the root."""
        spine, histogram = self.allotment.spine, self.allotment.workload.histogram
        if not spine.size(0):
            return Estimator.root(self)
        node, cells = np.zeros(1, np.int64), np.arange(histogram.cells)
        cells = cells[self.constraints.possible(cells) & self.constraints.find_allowed(0, node, cells)[0]]
        certificate = Certificate(spine.levels[0])
        if not len(cells):
            return Sparse.of(node[:0], node[:0], node[:0], 1, histogram.cells), certificate
        problem = self._build_problem(0, node, cells, node[:0], np.ones((1, len(cells)), bool))
        rows = problem.rows(self.targets)
        solution = self._solve_with_children(problem, rows)
        certificate.add(solution)
        values = problem.round_counts(rows, solution.x.sum(axis=0, keepdims=True))
        self._check(0, node, cells, values)
        keep = np.flatnonzero(values[0])
        zeros = np.zeros(len(keep), np.int64)
        return Sparse.of(zeros, cells[keep], values[0][keep], 1, histogram.cells), certificate

    def _solve_with_children(self, root: GivenSumsParent, rows: PricedRows) -> Solution:
        """Solve the root with its children, if it has several: their zeros inform its cells."""
        spine = self.allotment.spine
        below = np.arange(*spine.first_child[0][:2]) if len(spine.levels) > 1 else np.zeros(0, np.int64)
        size = len(root.cells) * len(below)
        if len(below) < 2 or size > MAX_ROOT_CELLS or self.targets.measurements.key is None:
            return root.fit(rows)
        allowed = self.constraints.find_allowed(1, below, root.cells)
        joint = replace(self._build_problem(1, below, root.cells, root.counts, allowed), above=root.weights)
        found = joint.fit(joint.rows(self.targets))
        if found.violation <= TOLERANCE_PERSONS:
            return found
        alone = root.fit(rows)  # with many cells and children the search may not end
        return alone if alone.violation < found.violation else found

    def _build_problem(
        self, depth: int, nodes: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_]
    ) -> GivenSumsParent:
        queries = self.allotment.workload.queries
        weights = self._weights(depth, nodes, [query.name for query in queries])
        return GivenSumsParent(
            depth, nodes, cells, counts, allowed, self.constraints.solve_queries[0], queries, weights
        )

    def children(
        self, depth: int, family: Family, shared: LevelArrays | None, children: Ints, allowed: NDArray[np.bool_],  # noqa: ARG002
        certificate: Certificate,
    ) -> Ints:  # fmt: skip
        """Solve and round; return the integers of each child on the parent's cells."""
        cells, counts = family.above.at(0)
        if len(counts) and len(children) == 1:
            return counts[None]
        problem = self._build_problem(depth, children, cells, counts, allowed)
        values, solution = problem.solve(self.targets)
        certificate.add(solution)
        return values
