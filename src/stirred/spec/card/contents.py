"""What a card says: the sentence, the table, the worked example, the warning and the notes."""

from dataclasses import dataclass, field
from fractions import Fraction

from stirred.spec.card.odds import DELTA, Allowed, allowed
from stirred.spec.card.words import STATUS, counted, decimal, measure, small
from stirred.spec.invariants.brief import brief, joined
from stirred.spec.nearest.distance import spelled
from stirred.spec.outputs.divergences import NormalizedRenyi, rho_squared_to_epsilon
from stirred.spec.premetrics import SymmetricDifference
from stirred.spec.specification import Specification

NOT_TOUCHED = "exact wherever they are released:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalPart:
    """One part of a total: what it is, per which unit, at which budget, and how it was counted."""

    name: str
    unit: str
    budget: str
    constant: str  # its distance is at most this times the distance of the total
    counted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The same release under another assumption: what changes, and the budget and the odds it then has."""

    words: str
    budget: str
    odds: str


@dataclass(frozen=True, slots=True)
class CardContents:
    """A specification with a title and all it takes to read it; ``at_least`` marks a total that leaves releases out."""

    specification: Specification
    title: str = "Specification"
    subtitle: str = ""
    delta: Fraction = DELTA
    distance: int | None = None  # the smallest distance, where no rule can know it
    at_least: bool = False
    pieces: tuple[TotalPart, ...] = ()
    variants: tuple[Variant, ...] = ()
    more_notes: tuple[str, ...] = field(default=())

    def allowed(self) -> Allowed:
        """What the budget allows at the smallest distance that occurs."""
        return allowed(self.specification, delta=self.delta, distance=self.distance)

    def budget(self) -> str:
        """The budget with its letter, four decimals, rounded up: ρ² for zCDP (the usual parameter), ε otherwise."""
        spec = self.specification
        zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
        number = decimal((spec.rho_squared if zcdp else spec.budget).upper(4))
        letter = "ρ²" if zcdp else spec.output_premetric.budget_symbol
        return f"{letter} {'≥' if self.at_least else '='} {number}"

    def sentence(self) -> str:
        """The specification as one sentence a data user understands."""
        spec = self.specification
        kept = [brief(invariant, spec.domain) for invariant in spec.multiverse]
        among = (
            f"Among all data sets that agree on {joined(kept)}, which are published exactly and are not protected,"
            if kept
            else "Whatever data set was collected,"
        )
        what = self.allowed()
        if what.distance is None:
            return f"{among} there is only one, because {what.reason}: nothing is protected, whatever the budget."
        if what.log_odds is not None and what.log_odds.is_infinite():
            return (
                f"{among} nothing is promised: {what.change} may change what is published without any limit."
            )
        if what.log_odds is None:
            return f"{among} {what.change} moves what is published by at most {self.budget()} in {spec.output_premetric}."
        caveat = f" ({what.exception})" if what.exception else ""
        if self.at_least:
            return (
                f"{among} the bounds that are known let {what.change} move anyone's odds by a factor of up to "
                f"{what.factor}{caveat}, and releases whose cost nobody has stated come on top."
            )
        return f"{among} {what.change} moves anyone's odds by at most a factor of {what.factor}{caveat}."

    def rows(self) -> tuple[tuple[str, str], ...]:
        """The five parts, what they allow and how we know, as a table of two columns."""
        spec, what = self.specification, self.allowed()
        exact = spec.rho_squared if isinstance(spec.output_premetric, NormalizedRenyi) else spec.budget
        caveat = f", {what.exception}" if what.exception else ""
        odds = f"a factor of {what.factor} at distance {what.distance}{caveat}"
        if what.distance is None:
            odds = "nothing is protected"
        elif what.log_odds is None:
            odds = f"no rule turns {spec.output_premetric} into odds"
        exact_too = (("not touched", f"{NOT_TOUCHED} {'; '.join(spec.untouched)}"),) if spec.untouched else ()
        return (
            ("domain", spec.domain.label or spec.domain.name),
            ("invariants", "; ".join(invariant.words() for invariant in spec.multiverse) or "none"),
            *exact_too,
            ("unit", f"{counted(spec.input_premetric)}, {spec.input_premetric}"),
            ("measured by", f"{measure(spec.output_premetric)}, {spec.output_premetric}"),
            ("budget", f"{self.budget()} per unit (exactly {shortened(exact.exact)})"),
            ("smallest distance", self.nearness()),
            ("odds it allows", odds),
            (
                "best test",
                f"errs in at least {what.error} of cases" if what.error[:1].isdigit() else what.error_words,
            ),
            ("evidence", f"{STATUS[spec.evidence.status]}: {spec.evidence.source}".rstrip(": ")),
        )

    def nearness(self) -> str:
        """The smallest distance between two data sets that agree on the invariants, and why it is that one."""
        what = self.allowed()
        return f"{'none' if what.distance is None else what.distance}: {what.reason}"

    def readings(self) -> tuple[tuple[int, str, str, str], ...]:
        """(distance, δ, simple ε, tight ε) of a zCDP budget at distances 1, 2 and the smallest; else none."""
        spec = self.specification
        if not isinstance(spec.output_premetric, NormalizedRenyi) or not spec.budget.is_finite:
            return ()
        return tuple(
            (distance, small(self.delta), self._read(distance), self._read(distance, tight=True))
            for distance in sorted({1, 2, self.allowed().distance or 1})
        )

    def _read(self, distance: int, *, tight: bool = False) -> str:
        rho_squared = self.specification.rho_squared
        return decimal(rho_squared_to_epsilon(rho_squared, self.delta, distance=distance, tight=tight))

    def worked(self) -> str:
        """One worked household (or person): what someone could at most believe afterwards."""
        spec, what = self.specification, self.allowed()
        if what.distance is None:
            return f"No worked example: {what.reason}, so nothing is left to learn from the rest."
        if what.log_odds is None:
            return f"No worked example: no rule turns {spec.output_premetric} into odds."
        even, rare = what.belief(Fraction(1, 2)), what.belief(Fraction(1, 1000))
        caveat = f" ({what.exception})" if what.exception else ""
        return (
            f"Worked example: {self._example(what)} for equally likely may believe in one of them, after the release, "
            f"with {even} at most; "
            f"someone who gave it 1 chance in 1,000, with {rare} at most{caveat}."
        )

    def _example(self, what: Allowed) -> str:
        """Two data sets at the smallest distance, and someone who does not know which of them it was."""
        premetric = self.specification.input_premetric
        counts = premetric.unrestricted
        unit, records = counts.unit, spelled(what.distance or 1)
        if isinstance(counts, SymmetricDifference):
            if what.distance == 1:
                return f"one {unit} could be in the file or not. Someone who holds both"
            if what.distance == 2:
                return f"one {unit} could have been another one. Someone who holds both"
            return f"two files that differ by {records} {unit} records give the same exact tables. Someone who holds both"
        if what.distance == 1:
            return f"one {unit} could have answered a question in two ways. Someone who holds both"
        if what.distance == 2 and len(what.moved) == 2:
            first, second = what.moved
            return (
                f"two {unit}s differ in {first} and in {second}, and no exact table tells which {first} goes with which "
                f"{second}. Someone who holds both ways of arranging them"
            )
        return (
            f"the values of {records} {unit} records can be arranged in two ways that give the same exact tables. "
            f"Someone who holds both"
        )

    def warning(self) -> str:
        """What to say above a factor of 1,000: the bound alone does not prevent near-certainty."""
        what = self.allowed()
        if what.distance is None:
            return "Nothing is protected: what is published exactly determines the data."
        if not what.near_certain:
            return ""
        return (
            "The factor is above 1,000: this bound alone does not prevent near-certainty about such a change. "
            "It is a ceiling on what anyone can learn, not a measurement of what can be learnt; an assessment measures."
        )

    def notes(self) -> tuple[str, ...]:
        """What must be read with the numbers."""
        varies = self.specification.varies
        by_universe = (
            ()
            if varies is None
            else (f"the budget differs by universe: {varies.words}. It is stated here for {varies.universe}",)
        )
        return tuple(dict.fromkeys((*by_universe, *self.specification.notes, *self.more_notes)))


def shortened(exact: str, most: int = 60) -> str:
    """An exact number that fits a line; spec.json has all of it."""
    return exact if len(exact) <= most else f"{exact[: most // 2]}…{exact[-most // 3 :]}"
