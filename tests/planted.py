"""Mechanisms with a planted bug each, which an audit must find, and the geometric mechanism that some are made of."""

from dataclasses import replace
from fractions import Fraction
from itertools import count, permutations, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field

from stirred import ExactMargins
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.frames import arrow_of, collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import Exact, MechanismConfig
from stirred.mechanisms.contents import Law, clamped_geometric, make_content
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.exact_law import PermutationLaw, combine_strata
from stirred.mechanisms.swap.frame import Frame, apply_moves
from stirred.mechanisms.swap.moves import Moves
from stirred.mechanisms.swap.records import Column
from stirred.spec import Budget, Hamming, Multiplicative, Multiverse, Specification
from stirred.spec.laws import count_derangements

LETTERS = "abcdef"


def square(n: int) -> Census:
    """n households, no two of which have the same place or the same tenure."""
    levels = list(LETTERS)
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"variables": {"county": levels, "tenure": levels}}},
    }
    return Census.of(schema, {"household": {"county": levels[:n], "tenure": levels[:n]}})


def _moves(frame: Frame, run: Key, rate: Fraction, *, redraw: bool, cyclic: bool) -> Moves:
    """A swap drawn stratum by stratum with another source of randomness."""
    rng = np.random.default_rng(int.from_bytes(run.digest(b"planted")[:8], "little"))
    order = np.argsort(frame.strata.codes, kind="stable")
    receivers, givers = [], []
    for rows in np.split(order, np.flatnonzero(np.diff(frame.strata.codes[order])) + 1):
        chosen = rows[rng.random(len(rows)) < float(rate)]
        while redraw and len(chosen) == 1 and len(rows) > 1:
            chosen = rows[rng.random(len(rows)) < float(rate)]
        if len(chosen) < 2:
            continue
        other = rng.permutation(chosen)
        if cyclic:
            chosen, other = other, np.roll(other, 1)
        while (chosen == other).any():
            other = rng.permutation(chosen)
        receivers.append(chosen)
        givers.append(other)
    empty = np.empty(0, np.uint32)
    return Moves(
        receivers=np.concatenate([empty, *receivers]).astype(np.uint32),
        givers=np.concatenate([empty, *givers]).astype(np.uint32),
    )


class CyclicShuffle(PermutationSwapping):
    """Turns the selected records in one cycle; its stated law is still that of the uniform derangement."""

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        return apply_moves(frame, _moves(frame, run, self.rate, redraw=True, cyclic=True), engine)


class CyclicLaw(CyclicShuffle):
    """The same with the law that it has."""

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        def inside(group: list[int]) -> PermutationLaw:
            n, p = len(group), self.rate
            redraw = n * p * (1 - p) ** (n - 1)
            found = {}
            for g in permutations(range(n)):
                cycles = [len(cycle) for cycle in _cycles(g) if len(cycle) > 1]
                k = sum(cycles)
                ways = 1
                for step in range(1, k):
                    ways *= step
                if len(cycles) <= 1:
                    found[g] = p**k * (1 - p) ** (n - k) / ((1 - redraw) * ways)
            return found

        return combine_strata(frame.strata.codes.tolist(), inside, rows=frame.rows)


def _cycles(g: tuple[int, ...]) -> list[list[int]]:
    left, found = set(range(len(g))), []
    while left:
        cycle = [left.pop()]
        while g[cycle[-1]] != cycle[0]:
            cycle.append(g[cycle[-1]])
            left.discard(cycle[-1])
        found.append(cycle)
    return found


class NoRedraw(PermutationSwapping):
    """Drops a lone selection instead of drawing it again."""

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        return apply_moves(frame, _moves(frame, run, self.rate, redraw=False, cyclic=False), engine)


class NoRedrawLaw(NoRedraw):
    """The same with the law that it has: its loss is no larger."""

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        def inside(group: list[int]) -> PermutationLaw:
            n, p = len(group), self.rate
            found = {}
            for g in permutations(range(n)):
                k = sum(i != j for i, j in enumerate(g))
                found[g] = p**k * (1 - p) ** (n - k) / count_derangements(k) if k != 1 else Fraction(0)
            found[tuple(range(n))] += n * p * (1 - p) ** (n - 1)
            return found

        return combine_strata(frame.strata.codes.tolist(), inside, rows=frame.rows)


