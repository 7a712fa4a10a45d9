"""Run a mechanism many times on one data set, and bound probabilities and losses from the counts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from time import monotonic
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import special

from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Content, Row, identifier_columns, make_content, read_content
from stirred.mechanisms.release import Release

# Bounds from counts: Clopper–Pearson for one probability, and for the loss between two data sets.
#
# An event is chosen on training runs and judged on fresh ones, so that the choice costs no confidence; where several
# pairs or outputs are judged, the error probability is divided among them (union bound).

Floats = NDArray[np.float64]
RENYI_ORDERS = (
    1.0001,
    1.01,
    1.05,
    1.1,
    1.2,
    1.35,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    4.0,
    6.0,
    9.0,
    14.0,
    20.0,
)  # of Rényi


def lower_limit(hits: ArrayLike, runs: int, error: float) -> Floats:
    """Return the Clopper–Pearson lower limit; it exceeds the true probability with chance ``error`` at most.

    >>> float(lower_limit(0, 100, 0.05)), round(float(lower_limit(100, 100, 0.05)), 4)
    (0.0, 0.9705)
    """
    k = np.asarray(hits, float)
    low = special.betaincinv(np.maximum(k, 1), runs - k + 1, error)
    return np.asarray(np.where(k > 0, low, 0.0))


def upper_limit(hits: ArrayLike, runs: int, error: float) -> Floats:
    """Return the Clopper–Pearson upper limit.

    >>> round(float(upper_limit(0, 100, 0.05)), 4)
    0.0295
    """
    k = np.asarray(hits, float)
    high = special.betaincinv(k + 1, np.maximum(runs - k, 1), 1 - error)
    return np.asarray(np.where(k < runs, high, 1.0))


@dataclass(frozen=True, slots=True)
class Draws:
    """How often each output was seen in some runs on one data set."""

    counts: Mapping[Any, int]  # contents, or other things that runs show
    runs: int


@dataclass(frozen=True, slots=True)
class DecidingEvent:
    """Some outputs that tell two data sets apart: likelier under the first, or under the second if ``swapped``."""

    outputs: frozenset[Any]
    swapped: bool

    def count_hits(self, draws: Draws) -> int:
        """Count how often the event occurred."""
        return sum(count for output, count in draws.counts.items() if output in self.outputs)


def choose_event(one: Draws, other: Draws, error: float) -> tuple[DecidingEvent, float]:
    """Choose the event with the largest lower bound on training runs; return it with that bound."""
    best = (DecidingEvent(frozenset(), swapped=False), 0.0)
    for first, second, swapped in ((one, other, False), (other, one, True)):
        ratio = {
            output: (count + 0.5) / (second.counts.get(output, 0) + 0.5)
            for output, count in first.counts.items()
        }
        order = sorted(ratio, key=lambda output: -ratio[output])
        if not order:
            continue
        hits = np.cumsum([first.counts[output] for output in order])
        others = np.cumsum([second.counts.get(output, 0) for output in order])
        single = np.array([first.counts[output] for output in order])
        rare = np.array([second.counts.get(output, 0) for output in order])
        for k, k_other, alone in ((hits, others, False), (single, rare, True)):
            with np.errstate(divide="ignore"):
                value = np.log(lower_limit(k, first.runs, error / 2)) - np.log(
                    upper_limit(k_other, second.runs, error / 2)
                )
            at = int(value.argmax())
            if value[at] > best[1]:
                kept = [order[at]] if alone else order[: at + 1]
                best = (DecidingEvent(frozenset(kept), swapped), float(value[at]))
    return best


def bound_event(event: DecidingEvent, one: Draws, other: Draws, error: float) -> tuple[float, float]:
    """Bound the event from fresh runs: its least chance on one data set, its largest on the other."""
    first, second = (other, one) if event.swapped else (one, other)
    low = float(lower_limit(event.count_hits(first), first.runs, error / 2))
    return low, float(upper_limit(event.count_hits(second), second.runs, error / 2))


def bound_loss_below(event: DecidingEvent, one: Draws, other: Draws, error: float) -> float:
    """Bound |ln P(event) / P'(event)| from below by fresh runs, right with probability 1 − error."""
    return ratio_loss(*bound_event(event, one, other, error))


