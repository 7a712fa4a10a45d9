"""Tests by sampling: bounds on the loss of a pair, agreement with the exact law, canaries in one run, and repeated runs."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from stirred.assess.audit.bounds import (
    Draws,
    bound_loss_above,
    bound_loss_below,
    bound_loss_by_guesses,
    chance_of_deviation,
    choose_event,
)
from stirred.assess.audit.result import AuditTest, Outcome
from stirred.assess.audit.sampling import Clock, count_by_copy, count_draws, mix_copies
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Content, Law, collect_public_parts

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
