"""Variants of the PSA that change which records may move: rates that vary by record, and imputed records that stay.

The laws and their proofs are in proof.md; budgets come from budgets.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import InputError, did_you_mean, require_kind
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.swapping import statement
from stirred.mechanisms.swapping.arguments import refuse_text
from stirred.mechanisms.swapping.budget.by_size import Rate
from stirred.mechanisms.swapping.budget.claim import StratumTable
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.config import ImputedStayConfig, VaryingRatesConfig
from stirred.mechanisms.swapping.draw.moves import draw_moves
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM, StratumCodes, count_sizes
from stirred.mechanisms.swapping.mechanism import PermutationSwapping
from stirred.mechanisms.swapping.numbers.exact_law import PermutationLaw, enumerate_moves
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import apply_moves
from stirred.mechanisms.swapping.records.columns import Column, find_level_codes
from stirred.mechanisms.swapping.records.packing import Digits, rank_columns
from stirred.mechanisms.swapping.records.participation import IMPUTED, Stay
from stirred.mechanisms.swapping.variants.budgets import read_inner_rate, read_rare_count, variant_bounds
from stirred.spec import Bound, SizeLaw, Specification

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, init=False)
class VaryingRates(PermutationSwapping):
    """Law 1: the swap rate of a record depends on its variables (1a held, 1b also swap) or on its rarity (1c).

    ``rates`` gives a rate for levels of the variable ``by``; records of other levels have the rate ``rate``. With
    ``rarity`` a record whose combination of these variables occurs at most ``counts_up_to`` times has ``rare``.

    >>> VaryingRates(swap=["block"], rate="1/20", by="tenure", rates={"rent": "1/10"}).law(("tenure",))
    '1a'
    """

    name: ClassVar[str] = "swapping-varying-rates"
    Config: ClassVar[type[MechanismConfig]] = VaryingRatesConfig
    closed_form: ClassVar[bool] = False

    by: str
    rates: tuple[tuple[str, Fraction], ...]
    rarity: tuple[str, ...]
    rare: Fraction | None
    counts_up_to: int

    def __init__(
        self,
        *,
        by: str = "",
        rates: Mapping[str, Rate] | None = None,
        rarity: Sequence[str] = (),
        rare: Rate | None = None,
        counts_up_to: int = 1,
        **settings: Any,
    ) -> None:
        PermutationSwapping.__init__(self, **settings)
        refuse_text("rarity", rarity)
        require_kind("by", by, str, wanted="the name of a variable", fix='by="tenure"')
        if rates is not None:
            require_kind("rates", rates, Mapping, wanted="rates by level", fix='rates={"rented": "1/10"}')
        if bool(by) == bool(rarity) or bool(by) != bool(rates) or bool(rarity) != (rare is not None):
            raise InputError(
                "varying swap rates need one source",
                why="rates come either from a variable or from rarity",
                fix='by="tenure", rates={"rent": "1/10"}; or rarity=["race", "block"], rare="1/2"',
            )
        table = tuple(sorted((str(level), read_inner_rate(rate)) for level, rate in (rates or {}).items()))
        if len({level for level, _ in table}) < len(table):
            raise InputError(
                "a level has two swap rates",
                why="each level of the variable has one rate",
                fix="name each level once",
            )
        values = {
            "by": by,
            "rates": table,
            "rarity": tuple(rarity),
            "rare": None if rare is None else read_inner_rate(rare),
            "counts_up_to": read_rare_count(counts_up_to),
        }
        for label, value in values.items():
            object.__setattr__(self, label, value)

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, and the source of the rates."""
        return {
            **PermutationSwapping.parameters(self),
            "by": self.by,
            "rates": {level: str(rate) for level, rate in self.rates},
            "rarity": list(self.rarity),
            "rare": None if self.rare is None else str(self.rare),
            "counts_up_to": self.counts_up_to,
        }

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that have a rate of their own."""
        return {self.by: [level for level, _ in self.rates]} if self.by else {}

    def all_rates(self) -> tuple[Fraction, ...]:
        """Return the rate of each class of records, the common one first."""
        special = [rate for _, rate in self.rates]
        return (self.rate, *special) if self.rare is None else (self.rate, *special, self.rare)

    def highest_rate(self) -> float:
        """Return the largest of all rates."""
        return float(max(self.all_rates()))

    def lowest_rate(self) -> Fraction:
        """Return the smallest of all rates: how many records have which one may be no invariant."""
        return min(self.all_rates())

    def law(self, held: Sequence[str]) -> str:
        """Return the name of the law, 1a if the rate depends only on held variables."""
        if self.rarity:
            return "1c"
        return "1a" if self.by in held else "1b"

    def bounds(self, strata: StratumTable, *, held: Sequence[str] = ()) -> tuple[Bound, ...]:
        """Return the bounds of law 1; a variable that is not in ``held`` is assumed to move."""
        rates = self.all_rates()
        more = {"counts_up_to": self.counts_up_to} if self.rarity else {}
        return variant_bounds(self.law(held), strata, min(rates), highest=max(rates), **more)

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame, or raise an error if a rate depends on a variable that is not released."""
        for name in (self.by, *self.rarity):
            if name and name not in frame.roles.released_variables:
                raise InputError(
                    f"no rate can depend on {name}",
                    why="the law is stated for rates that are functions of released variables",
                    fix=did_you_mean(name, frame.roles.released_variables),
                )
        return frame

    def build_specification(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """Build the specification at the smallest and the largest rate."""
        # levels that move with a swap variable are not held, although they are not named
        return statement.state_specification(
            frame,
            shapes,
            census,
            lambda strata: self.bounds(strata, held=frame.roles.held_variables),
            law=self.size_law(frame),
            depends=self.describe_dependence(),
            released=self.views(census),
        )

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return law 1a at the smallest and largest rate, or None for 1b and 1c, which depend on more than b."""
        rates = self.all_rates()
        if self.law(frame.roles.held_variables) != "1a":
            return None
        return SizeLaw("by-size", min(rates), max(rates))

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the match variables; with rarity, those that it names, because it is counted everywhere."""
        match = frame.roles.match
        return tuple(name for name in match if name in self.rarity) if self.rarity else match

    def classes(self, frame: Frame) -> NDArray[np.uint16]:
        """Return the class of every record, from the input file."""
        found = np.zeros(frame.rows, np.uint16)
        if self.by:
            column = frame.columns[self.by]
            for i, (level, _) in enumerate(self.rates):
                found[np.isin(column.codes, find_level_codes(column, [level]))] = i + 1
            return found
        digits = Digits.of([frame.columns[name] for name in self.rarity])
        numbers = digits.numbers() if digits.fits else rank_columns(digits.columns).codes
        _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        found[counts[places] <= self.counts_up_to] = 1
        return found

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves, each record with the rate of its class."""
        rates = self.all_rates()
        return enumerate_moves(frame, [rates[code] for code in self.classes(frame).tolist()])

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return what the swap returns, with rarity counted within each copy."""
        made = PermutationSwapping.replicate(self, census, copies)
        if made is None or not self.rarity:
            return made
        mechanism, many, name = made
        rare = {**mechanism.parameters(), "rarity": [*self.rarity, name]}
        return type(self)(**rare), many, name  # type: ignore[arg-type]

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once with a rate for each class and return the columns."""
        moves = draw_moves(
            run,
            ids=frame.ids,
            strata=frame.strata.codes,
            rate=self.all_rates(),
            classes=self.classes(frame),
            sizes=frame.strata.sizes,
            engine=engine,
        )
        return apply_moves(frame, moves, engine)

    def refuse_degenerate(self) -> None:
        """Raise an error unless every rate lies strictly between 0 and 1."""
        for rate in self.all_rates():
            if rate in (0, 1):
                replace_rate = PermutationSwapping(swap=self.swap, rate=rate)
                replace_rate.refuse_degenerate()


@dataclass(frozen=True, slots=True, init=False)
class ImputedStay(PermutationSwapping):
    """Law 2: never swap imputed records; data sets that differ in one are infinitely far apart.

    >>> ImputedStay(swap=["block"], rate="1/20", imputed="allocated", levels=["1"]).parameters()["imputed"]
    'allocated'
    """

    name: ClassVar[str] = "swapping-imputed-stay"
    Config: ClassVar[type[MechanismConfig]] = ImputedStayConfig
    closed_form: ClassVar[bool] = False

    imputed: str
    levels: tuple[str, ...]

    def __init__(self, *, imputed: str, levels: Sequence[str], **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)
        refuse_text("levels", levels)
        if not levels:
            raise InputError(
                "no level marks imputed records",
                why="levels is empty",
                fix='imputed="allocated", levels=["1"]',
            )
        object.__setattr__(self, "imputed", imputed)
        object.__setattr__(self, "levels", tuple(str(level) for level in levels))

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, and the mark of imputed records."""
        return {**PermutationSwapping.parameters(self), "imputed": self.imputed, "levels": list(self.levels)}

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that mark imputed records."""
        return {self.imputed: self.levels}

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame with imputed records left out of the strata."""
        if self.imputed not in frame.columns or self.imputed in self.swap:
            raise InputError(
                f"{self.imputed} is not a held variable that is released",
                why="the mark of imputed records is an invariant and must be public",
                fix=did_you_mean(self.imputed, frame.roles.held_variables),
            )
        column = frame.columns[self.imputed]
        marked = np.isin(column.codes, find_level_codes(column, self.levels)) & (
            frame.strata.codes != NO_STRATUM
        )
        codes = frame.strata.codes.copy()
        codes[marked] = NO_STRATUM
        sizes = count_sizes(codes)
        whole = np.zeros(frame.strata.sizes.size, np.uint32)
        whole[: sizes.size] = sizes
        stay = Stay(
            column=self.imputed,
            levels=self.levels,
            codes=find_level_codes(column, self.levels),
            records=int(marked.sum()),
            why=IMPUTED,
        )
        return replace(frame, strata=StratumCodes(codes=codes, sizes=whole), stays=(*frame.stays, stay))

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the PSA's bounds over strata without imputed records."""
        return variant_bounds("2", strata, self.rate)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the PSA's size law, with b taken over strata without imputed records."""
        del frame
        return SizeLaw("by-size", self.rate)