def ratio_loss(low: float, high: float) -> float:
    """Return the loss ε that the least chance on one data set and the largest on the other show."""
    return max(log(low / high), 0.0) if low > 0 else 0.0


def renyi_loss(low: float, high: float) -> float:
    r"""The loss ρ² that such an event shows: $\max_\alpha D_\alpha(p \| q) / \alpha$ of the two coins, both ways.

    Whether the event occurs is computed from the release, so no divergence of it is larger than that of the release; at
    every $\alpha$ a bound is valid, and the largest over a grid is taken.

    >>> renyi_loss(0.5, 0.5), round(renyi_loss(0.9, 0.1), 3)
    (0.0, 1.758)
    """
    if low <= high:
        return 0.0
    best = 0.0
    for p, q in ((low, high), (high, low)):
        for order in RENYI_ORDERS:
            terms = [a**order * b ** (1 - order) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0 and b > 0]
            divergence = inf if (p > 0 and q == 0) or (p < 1 and q == 1) else log(sum(terms)) / (order - 1)
            best = max(best, divergence / order)
    return best


def bound_loss_above(one: Draws, other: Draws, outputs: Sequence[Content], error: float) -> float:
    """Bound the loss over all ``outputs`` from above; ∞ where one of them was never seen."""
    if not outputs:
        return inf
    each = error / (4 * len(outputs))
    k = np.array([one.counts.get(output, 0) for output in outputs])
    k_other = np.array([other.counts.get(output, 0) for output in outputs])
    if not k.all() or not k_other.all():
        return inf
    up = np.log(upper_limit(k, one.runs, each)) - np.log(lower_limit(k_other, other.runs, each))
    down = np.log(upper_limit(k_other, other.runs, each)) - np.log(lower_limit(k, one.runs, each))
    return float(max(up.max(), down.max()))


def bound_loss_by_guesses(right: int, guesses: int, error: float) -> float:
    r"""The loss that so many right guesses of fair coins show: $\Pr[\mathrm{Bin}(r, e^\ell/(1+e^\ell)) \ge v] =$ error.

    >>> round(bound_loss_by_guesses(950, 1000, 0.05), 2)
    2.7
    """
    q = float(lower_limit(right, guesses, error)) if guesses else 0.0
    return log(q / (1 - q)) if 0.5 < q < 1 else 0.0


def chance_of_deviation(hits: ArrayLike, runs: int, chance: ArrayLike) -> Floats:
    """Return the exact two-sided binomial p-values of counts under given probabilities."""
    k, p = np.asarray(hits, float), np.asarray(chance, float)
    low = special.betainc(np.maximum(runs - k, 1e-300), k + 1, 1 - p)
    low = np.where(k >= runs, 1.0, low)
    high = np.where(k > 0, special.betainc(np.maximum(k, 1), runs - k + 1, p), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(low, high)))


# Run a mechanism many times on one invented data set, and count what it shows.

MAX_COPIES_AT_ONCE = 250_000  # copies in one release
Tick = Callable[[int], None]


@dataclass(slots=True)
class Clock:
    """The time limit of an audit; what is not done by then stays unknown."""

    seconds: float | None
    began: float = field(default_factory=monotonic)

    @property
    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self.seconds is not None and monotonic() - self.began > self.seconds

    def part(self, share: float) -> "Clock":
        """Return a clock that ends after this share of the time that is left."""
        if self.seconds is None:
            return Clock(None)
        return Clock(max(self.seconds - (monotonic() - self.began), 0.0) * share)


def count_draws(
    mechanism: Mechanism, census: Census, *, key: Key, runs: int, clock: Clock, tick: Tick = lambda _: None
) -> Draws:
    """Count what ``runs`` releases show; fewer where the time is up. Each run has randomness of its own."""
    found: Counter[Content] = Counter()
    done = 0
    while done < runs and not clock.is_over:
        copies = min(MAX_COPIES_AT_ONCE, runs - done)
        many = mechanism.replicate(census, copies) if copies > 1 else None
        if many is None:
            found[read_content(mechanism.release(census, key=key.bind("run", done)))] += 1
            done += 1
        else:
            inner, copied, name = many
            release = inner.release(copied, key=key.bind("copies", done))
            found += count_by_copy(release, name, copies)[0]
            done += copies
        tick(done)
    return Draws(found, done)


