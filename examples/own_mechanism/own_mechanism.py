"""A mechanism, an invariant and an output premetric of one's own, outside the package: with pyproject.toml, a package.

The mechanism publishes noisy counts of households by county, and only for counties that have households: which ones those
are is released exactly, so it is an invariant. Its loss is measured by the root of the Rényi divergence of one order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import Field

from stirred.chance import Key, discrete_gaussian
from stirred.mechanisms.base import Knob, Mechanism
from stirred.mechanisms.config import Exact, MechanismConfig
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.release import Check, Release
from stirred.spec import (
    Budget,
    Evidence,
    Hamming,
    Invariant,
    Margin,
    Multiverse,
    OutputPremetric,
    Specification,
    SupportsCounts,
)
from stirred.spec.files import register


@dataclass(frozen=True, slots=True)
class RootRenyi(OutputPremetric):
    """The root of the Rényi divergence of one order α; squares of budgets add, as divergences do (Mironov 2017)."""

    order: Fraction = Fraction(2)

    def compose(self, budgets: Sequence[Budget]) -> Budget:
        return Budget.sqrt(Budget.total(budget.square() for budget in budgets))

    def __str__(self) -> str:
        return f"√D_α(α = {self.order})"


@dataclass(frozen=True, slots=True)
class Inhabited(Invariant):
    """Which areas have any household at all."""

    area: str = "county"

    def words(self) -> str:
        return f"which {self.area} has households"

    def needs(self) -> tuple[Margin, ...]:
        return (Margin("household", (self.area,)),)

    def tabulate(self, counts: SupportsCounts) -> pa.Table:
        return counts.counts("household", [self.area]).select([self.area])


class NoisyCountsConfig(MechanismConfig):
    """Noisy counts of households by area: discrete Gaussian noise on every area that has households."""

    example_table = ("household", ("county",))

    area: str = Field(default="county", description="the areas that are counted", examples=["county"])
    sigma_squared: Exact = Field(
        default="4", description="the variance of the noise, an exact text above 0", examples=["4"]
    )
    order: Exact = Field(default="2", description="the order α of the Rényi divergence", examples=["2"])


class NoisyCounts(Mechanism):
    r"""Counts by area plus discrete Gaussian noise.

    k changed households move the counts by at most $k\sqrt 2$ in Euclidean length, and discrete Gaussians shifted by Δ
    are at most $\alpha\Delta^2/2\sigma^2$ apart (Canonne, Kamath and Steinke 2020, Proposition 5): the root is at most
    $k\sqrt{\alpha/\sigma^2}$, linear in k as Definition 1 asks.
    """

    name: ClassVar[str] = "noisy-counts"
    config: NoisyCountsConfig  # the keywords of the constructor, the keys of a plan, the flags of the command

    @property
    def variance(self) -> Fraction:
        """Return the variance of the noise; a Config keeps exact numbers as texts."""
        return Fraction(self.config.sigma_squared)

    def specification(self, census: Any, *, engine: Any = None) -> Specification:  # noqa: ARG002
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.of(Inhabited(self.config.area)),
            input_premetric=Hamming("household"),
            output_premetric=RootRenyi(Fraction(self.config.order)),
            budget=Budget.sqrt(Fraction(self.config.order) / self.variance),
            released=self.views(census),
            evidence=Evidence(status="proved", source="the docstring of NoisyCounts"),
        )

    def release(self, census: Any, *, key: Key, engine: Any = None, **_: Any) -> Release:
        census = engine.census(census) if engine else census  # counted where it lies, on a cluster too
        table = census.counts("household", [self.config.area])
        # bound to the data too: the same noise on two censuses would cancel in their difference
        data = key.digest(repr(table.to_pydict()).encode())
        stream = key.bind(self.name, *map(str, self.parameters().values()), data).stream("counts")
        noise = discrete_gaussian(stream, self.variance, table.num_rows)
        noisy = pa.array(table["count"].to_numpy() + noise, pa.int64())
        published = table.set_column(table.num_columns - 1, "count", noisy)
        kept = published.select([self.config.area]).equals(Inhabited(self.config.area).tabulate(census))
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=self.specification(census),
            tables={f"households_by_{self.config.area}": published},
            checks=(Check(invariant=Inhabited(self.config.area).words(), kept=kept, numbers=table.num_rows),),
            private=key.private,
            schema=census.schema,
            folder=census.folder,
        )

    def views(self, census: Any) -> tuple[Margin, ...]:  # noqa: ARG002
        """Return the one table that is counted: households by area."""
        return (Margin("household", (self.config.area,)),)

    def table(self, release: Release, by: Sequence[str], **more: Any) -> pa.Table:
        """The counts, each with the standard error of its noise and a 95 % interval."""
        counts = Mechanism.table(self, release, by, **more)
        error = float(self.variance) ** 0.5
        count = counts["count"].to_numpy().astype(float)
        spread = {"estimate": count, "standard_error": 0 * count + error}
        limits = {"low": count - 1.96 * error, "high": count + 1.96 * error}
        for name, values in (spread | limits).items():
            counts = counts.append_column(name, pa.array(values))
        return counts

    def exhibits(self, release: Release | None, *, engine: Any = None) -> Sequence[Exhibit]:  # noqa: ARG002
        finding = f"Every count of households by {self.config.area} has noise of variance {self.variance}."
        return (Exhibit(title="Where the noise fell", finding=finding),)

    def knobs(self) -> Sequence[Knob]:
        return (
            Knob(
                name="sigma_squared",
                effect="a larger variance has a smaller budget and a larger error",
                settings=tuple(Fraction(2) ** power for power in range(-4, 13)),
                turned=lambda variance: self.replace(sigma_squared=variance),
            ),
        )


register("root-renyi", RootRenyi)
register("inhabited", Inhabited)