class LeakedPlace(PermutationSwapping):
    """Publishes the true place of each record in one more column."""

    def release(self, census: Census, **settings: Any) -> Release:
        made = PermutationSwapping.release(self, census, **settings)
        held = list(self.roles(census).held_variables)
        home = collect_frame(census.scan("household", [*held, "county"])).rename({"county": "home"})
        frame = made.to_polars("household")
        as_text = [pl.col(name).cast(pl.String) for name in held]
        told = frame.with_columns(as_text).join(home.with_columns(as_text), on=held, how="left")
        return replace(made, microdata={"household": arrow_of(told)})


class NarrowNoise(ExactMargins):
    """Draws noise with half of the stated variance."""

    def release(self, census: Census, **settings: Any) -> Release:
        narrower = ExactMargins(
            rows=self.rows, columns=self.columns, rho_squared=2 * Fraction(str(self.rho_squared))
        )
        return narrower.release(census, **settings)


class CutNoise(ExactMargins):
    """Draws again whatever lies beyond one and a half standard deviations."""

    def release(self, census: Census, *, key: Key, **settings: Any) -> Release:
        truth = census.counts("household", [self.rows, self.columns])["count"].to_pylist()
        reach = 1.5 * float(self.sigma_squared) ** 0.5
        for attempt in count():
            made = ExactMargins.release(self, census, key=key.bind("attempt", attempt), **settings)
            shown_counts = made.tables[f"{self.rows}-by-{self.columns}"]["count"].to_pylist()
            if all(abs(a - b) <= reach for a, b in zip(shown_counts, truth, strict=True)):
                return made
        raise AssertionError


RETRIES = count()


class FreshOnRetry(ExactMargins):
    """Draws new noise whenever a run is repeated."""

    def release(self, census: Census, *, key: Key, **settings: Any) -> Release:
        return ExactMargins.release(self, census, key=key.bind("retry", next(RETRIES)), **settings)


class GeometricConfig(MechanismConfig):
    """Counts with geometric noise."""

    ratio: Exact = Field(default="1/2", description="the ratio of the law")


class GeometricCounts(Mechanism):
    """Counts of households by county with two-sided geometric noise, moved into 0 … n: pure DP in fractions."""

    name: ClassVar[str] = "geometric-counts"
    config: GeometricConfig
    counties: ClassVar[tuple[str, ...]] = ("a", "b")

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.config.ratio)

    def specification(self, census: Census, *, engine: Engine | None = None) -> Specification:
        del engine
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming("household"),
            output_premetric=Multiplicative(),
            budget=Budget.log(1 / self.ratio) * 2,  # a changed record moves two counts
        )

    def exact_law(self, census: Census) -> Law | None:
        counts, n = self._counts(census)
        each = [self.noisy(number, n) for number in counts]
        found: dict[Any, Fraction] = {}
        for values in product(*each):
            rows = [(str(value), county) for county, value in zip(self.counties, values, strict=True)]
            chance = Fraction(1)
            for law, value in zip(each, values, strict=True):
                chance *= law[value]
            found[make_content({"by-county": rows})] = chance
        return found

    def noisy(self, number: int, n: int) -> dict[int, Fraction]:
        """The law of one count."""
        return clamped_geometric(number, self.ratio, 0, n)

    def drawn(self, number: int, n: int) -> dict[int, Fraction]:
        """The law that the code draws from."""
        return self.noisy(number, n)

    def release(
        self,
        census: Census,
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        del engine, out, state, progress
        counts, n = self._counts(census)
        rng = np.random.default_rng(int.from_bytes(key.digest(repr(counts).encode())[:8], "little"))
        values = []
        for number in counts:
            law = self.drawn(number, n)
            values.append(int(rng.choice(list(law), p=[float(chance) for chance in law.values()])))
        table = pa.table({"county": list(self.counties), "count": values})
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=self.specification(census),
            tables={"by-county": table},
            schema=census.schema,
        )

    def _counts(self, census: Census) -> tuple[list[int], int]:
        found = dict(zip(*census.counts("household", ["county"]).to_pydict().values(), strict=True))
        return [int(found.get(county, 0)) for county in self.counties], census.count("household")


def _cut(law: dict[int, Fraction], number: int) -> dict[int, Fraction]:
    kept = {value: chance for value, chance in law.items() if abs(value - number) <= 1}
    return {value: kept.get(value, Fraction(0)) / sum(kept.values()) for value in law}


class CutTail(GeometricCounts):
    """Draws noise that never exceeds 1, and states the whole law."""

    def drawn(self, number: int, n: int) -> dict[int, Fraction]:
        return _cut(self.noisy(number, n), number)


class CutTailLaw(GeometricCounts):
    """The same with the law that it has."""

    def noisy(self, number: int, n: int) -> dict[int, Fraction]:
        return _cut(clamped_geometric(number, self.ratio, 0, n), number)
