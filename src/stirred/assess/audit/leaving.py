"""Test what a law of contents is silent about: the order of the rows, and every text that leaves with a release.

The order says nothing where it is always the same, where rows are sorted by what they show, or where it is a uniform
shuffle. Texts say nothing where they are the same in every run on two data sets of one universe. Whatever else varies is
held against the data set: within runs with equal contents a guess of the data set from order and texts must not beat
chance, and by themselves they must not tell two data sets apart better than the claim allows. The rest is unknown.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from stirred.assess.audit.bounds import Draws, bound_event, chance_of_deviation, choose_event, upper_limit
from stirred.assess.audit.result import AuditTest, Outcome, Part
from stirred.assess.audit.sampling import Clock
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import PublicParts, Row, collect_public_parts

EXPECTED_PER_RANK = 20  # times that each rank is expected at each place, for a shuffle to be called uniform
RANK_PLACES = 6  # at which ranks are compared, and classes of ranks
FIRST_ROWS_COMPARED = 4  # whose order is compared between runs with different contents
MAX_SHUFFLE_ROWS = 1000  # rows; longer files are compared by their first rows and their ranks alone
MIN_SHUFFLE_P_VALUE = 1e-3  # a shuffle is called uniform unless what is seen has less than this p-value
MAX_LOOKS = 4  # each with twice as many runs as the one before
MIN_RUNS = 10  # runs on each data set, to say that something never varies
Loss = Callable[[float, float], float]  # of the probabilities of an event under two data sets, per unit


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingRuns:
    """The order and texts that single releases of the two data sets of a pair showed."""

    one: tuple[PublicParts, ...]
    other: tuple[PublicParts, ...]

    @property
    def both(self) -> tuple[PublicParts, ...]:
        """Return what all single releases of both data sets showed."""
        return self.one + self.other

    @property
    def fewest(self) -> int:
        """Return the runs on the data set that has fewer."""
        return min(len(self.one), len(self.other))


def compare_leaving(
    mechanism: Mechanism,
    one: Census,
    other: Census,
    claimed: float,
    loss: Loss,
    *,
    key: Key,
    runs: int,
    clock: Clock,
    error: float,
    alarm: float,
    copies: Sequence[tuple[Row, ...]] = (),
) -> tuple[LeavingRuns, list[AuditTest]]:
    """Release each data set of a pair by itself, in turn; twice as often, as long as a test stays unknown.

    The looks share the false alarms; what is returned are the runs, and the tests of the last look.
    """
    found: tuple[list[PublicParts], list[PublicParts]] = ([], [])
    wanted = runs
    for look in range(MAX_LOOKS):
        while len(found[0]) < wanted and not clock.is_over:
            for side, census in enumerate((one, other)):
                made = mechanism.release(census, key=key.bind("leaving", side, len(found[0])))
                found[side].append(collect_public_parts(made))
        made_runs = LeavingRuns(one=tuple(found[0]), other=tuple(found[1]))
        tests = leaving_tests(
            made_runs, claimed, loss, error=error / MAX_LOOKS, alarm=alarm / MAX_LOOKS, copies=copies
        )
        outcomes = {test.outcome for test in tests}
        if clock.is_over or "fail" in outcomes or "unknown" not in outcomes or look == MAX_LOOKS - 1:
            break
        wanted *= 2
    return made_runs, tests


def leaving_tests(
    runs: LeavingRuns,
    claimed: float,
    loss: Loss,
    *,
    error: float,
    alarm: float,
    copies: Sequence[tuple[Row, ...]] = (),
) -> list[AuditTest]:
    """Return one test of the order of each record type and table, and one test of all texts.

    ``copies`` are the rows, in their order, of copies of a data set that were released together.
    """
    if not runs.fewest:
        return []
    names = sorted({name for run in runs.both for name in run.rows})
    share = alarm / (len(names) + 1)
    found = [
        _order_test(runs, name, claimed, loss, error=error, alarm=share, copies=copies) for name in names
    ]
    found.append(_texts_test(runs, claimed, loss, error=error, alarm=share))
    return found


def _texts_test(runs: LeavingRuns, claimed: float, loss: Loss, *, error: float, alarm: float) -> AuditTest:
    names = sorted({name for run in runs.both for name in run.texts})
    varying = [name for name in names if len({run.texts.get(name) for run in runs.both}) > 1]
    if not varying:
        enough = runs.fewest >= MIN_RUNS
        rare = float(upper_limit(0, len(runs.both), error))
        told = (
            f"{len(names)} texts (notes, names, checks, settings, metadata, identifiers) are the same in all "
            f"{len(runs.both)} runs on two data sets: others are rarer than one run in {1 / rare:.0f}"
        )
        return AuditTest(name="texts", part="texts", outcome="pass" if enough else "unknown", finding=told)

    def shown(run: PublicParts) -> tuple[Hashable, ...]:
        return tuple(run.texts.get(name) for name in varying)

    what = ", ".join(varying)
    return _judge_difference("texts", "texts", what, runs, shown, claimed, loss, error=error, alarm=alarm)


def _order_test(
    runs: LeavingRuns,
    name: str,
    claimed: float,
    loss: Loss,
    *,
    error: float,
    alarm: float,
    copies: Sequence[tuple[Row, ...]],
) -> AuditTest:
    told_name = f"order of {name}"
    every = [run.rows.get(name, ()) for run in runs.both]
    columns = next(run.columns[name] for run in runs.both if name in run.columns)
    enough = runs.fewest >= MIN_RUNS
    outcome: Outcome = "pass" if enough else "unknown"
    rare = f"in all {len(every)} runs on two data sets"
    keys = _same_keys(every, columns)
    if keys:
        told = f"rows stand in the same order of {', '.join(keys)} {rare}"
        return AuditTest(name=told_name, part="order", outcome=outcome, finding=told)
    by = find_sort_columns(every, columns)
    if by is not None:
        told = f"rows are sorted by what they show ({', '.join(by)}) {rare}"
        return AuditTest(name=told_name, part="order", outcome=outcome, finding=told)
    judged = _judge_difference(
        told_name,
        "order",
        f"the order of the rows of {name}",
        runs,
        lambda run: _features(run.rows.get(name, ()), columns),
        claimed,
        loss,
        error=error,
        alarm=alarm,
    )
    if judged.outcome == "fail":
        return judged
    samples: list[Sequence[tuple[Row, ...]]] = [
        [run.rows.get(name, ()) for run in side] for side in (runs.one, runs.other)
    ]
    if copies:
        samples.append(copies)
    found = [_check_shuffle(sample) for sample in samples]
    if any(p is None for p, _ in found):
        return judged
    if min(p for p, _ in found if p is not None) * len(found) >= MIN_SHUFFLE_P_VALUE:
        likely = max(expected for _, expected in found)
        told = (
            f"rows stand in a random order: each rank is as often at each place, in {len(every)} runs on two data sets"
            + (f" and in {len(copies):,} copies" if copies else "")
        )
        outcome = "pass" if enough and likely >= EXPECTED_PER_RANK else "unknown"
        return AuditTest(name=told_name, part="order", outcome=outcome, finding=told)
    return judged


def _judge_difference(
    name: str,
    part: Part,
    what: str,
    runs: LeavingRuns,
    shown: Callable[[PublicParts], tuple[Hashable, ...]],
    claimed: float,
    loss: Loss,
    *,
    error: float,
    alarm: float,
) -> AuditTest:
    """Test whether something that varies tells two data sets apart better than the claim allows.

    ``shown`` gives what is seen of it in one run, in one or several ways.
    """
    seen = [[(run.content, shown(run)) for run in side] for side in (runs.one, runs.other)]
    ways = min(len(value) for side in seen for _, value in side)
    alarm /= 2 * max(ways, 1)
    error /= max(ways, 1)
    beyond, compared, lower, sure = 1.0, 0, 0.0, 0.0
    for way in range(ways):
        one, other = ([(content, value[way]) for content, value in side] for side in seen)
        chance, number = dependence_p_value(one, other)
        beyond, compared = min(beyond, chance), max(compared, number)
        halves = [
            Draws(Counter(value for _, value in side[start::2]), len(side[start::2]))
            for start in (0, 1)
            for side in (one, other)
        ]
        if all(draws.runs for draws in halves):
            event, _ = choose_event(halves[0], halves[1], error)
            lower = max(lower, loss(*bound_event(event, halves[2], halves[3], error)))
            sure = max(sure, loss(*bound_event(event, halves[2], halves[3], alarm)))
    if beyond < alarm:
        told = (
            f"{what} tells two data sets apart in runs with equal contents (p < {max(beyond, 1e-300):.1e}): "
            "it depends on confidential records"
        )
        return AuditTest(name=name, part=part, outcome="fail", finding=told, lower=lower, sure=sure)
    told = f"{what} varies between runs; no dependence on the data set was found in {compared} runs with equal contents"
    if sure > claimed:
        told = f"{what} tells two data sets apart: a loss of at least {sure:.4f} per unit, above the claim"
        return AuditTest(name=name, part=part, outcome="fail", finding=told, lower=lower, sure=sure)
    return AuditTest(name=name, part=part, outcome="unknown", finding=told, lower=lower, sure=sure)


def dependence_p_value(
    one: Sequence[tuple[Hashable, Hashable]], other: Sequence[tuple[Hashable, Hashable]]
) -> tuple[float, int]:
    """Return the exact p-value that what is shown depends on the data set, and the runs it rests on.

    Half of the runs teach which data set each thing that is shown points to; in the other half the number of right guesses
    is, with no dependence, a sum of hypergeometric numbers over the contents.

    >>> same = [("y", number % 2) for number in range(100)]
    >>> dependence_p_value(same, same)[0] > 0.01, dependence_p_value([("y", 0)] * 40, [("y", 1)] * 40)[0] < 1e-9
    (True, True)
    """
    votes: dict[Hashable, int] = defaultdict(int)
    for side, sign in ((one, 1), (other, -1)):
        for _, value in side[::2]:
            votes[value] += sign
    table: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for side, first in ((one, True), (other, False)):
        for content, value in side[1::2]:
            vote = votes.get(value, 0)
            if vote:
                table[content][2 * (vote < 0) + (not first)] += 1
    chances, right, compared = np.ones(1), 0, 0
    for said_one, said_one_wrong, said_other_wrong, said_other in table.values():
        guesses, firsts = said_one + said_one_wrong, said_one + said_other_wrong
        number = guesses + said_other_wrong + said_other
        if 0 in (firsts, number - firsts) or 0 in (guesses, number - guesses):
            continue
        compared += number
        right += said_one
        chances = np.convolve(chances, stats.hypergeom.pmf(np.arange(number + 1), number, firsts, guesses))
    return float(min(1.0, chances[right:].sum())) if compared else 1.0, compared


def _same_keys(every: Sequence[tuple[Row, ...]], columns: Row) -> tuple[str, ...]:
    """Return the columns whose values are the same at every place in all runs, if they identify all rows."""
    if len({len(rows) for rows in every}) > 1:
        return ()
    fixed = [i for i in range(len(columns)) if len({tuple(row[i] for row in rows) for rows in every}) == 1]
    first = every[0]
    if not first or len({tuple(row[i] for i in fixed) for row in first}) < len(first):
        return ()
    return tuple(columns[i] for i in fixed)


def find_sort_columns(every: Sequence[tuple[Row, ...]], columns: Row) -> tuple[str, ...] | None:
    """Return the columns by which the rows of all runs are sorted, or None where there are none.

    >>> runs = [(("a", "2"), ("a", "10"), ("b", "1")), (("a", "1"), ("b", "2"), ("b", "3"))]
    >>> find_sort_columns(runs, ("place", "number"))
    ('place', 'number')
    >>> find_sort_columns([(("b", "2"), ("a", "10"), ("c", "3"))], ("place", "number")) is None
    True
    """
    rows = [row for run in every for row in run]
    if not rows:
        return ()
    group = np.repeat(np.arange(len(every)), [len(run) for run in every])
    codes = {name: _codes([row[i] for row in rows]) for i, name in enumerate(columns)}
    chosen: list[str] = []
    while True:
        inside = group[1:] == group[:-1]
        left = {name: ways for name, ways in codes.items() if name not in chosen}
        if not any((ways[0][1:] != ways[0][:-1])[inside].any() for ways in left.values()):
            return tuple(chosen)
        steps = {
            name: [np.diff(way) for way in ways]
            for name, ways in left.items()
        }  # fmt: skip
        fitting = [
            name
            for name, ways in steps.items()
            if any((way[inside] >= 0).all() or (way[inside] <= 0).all() for way in ways)
            and (ways[0][inside] != 0).any()
        ]
        if not fitting:
            return None
        chosen.append(fitting[0])
        changed = ~inside | (steps[fitting[0]][0] != 0)
        group = np.concatenate([[0], np.cumsum(changed)])


def _codes(values: list[str]) -> list[NDArray[np.int64]]:
    """Return numbers in the order of texts and, where all are numbers, in the order of numbers."""
    ways: list[dict[str, int]] = [{value: i for i, value in enumerate(sorted({*values}))}]
    try:
        by_number = sorted({*values}, key=lambda value: (float(value) if value else -inf, value))
    except ValueError:
        by_number = []
    if by_number:
        ways.append({value: i for i, value in enumerate(by_number)})
    return [np.array([way[value] for value in values], np.int64) for way in ways]


def _features(rows: tuple[Row, ...], columns: Row) -> tuple[Hashable, ...]:
    """Return features of the order that runs with different contents share: ranks of first rows and columns."""
    place = {row: i for i, row in enumerate(sorted(set(rows)))}
    ranks = tuple(place[row] for row in rows[:FIRST_ROWS_COMPARED])
    return (rows, ranks, *(tuple(row[i] for row in rows[:FIRST_ROWS_COMPARED]) for i in range(len(columns))))


def _check_shuffle(runs: Sequence[tuple[Row, ...]]) -> tuple[float | None, float]:
    """Return the p-value of a uniform shuffle, and how often each rank is expected at each place.

    None where there is no row to compare. Equal rows are put in a random order first, which a shuffle does not notice.
    """
    sizes = {len(rows) for rows in runs}
    n = min(sizes, default=0)
    if n < 2 or len(sizes) > 1 or n > MAX_SHUFFLE_ROWS:
        return None, 0.0
    ties = np.random.default_rng(1)
    places = np.unique(np.linspace(0, n - 1, min(n, RANK_PLACES)).round().astype(int))
    classes = min(n, RANK_PLACES)
    hits = np.zeros((len(places), classes), np.int64)
    for rows in runs:
        number = {row: i for i, row in enumerate(sorted(set(rows)))}
        order = np.lexsort((ties.random(n), np.array([number[row] for row in rows])))
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        hits[np.arange(len(places)), rank[places] * classes // n] += 1
    sizes_of = np.bincount(np.arange(n) * classes // n, minlength=classes) / n
    values = chance_of_deviation(hits, len(runs), np.broadcast_to(sizes_of, hits.shape))
    return min(float(values.min()) * values.size, 1.0), len(runs) * float(sizes_of.min())
