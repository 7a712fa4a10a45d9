"""The same release under other assumptions: moves between households, imputed copies, another unit, fewer invariants."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.catalog.census_edited_file import SETS
from stirred.errors import IncompatibleError
from stirred.languages import Phrase
from stirred.spec import NormalizedRenyi, Specification

if TYPE_CHECKING:  # a card needs templates and mpmath, which a comparison does not
    from stirred.spec.card import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One other assumption, in words, and the specification under it."""

    words: str
    specification: Specification

    def as_variant(self, delta: Fraction, *, at_least: bool = False) -> "Variant":
        """Return the assumption as a line of a card; ``at_least`` where the total leaves releases out."""
        from stirred.spec.card import Card, Variant
        from stirred.spec.card.words import write_small

        bounded = at_least and self.specification.budget.is_finite
        card = Card(self.specification, delta=delta, at_least=bounded)
        allowed = card.bound_odds()
        odds = Phrase("card.odds.factor", factor=allowed.factor, distance=str(allowed.distance))
        if not self.specification.budget.is_finite:
            odds = Phrase("card.odds.any")
        elif (epsilon := card.epsilon()) is not None:
            relation = "≥" if bounded else "="
            odds = Phrase("card.odds.epsilon", relation=relation, epsilon=epsilon, delta=write_small(delta))
        return Variant(words=self.words, budget=card.shown_budget(), odds=odds)


def variants(spec: Specification) -> tuple[Assumption, ...]:
    """Return the specification under each other assumption for which a rule gives a budget.

    >>> from stirred.catalog import catalog
    >>> [str(a.specification.rho_squared) for a in variants(catalog["das-2020"])][:2]
    ['139.6169', '221.5002']
    """
    found: list[Assumption] = []
    unit = spec.input_premetric.unit
    households = any(part.input_premetric.unit == "household" for part in spec.statements)
    if unit == "person" and households:
        effect = "ρ² fourfold" if isinstance(spec.output_premetric, NormalizedRenyi) else "twice the budget"
        words = f"a person may move between households: the household parts count with constant 2, {effect}"
        found.append(Assumption(words=words, specification=spec.per("person", link="free")))
    words = f"each {unit} may have been imputed into one more record"
    found.append(Assumption(words=words, specification=spec.per(unit, copies=2)))
    if isinstance(spec.output_premetric, NormalizedRenyi) and unit == "person":
        largest = spec.domain.largest_household or 0
        words = f"per household of up to {largest:,} persons: ρ of the person parts times {largest:,}"
        # where the number of persons is not among the invariants no rule relates the two units
        with suppress(IncompatibleError):
            found.append(Assumption(words=words, specification=spec.per("household")))
    # SafeTab and PHSafe publish no invariant themselves: theirs are public inputs, the geography
    released = spec.multiverse not in (SETS["safetab"], SETS["phsafe"])
    for invariant in spec.multiverse if released else ():
        words = f"published exactly all the same, but not declared invariant: {invariant.words()}"
        found.append(Assumption(words=words, specification=spec.without(invariant, released=True)))
    return tuple(found)