def count_by_copy(
    release: Release, name: str, copies: int
) -> tuple[Counter[Content], list[Content], NDArray[np.int64]]:
    """Count what the copies show: contents with their counts, all contents, and the content of each copy."""
    record_type = next(iter(release.microdata))
    frame = release.to_polars(record_type)
    frame = frame.drop(identifier_columns(release.schema, record_type) & {*frame.columns})
    if not frame.schema[name].is_integer():  # "10" would come before "2"
        frame = frame.with_columns(pl.col(name).cast(pl.String).cast(pl.Int64))
    columns = sorted(column for column in frame.columns if column != name)
    texts = frame.select(name, *(pl.col(column).cast(pl.String).fill_null("") for column in columns))
    kinds = texts.select(columns).unique().sort(columns).with_row_index("row code")
    rows: list[Row] = kinds.select(columns).rows()
    coded = texts.join(kinds, on=columns, how="left").select(name, "row code").sort(name, "row code")
    width = coded.height // copies
    codes = coded["row code"].to_numpy().reshape(copies, width).astype(np.int64)
    packed, first, place, counts = _distinct(codes, len(rows))
    del packed
    contents = [make_content({record_type: [rows[code] for code in codes[at]]}) for at in first]
    merged: Counter[Content] = Counter()
    for one, count in zip(contents, counts.tolist(), strict=True):
        merged[one] += count
    return merged, contents, place


def read_ordered_copies(
    mechanism: Mechanism, census: Census, *, key: Key, copies: int
) -> list[tuple[Row, ...]]:
    """Return the rows of each copy in the order of one release of all copies; [] if none can be made."""
    many = mechanism.replicate(census, copies)
    if many is None:
        return []
    inner, copied, name = many
    release = inner.release(copied, key=key.bind("ordered copies"))
    record_type = next(iter(release.microdata))
    frame = release.to_polars(record_type)
    columns = [
        one
        for one in frame.columns
        if one != name and one not in identifier_columns(release.schema, record_type)
    ]
    texts = frame.select(
        pl.col(name).cast(pl.String), *(pl.col(column).cast(pl.String).fill_null("") for column in columns)
    )
    found: dict[str, list[Row]] = {}
    for number, *row in texts.rows():
        found.setdefault(number, []).append(tuple(row))
    return [tuple(rows) for rows in found.values()]


def _distinct(
    codes: NDArray[np.int64], kinds: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of a matrix, packed into one number each where they fit."""
    width = codes.shape[1]
    if kinds**width < 2**62:
        packed = codes @ (np.int64(kinds) ** np.arange(width, dtype=np.int64))
        found = np.unique(packed, return_index=True, return_inverse=True, return_counts=True)
    else:
        found = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    values, first, place, counts = found
    return values, first, place.ravel(), counts


def mix_copies(
    mechanism: Mechanism, one: Census, other: Census, coins: NDArray[np.bool_]
) -> tuple[Mechanism, Census, str] | None:
    """Return copies of two data sets in one census: copy i is the second where coin i says so."""
    first, second = mechanism.replicate(one, len(coins)), mechanism.replicate(other, len(coins))
    if first is None or second is None:
        return None
    inner, census, name = first
    record_type = next(iter(census.files))
    heads = pl.Series(np.flatnonzero(coins))
    kept = census.files[record_type].filter(~pl.col(name).is_in(heads.implode()))
    changed = second[1].files[record_type].filter(pl.col(name).is_in(heads.implode()))
    rows = pl.concat([kept, changed]).sort(name)
    record = census.schema.record(record_type)
    if record.id:
        rows = rows.drop(record.id).with_row_index(record.id, offset=1)
    return inner, Census(schema=census.schema, files={record_type: rows}, folder=one.folder), name
