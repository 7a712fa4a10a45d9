"""Enclose distribution functions of laws on the integers in intervals of any precision."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple, Protocol

from stirred.chance.streams import Uniform

# Integer intervals that contain $e^{-x}$: no floating point, and every rounding widens the interval.
#
# $[l, h]$ at ``bits`` means $l \le 2^{bits} v \le h$. Products round the low end down and the high end up, so a chain
# of products keeps its value inside, whatever its length (proof.md, Section 5).


def enclose_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """The interval of $e^{-x}$ for x ≥ 0, a few units wide.

    >>> low, high = enclose_exp(Fraction(1), 20)
    >>> low, high  # 2**20 / e = 385749.6...
    (385749, 385750)
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    work = bits + halvings + 16
    scaled = x.numerator << work
    divisor = x.denominator << halvings
    y_low = scaled // divisor  # y = x / 2^halvings < 1/2
    y_high = y_low + 1
    total_low = total_high = term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> work) // n
        term_high = -((-(term_high * y_high)) >> work)
        term_high = -(-term_high // n)
        if n % 2:
            total_low, total_high = total_low - term_high, total_high - term_low
        else:
            total_low, total_high = total_low + term_low, total_high + term_high
    # alternating and decreasing: what is left out is at most the last term
    low, high = max(0, total_low - term_high), min(1 << work, total_high + term_high)
    for _ in range(halvings):
        low, high = low * low >> work, -((-(high * high)) >> work)
    extra = work - bits
    return low >> extra, -(-high >> extra)


def is_below_exp(uniform: Uniform, x: Fraction) -> bool:
    """Decide whether $U < e^{-x}$ with as many bits as needed: a coin of probability exactly $e^{-x}$."""
    while True:
        low, high = enclose_exp(x, uniform.bits + 32)
        if (uniform.value + 1) << 32 <= low:
            return True
        if uniform.value << 32 >= high:
            return False
        uniform.extend()


# Distribution functions of laws on the integers, as intervals of any precision.
#
# ``steps(bits)`` of a law returns numbers ``low[i] ≤ 2^bits F(first + i) ≤ high[i]`` for consecutive values, both
# lists increasing. Weights follow recurrences in integers that are rounded outward; the sum beyond the last weight is
# bounded by a geometric series (proof.md, Section 5).


class EnclosedSteps(NamedTuple):
    """Intervals of $2^{bits} F(k)$ for k = first, first + 1, …"""

    first: int
    low: list[int]
    high: list[int]


class Law(Protocol):
    """A probability law on the whole numbers; tables of it are kept, so it must be hashable."""

    def __hash__(self) -> int: ...

    def steps(self, bits: int) -> EnclosedSteps:
        """Enclose the distribution function; the values left out have a total probability below about 2^-bits."""
        ...


@dataclass(frozen=True, slots=True)
class FallingLaw:
    r"""Weights $e^{-\varphi(k)}$ for k ≥ 0 with $\varphi(k) = a k^2 + b k$; on one side or mirrored at 0.

    The discrete Gaussian is $a = 1 / 2\sigma^2, b = 0$, the discrete Laplace $a = 0, b = 1 / s$.

    >>> law = FallingLaw(Fraction(0), Fraction(1), mirrored=False)   # geometric: F(0) = 1 - 1/e
    >>> steps = law.steps(20)  # from k = -1 on
    >>> steps.low[1] <= 2**20 * 0.6321205588 <= steps.high[1]
    True
    """

    square: Fraction
    linear: Fraction
    mirrored: bool

    def rise(self, start: int, step: int) -> Fraction:
        """Return φ(start + step) − φ(start) as one Fraction, because it is computed for every coin."""
        (a, b), (c, d) = self.square.as_integer_ratio(), self.linear.as_integer_ratio()
        return Fraction(step * (a * d * (2 * start + step) + b * c), b * d)

    def steps(self, bits: int) -> EnclosedSteps:
        guard = 2 * self._length(bits).bit_length() + 16
        lows, highs, beyond = self._weights(bits, bits + guard)
        # sums start at the far end, so that small numbers are added first: tail(k) = Σ_{j ≥ k} w(j)
        tail_low = list(accumulate(reversed(lows)))[::-1]
        tail_high = [t + beyond for t in list(accumulate(reversed(highs)))[::-1]]
        if self.mirrored:
            total_low = 2 * tail_low[0] - highs[0]
            total_high = 2 * tail_high[0] - lows[0]
        else:
            total_low, total_high = tail_low[0], tail_high[0]
        # survival: P(X ≥ k) for k = 1 …
        up_low = [(t << bits) // total_high for t in tail_low[1:]]
        up_high = [-((-t << bits) // total_low) for t in tail_high[1:]]
        one = 1 << bits
        low = [one - t for t in up_high]
        high = [one - t for t in up_low]
        if not self.mirrored:
            return EnclosedSteps(-1, [0, *low], [0, *high])
        # F(-k) = P(X ≥ k)
        return EnclosedSteps(-len(up_low), up_low[::-1] + low, up_high[::-1] + high)

    def _length(self, bits: int) -> int:
        """Return about how many weights exceed 2^-bits: φ(k) > bits ln 2 beyond."""
        reach = 7 * (bits + 8) // 10 + 1
        lengths = []
        if self.square:
            lengths.append(int(reach / self.square) + 1)
        if self.linear:
            lengths.append(int(reach / self.linear) ** 2 + 1)
        return int(min(lengths) ** 0.5) + 2

    def _weights(self, bits: int, work: int) -> tuple[list[int], list[int], int]:
        r_low, r_high = enclose_exp(self.square + self.linear, work)
        s_low, s_high = enclose_exp(2 * self.square, work)
        if not self.square:
            s_low = s_high = 1 << work
        low = high = 1 << work
        lows, highs = [low], [high]
        stop = 1 << max(work - bits - 8, 1)
        while high > stop:
            low = low * r_low >> work
            high = (high * r_high >> work) + 1
            lows.append(low)
            highs.append(high)
            r_low = r_low * s_low >> work
            r_high = min(r_high, (r_high * s_high >> work) + 1)
        # w(K+j) ≤ w(K) r^j with the last ratio r: Σ_{j ≥ 1} ≤ w(K) r / (1 - r)
        beyond = high * r_high // ((1 << work) - r_high) + 1
        return lows, highs, beyond


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """The number of successes among ``trials`` coins of probability p, 0 < p < 1.

    >>> BinomialLaw(1, Fraction(1, 4)).steps(8).first
    -1
    """

    trials: int
    p: Fraction

    def steps(self, bits: int) -> EnclosedSteps:
        n = self.trials
        spread = int(n * self.p * (1 - self.p)) + 1
        work = bits + 2 * spread.bit_length() + 24
        mode = min(n, int((n + 1) * self.p))
        a, b = self.p.numerator, self.p.denominator - self.p.numerator
        rising = ((a * (n - k), b * (k + 1)) for k in range(mode, n))
        sinking = ((b * k, a * (n - k + 1)) for k in range(mode, 0, -1))
        up_low, up_high, above = _chain_weights(rising, bits, work)
        down_low, down_high, below = _chain_weights(sinking, bits, work)
        lows = [*reversed(down_low), 1 << work, *up_low]
        highs = [*reversed(down_high), 1 << work, *up_high]
        total_low, total_high = sum(lows), sum(highs) + above + below
        one = 1 << bits
        first = mode - len(down_low)
        low = [min(one, (t << bits) // total_high) for t in accumulate(lows)]
        high = [min(one, -((-(t + below) << bits) // total_low)) for t in accumulate(highs)]
        if first == 0:
            first, low, high = -1, [0, *low], [0, *high]
        if mode + len(up_low) == n:
            low[-1] = high[-1] = one
        return EnclosedSteps(first, low, high)


def _chain_weights(
    ratios: Iterator[tuple[int, int]], bits: int, work: int
) -> tuple[list[int], list[int], int]:
    """Compute weights by decreasing rational ratios; the rest after the last one is bounded by a geometric series."""
    low = high = 1 << work
    lows: list[int] = []
    highs: list[int] = []
    stop = 1 << (work - bits - 8)
    for top, bottom in ratios:
        if high <= stop and 2 * top <= bottom:
            return lows, highs, high  # ratio at most 1/2 from here on
        if high <= stop and top < bottom:
            return lows, highs, high * top // (bottom - top) + 1
        low = low * top // bottom
        high = -(-high * top // bottom)
        lows.append(low)
        highs.append(high)
    return lows, highs, 0
