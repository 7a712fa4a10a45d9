"""Mechanisms that are not Stirred's: counts with noise of OpenDP, right and wrong in many ways, for audits to tell apart.

OpenDP draws from the operating system, so a wrapper keeps what it drew for a key and a census: a retry must not draw again.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
from opendp.mod import enable_features
from pydantic import Field

from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.release import Release
from stirred.spec import Budget, Hamming, Multiplicative, Multiverse, NormalizedRenyi, Specification

enable_features("contrib")
LEVELS = list("abcdef")
DRAWN: dict[object, list[int]] = {}


def many() -> Census:
    """120 households, 20 of each tenure."""
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"variables": {"county": LEVELS, "tenure": LEVELS}}},
    }
    return Census.of(schema, {"household": {"county": LEVELS * 20, "tenure": LEVELS * 20}})


class PeerConfig(MechanismConfig):
    """Counts with noise of OpenDP."""

    law: Literal["gaussian", "geometric"] = Field(default="gaussian", description="the law of the noise")
    scale: int = Field(default=4, description="the standard deviation, or the scale")
    fault: str = Field(default="", description="what is wrong")
    states_law: bool = Field(default=True, description="whether the law is stated")


class PeerCounts(Mechanism):
    """Households by tenure with the discrete noise of OpenDP; ``fault`` names what is wrong, "" nothing.

    A changed household moves two counts by 1: ρ² = 2 / 2σ² with a Gaussian of variance σ², ε = 2 / scale with a Laplace law.
    """

    name: ClassVar[str] = "peer-counts"
    config: PeerConfig

    def parameters(self) -> dict[str, object]:
        return {"law": self.config.law, "scale": self.config.scale}

    def specification(self, census: Census, **_: Any) -> Specification:
        loss = (
            Fraction(1, self.config.scale**2)
            if self.config.law == "gaussian"
            else Fraction(2, self.config.scale)
        )
        if self.config.fault == "claims a tenth":
            loss /= 10
        gaussian = self.config.law == "gaussian"
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming("household"),
            output_premetric=NormalizedRenyi() if gaussian else Multiplicative(),
            budget=Budget.sqrt(loss) if gaussian else Budget.of(str(loss)),
        )

    def release(self, census: Census, *, key: Key, **_: Any) -> Release:
        found = dict(zip(*census.counts("household", ["tenure"]).to_pydict().values(), strict=True))
        true = [
            int(found.get(level, 0)) * (3 if self.config.fault == "counts thrice" else 1) for level in LEVELS
        ]
        shown = self._noisy(true, key)
        order = list(range(len(LEVELS)))
        if self.config.fault == "order of the true counts":
            order.sort(key=lambda i: (-true[i], i))
        tables = {
            "by-tenure": pa.table({
                "tenure": [LEVELS[i] for i in order],
                "count": pa.array([shown[i] for i in order], pa.int64()),
            })
        }  # fmt: skip
        if self.config.fault == "one more table, exact":
            tables["more"] = pa.table({"tenure": LEVELS, "share": [count / sum(true) for count in true]})
        notes = (f"largest: {LEVELS[int(np.argmax(true))]}",) if self.config.fault == "a note" else ()
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=self.specification(census),
            tables=tables,
            notes=notes,
            private=key.private,
            schema=census.schema,
        )

    def _noisy(self, true: list[int], key: Key) -> list[int]:
        parts = {"half the scale": 2, "a quarter of the scale": 4}
        scale = self.config.scale / parts.get(self.config.fault, 1)
        if self.config.fault == "ignores the key":
            own = np.random.default_rng(len(true)).normal(0, self.config.scale, len(true)).round()
            return [count + int(noise) for count, noise in zip(true, own, strict=True)]
        if self.config.fault == "draws again":
            return self._drawn(true, scale)
        at = (self, key.digest(repr(true).encode()))
        if at not in DRAWN:
            DRAWN[at] = self._drawn(true, scale)
        return DRAWN[at]

    def _drawn(self, true: list[int], scale: float) -> list[int]:
        one = self.config.fault == "one noise for all"
        space = dp.vector_domain(dp.atom_domain(T="i64"))
        if self.config.law == "gaussian":
            measure = dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=float(scale))
        else:
            measure = dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=float(scale))
        if one:
            noise = int(measure([0])[0])
            return [count + noise for count in true]
        return [int(value) for value in measure(true)]

    def measured_noise(self, census: Census, *, key: Key, **_: Any) -> Sequence[MeasuredNoise]:
        """The law that is claimed, whatever is drawn; the noise that it reports follows that law."""
        del census, key
        if not self.config.states_law:
            return ()
        gaussian = self.config.law == "gaussian"
        return [
            MeasuredNoise(
                name="tenure",
                kind=self.config.law,
                parameter=Fraction(self.config.scale**2 if gaussian else self.config.scale),
                loss=Fraction(1, self.config.scale**2) if gaussian else Fraction(2, self.config.scale),
                table="by-tenure",
            )
        ]
