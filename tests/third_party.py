"""Mechanisms that are not Stirred's: counts with noise of OpenDP, right and wrong in many ways, for audits to tell apart.

OpenDP draws from the operating system, so a wrapper keeps what it drew for a key and a census: a retry must not draw again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
from opendp.mod import enable_features

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


@dataclass(frozen=True, kw_only=True)
class PeerCounts(Mechanism):
    """Households by tenure with the discrete noise of OpenDP; ``fault`` names what is wrong, "" nothing.

    A changed household moves two counts by 1: ρ² = 2 / 2σ² with a Gaussian of variance σ², ε = 2 / scale with a Laplace law.
    """

    name: ClassVar[str] = "peer-counts"
    Config: ClassVar[type[MechanismConfig]] = PeerConfig

    law: Literal["gaussian", "geometric"] = "gaussian"
    scale: int = 4  # the standard deviation, or the scale
    fault: str = ""
    states_law: bool = True

    def parameters(self) -> dict[str, object]:
        return {"law": self.law, "scale": self.scale}

    def specification(self, census: Census, **_: Any) -> Specification:
        loss = Fraction(1, self.scale**2) if self.law == "gaussian" else Fraction(2, self.scale)
        if self.fault == "claims a tenth":
            loss /= 10
        gaussian = self.law == "gaussian"
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming("household"),
            output_premetric=NormalizedRenyi() if gaussian else Multiplicative(),
            budget=Budget.sqrt(loss) if gaussian else Budget.of(str(loss)),
        )

    def release(self, census: Census, *, key: Key, **_: Any) -> Release:
        found = dict(zip(*census.counts("household", ["tenure"]).to_pydict().values(), strict=True))
        true = [int(found.get(level, 0)) * (3 if self.fault == "counts thrice" else 1) for level in LEVELS]
        shown = self._noisy(true, key)
        order = list(range(len(LEVELS)))
        if self.fault == "order of the true counts":
            order.sort(key=lambda i: (-true[i], i))
        tables = {
            "by-tenure": pa.table({
                "tenure": [LEVELS[i] for i in order],
                "count": pa.array([shown[i] for i in order], pa.int64()),
            })
        }  # fmt: skip
        if self.fault == "one more table, exact":
            tables["more"] = pa.table({"tenure": LEVELS, "share": [count / sum(true) for count in true]})
        notes = (f"largest: {LEVELS[int(np.argmax(true))]}",) if self.fault == "a note" else ()
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
        scale = self.scale / parts.get(self.fault, 1)
        if self.fault == "ignores the key":
            own = np.random.default_rng(len(true)).normal(0, self.scale, len(true)).round()
            return [count + int(noise) for count, noise in zip(true, own, strict=True)]
        if self.fault == "draws again":
            return self._drawn(true, scale)
        at = (self, key.digest(repr(true).encode()))
        if at not in DRAWN:
            DRAWN[at] = self._drawn(true, scale)
        return DRAWN[at]

    def _drawn(self, true: list[int], scale: float) -> list[int]:
        one = self.fault == "one noise for all"
        space = dp.vector_domain(dp.atom_domain(T="i64"))
        if self.law == "gaussian":
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
        if not self.states_law:
            return ()
        gaussian = self.law == "gaussian"
        return [
            MeasuredNoise(
                name="tenure",
                kind=self.law,
                parameter=Fraction(self.scale**2 if gaussian else self.scale),
                loss=Fraction(1, self.scale**2) if gaussian else Fraction(2, self.scale),
                table="by-tenure",
            )
        ]
