"""Test runs on a pair of data sets: contents, exact law, canaries, repeated runs, order of rows and texts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from stirred.assess.audit.result import AuditTest, Outcome, Part
from stirred.assess.audit.sampling import (
    Clock,
    Draws,
    bound_event,
    bound_loss_above,
    bound_loss_below,
    bound_loss_by_guesses,
    chance_of_deviation,
    choose_event,
    count_by_copy,
    count_draws,
    mix_copies,
    upper_limit,
)
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Content, Law, PublicParts, Row, collect_public_parts

# Tests by sampling: bounds on the loss of a pair, agreement with the exact law, canaries in one run, and repeated runs.

TRAINING_STEP = 5  # one run of so many chooses the event
PASS_LOSS_FACTOR = 1.1  # a pass by sampling says that the loss is at most this times the claim
MIN_EXPECTED_HITS = 20  # times that the likeliest output is expected, for runs to say anything about a law


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOfSets:
    """Two data sets of one universe and their distance."""

    one: Census
    other: Census
    distance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDraws:
    """Training and fresh runs on both data sets of a pair."""

    pair: PairOfSets
    training: tuple[Draws, Draws]
    fresh: tuple[Draws, Draws]

    @property
    def runs(self) -> int:
        """Return the fewest runs on one of the two data sets."""
        return min(self.training[i].runs + self.fresh[i].runs for i in range(2))


def draw_pair(
    mechanism: Mechanism, pair: PairOfSets, *, key: Key, runs: int, clock: Clock, say: Progress
) -> PairDraws:
    """Run on both data sets of a pair, training runs first."""
    training, total = max(runs // TRAINING_STEP, 1), 2 * runs
    found: list[Draws] = []
    for label, number, shares in (
        ("training", training, (1 / 10, 1 / 9)),
        ("fresh", max(runs - training, 1), (1 / 2, 1)),
    ):
        for side, census, share in (("one", pair.one, shares[0]), ("other", pair.other, shares[1])):
            before = sum(one.runs for one in found)

            def tick(done: int, before: int = before) -> None:
                say("runs", min(before + done, total), total)

            own = key.bind("pair", label, side)
            # where the time is short each of the four has its share of it
            found.append(
                count_draws(mechanism, census, key=own, runs=number, clock=clock.part(share), tick=tick)
            )
    say("runs", total, total)
    return PairDraws(pair=pair, training=(found[0], found[1]), fresh=(found[2], found[3]))


def paired_test(
    made: PairDraws,
    claimed: float,
    *,
    error: float,
    alarm: float,
    support: list[Content] | None,
    alone: bool,
) -> AuditTest:
    """Test whether the loss of a pair exceeds the claim; with the ``support`` also whether it does not.

    Only a universe that has no other data sets (``alone``) passes by its one pair.
    """
    if not made.fresh[0].runs or not made.fresh[1].runs:
        return AuditTest(name="pair", outcome="unknown", finding="no run ended in time")
    event, _ = choose_event(*made.training, error)
    units = made.pair.distance
    lower = bound_loss_below(event, *made.fresh, error) / units
    strict = bound_loss_below(event, *made.fresh, alarm) / units
    upper = bound_loss_above(*made.fresh, support, error) / units if support else inf
    runs = min(one.runs for one in made.fresh)
    what = f"at least {lower:.4f} per unit in {runs:,} runs on each of two data sets at distance {units}"
    outcome: Outcome = "unknown"
    if claimed == inf:
        told = f"the loss is {what}; nothing is claimed"
    elif strict > claimed:
        outcome, told = "fail", f"the loss is {what}, above the claim"
    elif lower > claimed:
        told = f"the loss is {what}; this is above the claim, but not beyond chance: run more"
    elif upper <= claimed * PASS_LOSS_FACTOR:
        told = f"the loss is {what}, and at most {upper:.4f} over all {len(support or ()):,} outputs"
        outcome = "pass" if alone else "unknown"
        told += "" if alone else "; the other pairs of the universe were not run"
    elif upper == inf:
        told = f"the loss is {what}; some outputs were never seen under one of the two data sets"
    else:
        told = f"the loss is {what}; the upper limit {upper:.4f} is not near enough to the claim"
    return AuditTest(name="pair", outcome=outcome, finding=told, lower=lower, sure=strict)


def law_test(law: Law, seen: Draws, *, alarm: float) -> AuditTest:
    """Test whether runs follow the exact law: a binomial test of every output, with a union bound."""
    strange = sum(count for output, count in seen.counts.items() if not law.get(output))
    if strange:
        told = f"{strange:,} of {seen.runs:,} runs show what the exact law says is impossible"
        return AuditTest(name="law", part="law", outcome="fail", finding=told)
    if not seen.runs:
        return AuditTest(name="law", part="law", outcome="unknown", finding="no run ended in time")
    outputs = [output for output in law if law[output]]
    hits = np.array([seen.counts.get(output, 0) for output in outputs])
    values = chance_of_deviation(hits, seen.runs, np.array([float(law[output]) for output in outputs]))
    least = float(values.min()) * len(outputs)
    if least < alarm:
        told = f"what {seen.runs:,} runs show does not follow the exact law (p < {max(least, 1e-300):.1e})"
        return AuditTest(name="law", part="law", outcome="fail", finding=told)
    expected = seen.runs * float(np.max([float(law[output]) for output in outputs]))
    enough = expected >= MIN_EXPECTED_HITS
    told = f"what {seen.runs:,} runs show agrees with the exact law of {len(outputs):,} outputs"
    return AuditTest(name="law", part="law", outcome="pass" if enough else "unknown", finding=told)


def one_run_test(
    mechanism: Mechanism,
    made: PairDraws,
    claimed: float,
    *,
    key: Key,
    copies: int,
    error: float,
    alarm: float,
) -> AuditTest | None:
    """Guess fair coins from one release: each coin exchanges values inside its own copy, so invariants stay as they are."""
    coins = np.random.default_rng(int.from_bytes(key.digest(b"coins")[:8], "little")).random(copies) < 0.5
    many = mix_copies(mechanism, made.pair.one, made.pair.other, coins)
    if many is None:
        return None
    inner, census, name = many
    _, contents, place = count_by_copy(inner.release(census, key=key.bind("one run")), name, copies)
    guess = _guesses(*made.training, error)
    guessed = np.array([guess.get(one, 0) for one in contents])[place]
    said = guessed != 0
    right, number = int(((guessed[said] > 0) == coins[said]).sum()), int(said.sum())
    lower = bound_loss_by_guesses(right, number, error) / made.pair.distance
    strict = bound_loss_by_guesses(right, number, alarm) / made.pair.distance
    told = (
        f"{right:,} of {number:,} guesses about {copies:,} exchanged pairs are right in one run: "
        f"a loss of at least {lower:.4f} per unit"
    )
    return AuditTest(
        name="one run",
        outcome="fail" if strict > claimed else "unknown",
        finding=told,
        lower=lower,
        sure=strict,
    )


def _guesses(one: Draws, other: Draws, error: float) -> dict[Content, int]:
    """Return the guess for each output: −1 the first data set, 1 the second, 0 none."""
    outputs = sorted({*one.counts, *other.counts})
    k = np.array([one.counts.get(output, 0) for output in outputs], float)
    k_other = np.array([other.counts.get(output, 0) for output in outputs], float)
    ratio = np.log((k_other + 0.5) / (k + 0.5))
    order = np.argsort(-np.abs(ratio), kind="stable")
    right = np.cumsum(np.maximum(k, k_other)[order])
    said = np.cumsum((k + k_other)[order])
    bounds = [
        bound_loss_by_guesses(int(v), int(r), error) if r else 0.0 for v, r in zip(right, said, strict=True)
    ]
    kept = order[: int(np.argmax(bounds)) + 1] if len(order) else order
    return {outputs[i]: 1 if ratio[i] > 0 else -1 for i in kept.tolist() if ratio[i] != 0}


def repeat_test(mechanism: Mechanism, census: Census, *, key: Key) -> AuditTest:
    """Test whether a run that is repeated with its key shows the same."""
    with TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        state.mkdir()
        shows = [collect_public_parts(mechanism.release(census, key=key, state=state)) for _ in range(2)]
        shows.append(collect_public_parts(mechanism.release(census, key=key)))
    if any(one != shows[0] for one in shows):
        told = "a run that is repeated with the same key and census draws again: both are releases, and their losses add up"
        return AuditTest(name="repeat", part="repeat", outcome="fail", finding=told)
    return AuditTest(
        name="repeat",
        part="repeat",
        outcome="pass",
        finding="a repeated run shows the same, in the same order",
    )


# Test what a law of contents is silent about: the order of the rows, and every text that leaves with a release.
#
# The order says nothing where it is always the same, where rows are sorted by what they show, or where it is a uniform
# shuffle. Texts say nothing where they are the same in every run on two data sets of one universe. Whatever else varies
# is held against the data set: within runs with equal contents a guess of the data set from order and texts must not beat
# chance, and by themselves they must not tell two data sets apart better than the claim allows. The rest is unknown.

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

    def list_texts(run: PublicParts) -> tuple[Hashable, ...]:
        return tuple(run.texts.get(name) for name in varying)

    what = ", ".join(varying)
    return _judge_difference(
        "texts", "texts", what, runs, list_texts, claimed, loss, error=error, alarm=alarm
    )


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
