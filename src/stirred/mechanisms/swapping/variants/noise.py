"""Variants of the PSA with noise before or after the swap: a noisy swap key, and noisy tables of the swapped file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key, discrete_gaussian
from stirred.engine import Engine, Local
from stirred.errors import InputError, PrivacyError
from stirred.languages import Phrase
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import MAX_OUTPUTS, Law
from stirred.mechanisms.swapping.budget.by_size import Rate, parse_rate
from stirred.mechanisms.swapping.budget.claim import StratumTable
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.config import NoisyKeyConfig, NoisyTablesConfig
from stirred.mechanisms.swapping.draw.moves import draw_moves
from stirred.mechanisms.swapping.draw.selection import toss_coins
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM
from stirred.mechanisms.swapping.draw.strata import form_strata as coded
from stirred.mechanisms.swapping.mechanism import PermutationSwapping
from stirred.mechanisms.swapping.numbers.exact_law import PermutationLaw, combine_strata, enumerate_selection
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import apply_moves
from stirred.mechanisms.swapping.pipeline.release import count_strata
from stirred.mechanisms.swapping.records.columns import Column, encode_table
from stirred.mechanisms.swapping.variants.budgets import variant_bounds
from stirred.spec import Bound, Budget, Evidence, NormalizedRenyi, SizeLaw, Specification
from stirred.spec.numbers.numerals import parse_fraction

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, init=False)
class NoisyKey(PermutationSwapping):
    """Law 6a: redraw the match variable ``noisy`` among its levels with probability ``change`` before matching.

    The noisy values decide who may swap with whom and are not published. No finite bound is known.
    """

    name: ClassVar[str] = "swapping-noisy-key"
    Config: ClassVar[type[MechanismConfig]] = NoisyKeyConfig
    closed_form: ClassVar[bool] = False

    noisy: str
    change: Fraction

    def __init__(self, *, noisy: str, change: Rate, **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)
        if noisy not in self.match:
            raise InputError(
                f"{noisy} is not a match variable",
                why="noise is added to a match variable",
                fix=f'match=[…, "{noisy}"]',
            )
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "change", parse_rate(change))

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, and the kernel of the noise."""
        return {**PermutationSwapping.parameters(self), "noisy": self.noisy, "change": str(self.change)}

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame in strata without the noisy variable; only these stay invariant, each in one part."""
        pooled = tuple(name for name in frame.roles.match if name != self.noisy)
        part = frame.strata.codes != NO_STRATUM
        pools = coded(frame.of(pooled), rows=frame.rows, taking_part=None if part.all() else part)
        return replace(
            frame,
            roles=replace(frame.roles, match=pooled, hold=(self.noisy, *frame.roles.hold)),
            strata=pools,
        )

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the noisy variable, because a value is redrawn among all levels that occur anywhere."""
        return (self.noisy,)

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 6a: an unknown one, beside the largest loss found by enumeration."""
        return variant_bounds("6a", strata, self.rate, change=self.change)

    def refuse_degenerate(self) -> None:
        """Raise an error also if the key is never noisy: then more is invariant than is stated."""
        PermutationSwapping.refuse_degenerate(self)
        if not self.change:
            raise PrivacyError(
                "a noisy key that never changes protects nothing",
                why="its strata are exact, which the stated invariants do not say (ε = ∞)",
                fix="give change above 0, or use PermutationSwapping",
            )

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of Algorithm 1 for every combination of noisy keys, by its probability."""
        column = frame.columns[self.noisy]
        levels = np.unique(column.codes).tolist()
        others = [name for name in self.match if name != self.noisy]
        if len(levels) ** frame.rows > MAX_OUTPUTS:
            return None
        rest = list(zip(*(frame.columns[name].codes.tolist() for name in others), strict=True))
        out = (frame.strata.codes == NO_STRATUM).tolist()
        found: dict[tuple[int, ...], Fraction] = {}
        for keys in product(levels, repeat=frame.rows):
            chance = prod(
                (1 - self.change) * (key == own) + self.change / len(levels)
                for key, own in zip(keys, column.codes.tolist(), strict=True)
            )
            marks = [(key, rest[i] if rest else ()) for i, key in enumerate(keys)]
            codes = [
                int(NO_STRATUM) if out[i] else sorted({*marks}).index(mark) for i, mark in enumerate(marks)
            ]
            inside = combine_strata(
                codes, lambda group: enumerate_selection((self.rate,) * len(group)), rows=frame.rows
            )
            for g, more in (inside or {}).items():
                found[g] = found.get(g, Fraction(0)) + chance * more
        return found or None

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw the noisy key of every record, then swap within its strata."""
        column = frame.columns[self.noisy]
        levels = dict(frame.levels).get(self.noisy, np.unique(column.codes))
        redrawn = toss_coins(run.bind("noisy"), "swap/near", frame.ids, self.change)
        drawn = levels[_draw_below(run, frame.ids, levels.size)]
        noisy = replace(column, codes=np.where(redrawn, drawn, column.codes))
        part = frame.strata.codes != NO_STRATUM
        match = [noisy if name == self.noisy else frame.columns[name] for name in self.match]
        strata = coded(match, rows=frame.rows, taking_part=None if part.all() else part)
        moves = draw_moves(
            run, ids=frame.ids, strata=strata.codes, rate=self.rate, sizes=strata.sizes, engine=engine
        )
        return apply_moves(frame, moves, engine)


def _draw_below(run: Key, ids: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """Draw a number below the bound for each identifier, exactly uniform, by rejection."""
    result = np.zeros(ids.size, np.int64)
    pending = np.arange(ids.size)
    limit = 2**64 - 2**64 % max(bound, 1)  # no levels, so there are no records
    counter = 0
    while pending.size:
        words = run.blocks("swap/level", ids[pending], counter=counter)[:, 0]
        result[pending] = (words % np.uint64(bound)).astype(np.int64)
        pending = pending[words > np.uint64(limit - 1)]
        counter += 1
    return result


@dataclass(frozen=True, slots=True, init=False)
class NoisyTables(PermutationSwapping):
    r"""Law 6b: tables of the swapped file, each cell with discrete Gaussian noise of variance about $\sigma^2$.

    The swap's guarantee holds by post-processing. Every combination of levels gets noise, the empty ones too. The noise
    has its own guarantee, in another flavor: ``noise_specification``.
    """

    name: ClassVar[str] = "swapping-noisy-tables"
    Config: ClassVar[type[MechanismConfig]] = NoisyTablesConfig
    closed_form: ClassVar[bool] = False

    sigma_squared: Fraction

    def __init__(self, *, sigma_squared: Rate, tables: Sequence[Sequence[str]], **settings: Any) -> None:
        if settings.pop("microdata", False):
            raise InputError(
                "noisy tables release no records",
                why="the swapped records would show the counts without their noise",
                fix="leave out microdata=True, or use PermutationSwapping",
            )
        PermutationSwapping.__init__(self, tables=tables, microdata=False, **settings)
        variance = parse_fraction(sigma_squared, "variance of the noise")
        if variance <= 0:
            raise InputError(
                "the variance of the noise must be positive",
                why="a variance of 0 would add no noise",
                fix='sigma_squared="4"',
            )
        object.__setattr__(self, "sigma_squared", variance)

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, and σ²."""
        return {**PermutationSwapping.parameters(self), "sigma_squared": str(self.sigma_squared)}

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 6b, which are the swap's by post-processing."""
        return variant_bounds("6b", strata, self.rate)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the size law of the swap itself."""
        del frame
        return SizeLaw("by-size", self.rate)

    def build_specification(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """Build the swap's specification, with a note on what the noise alone promises."""
        swap = PermutationSwapping.build_specification(self, frame, shapes, census)
        own = self._noise(swap, frame)
        told = Phrase("swap.note.noise_alone", rho_squared=own.rho_squared.exact, source=own.evidence.source)
        return replace(swap, notes=(*swap.notes, told))

    def noise_specification(self, census: "Census") -> Specification:
        r"""What the noise promises of the census, through the swap: $\rho^2 = T/\sigma^2$ with the swap's invariants.

        T counts the tables with a variable that moves and one that is held; the others are invariants.
        """
        strata = count_strata(self, census, Local())
        return self._noise(
            PermutationSwapping.build_specification(self, strata.frame, strata.shapes, census), strata.frame
        )

    def _noise(self, swap: Specification, frame: Frame) -> Specification:
        moving, hold = {*frame.roles.moving_variables}, {*frame.roles.hold}
        tables = sum(1 for by in self.tables if moving & {*by} and hold & {*by})
        return replace(
            swap,
            output_premetric=NormalizedRenyi(),
            budget=Budget.sqrt(tables / self.sigma_squared) if tables else Budget.zero(),
            evidence=Evidence(status="proved", source=Phrase("swap.source.coupled")),
            bounds=(),
            varies=None,
        )

    def exact_law(self, census: "Census") -> Law | None:
        """Return None, because the discrete Gaussian has no probabilities in fractions."""
        del census
        return None

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return every combination of levels with its own noise, the empty cells too."""
        names = [name for name in cells.column_names if name != "count"]
        columns = list(encode_table(cells, names).values())
        levels = [np.unique(column.codes) for column in columns]
        shape = tuple(level.size for level in levels)
        places = tuple(
            np.searchsorted(level, column.codes) for level, column in zip(levels, columns, strict=True)
        )
        counts = np.zeros(int(np.prod(shape)), np.int64)
        counts[np.ravel_multi_index(places, shape)] = cells["count"].to_numpy()
        noise = discrete_gaussian(run.stream("noise", *names), self.sigma_squared, counts.size)
        grid = np.unravel_index(np.arange(counts.size), shape)
        found = {
            column.name: replace(column, codes=level[index]).arrow()
            for column, level, index in zip(columns, levels, grid, strict=True)
        }
        return pa.table({**found, "count": pa.array(counts + noise)})
