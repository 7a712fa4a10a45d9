"""Define an entry of the catalog: a published specification, its source, and what is computed from it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.catalog.products import (
    BY_GROUP_PRIVACY,
    DELTA,
    PRINTED,
    PRODUCTS,
    PROVED,
    UNSTATED,
    Product,
    UnstatedRelease,
)
from stirred.catalog.releases import SETS
from stirred.errors import IncompatibleError, InputError
from stirred.languages import Phrase
from stirred.spec import Budget, NormalizedRenyi, OutputPremetric, Part, Specification, rho_squared_to_epsilon
from stirred.spec.conversions import GIVEN_THE_CODE, GIVEN_THE_MECHANISM, Factor
from stirred.spec.exact import to_json_number

if TYPE_CHECKING:
    from stirred.spec.card import Card, TotalPart, Variant


# The same release under other assumptions: moves between households, imputed copies, another unit, fewer invariants.

if TYPE_CHECKING:  # a card needs templates and mpmath, which a comparison does not
    pass


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
    # a promise per exchange has no rule for copies where other tables than a swap's are exact too
    with suppress(IncompatibleError):
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


# One entry of the catalog: a published specification with its source, and everything that is computed from it.

if TYPE_CHECKING:  # a card needs templates and mpmath, which a comparison does not
    pass

Row = dict[str, object]
_TITLES = {
    (product.source, Budget.sqrt(product.rho_squared).exact): product.title
    for product in (*PRODUCTS, *BY_GROUP_PRIVACY, *PROVED, *PRINTED)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A name, a specification, and where it comes from; ``omits`` are releases that a total leaves out.

    Where the figure shown is a published one, ``with_proof`` makes the same release from the factors that theorems about
    the mechanisms prove, and ``by_group_privacy`` from those that follow from the guarantee of the code alone.
    """

    name: str
    title: str
    source: str
    conversion: str
    make: Callable[[Fraction | None], Specification] = field(repr=False)
    rates: tuple[Fraction, ...] = ()
    b: int | None = None
    where: str = ""
    hypothetical: bool = False
    published: str = ""
    parts: tuple[str, ...] = ()
    omits: tuple[UnstatedRelease, ...] = ()
    product: Product | None = None
    with_proof: Callable[[], Specification] | None = field(default=None, repr=False)
    by_group_privacy: Callable[[], Specification] | None = field(default=None, repr=False)

    @property
    def proved_specification(self) -> Specification | None:
        """Return the same release with a proved factor, or None where the catalog states no proof.

        >>> from stirred.catalog import catalog
        >>> print(catalog.entry("sdhc-2020").proved_specification.rho_squared.exact)
        1257281/2000000
        """
        return None if self.with_proof is None else self.with_proof()

    @property
    def specification(self) -> Specification:
        """Return the specification; for a swap at its smallest rate, which has the largest budget."""
        return self.make(self.rates[0] if self.rates else None)

    def at(self, rate: str | Fraction) -> Specification:
        """Return the specification at another swap rate."""
        if not self.rates:
            raise InputError(f"{self.name} has no swap rate", why="it is no swap", fix="leave the rate out")
        return self.make(Fraction(rate))

    def card(self, *, delta: Fraction = DELTA, specification: Specification | None = None) -> "Card":
        """Return the entry as a card for people."""
        from stirred.spec.card import Card

        spec = specification or self.specification
        return Card(
            spec,
            title=self.title,
            subtitle=self.name + (f" · {self.where}" if self.where else ""),
            delta=delta,
            at_least=bool(self.omits) and spec.budget.is_finite,
            pieces=list_parts(spec),
            variants=tuple(
                variant.as_variant(delta, at_least=bool(self.omits))
                for variant in (*self._with_proof(spec), *variants(spec))
            ),
            more_notes=self._notes(),
        )

    def _with_proof(self, spec: Specification) -> tuple[Assumption, ...]:
        """Return the proved budget to show beside the published one; none for restatements."""
        proved = self.proved_specification
        if proved is None or spec != self.specification:
            return ()
        words = (
            f"with factors that theorems about the mechanisms prove ({GIVEN_THE_MECHANISM}), "
            f"per {proved.input_premetric.unit}, instead of the published ones"
        )
        if proved.flavor == spec.flavor and proved.budget == spec.budget:
            words = f"the published factor is also proved ({GIVEN_THE_MECHANISM})"
        found = (Assumption(words=words, specification=proved),)
        weaker = None if self.by_group_privacy is None else self.by_group_privacy()
        if weaker is None or weaker.budget == spec.budget:
            return found
        words = f"with group privacy in the place of published factors that have no proof ({GIVEN_THE_CODE})"
        return (*found, Assumption(words=words, specification=weaker))

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.omits:
            left_out = "; ".join(unstated.title for unstated in self.omits)
            notes.append(f"left out, at unknown cost, hence ≥: {left_out}")
        if self.hypothetical:
            notes.append("a what-if: this release was never made")
        return tuple(notes)

    def row(self, delta: Fraction = DELTA) -> Row:
        """Return the entry as plain values; every ε is computed from the exact budget and the given δ."""
        from stirred.spec.card.words import bound_odds

        spec = self.specification
        what = bound_odds(spec, delta=delta)
        row: Row = {
            "name": self.name,
            "title": self.title,
            "unit": spec.input_premetric.unit,
            "output_premetric": str(spec.output_premetric),
            "invariants": [invariant.words() for invariant in spec.multiverse],
            **_budget(spec, delta),
            "source": self.source,
            "input_premetric": str(spec.input_premetric),
            "status": spec.evidence.status,
            "conversion": self.conversion,
            "distance": what.distance,
            "log_odds": to_json_number(what.log_odds) if what.log_odds is not None else None,
        }
        if self.proved_specification is not None:
            row |= _proved_row(self.proved_specification, self.product)
        if self.by_group_privacy is not None:
            row["rho_squared_group_privacy"] = to_json_number(self.by_group_privacy().rho_squared.upper(6))
        if self.b is not None:
            row["b"] = self.b
            row["rates"] = [_at_rate(self.make(rate), rate) for rate in self.rates]
        if self.omits:
            row["at_least"] = True
            row["omits"] = [unstated.name for unstated in self.omits]
        return row


def _at_rate(spec: Specification, rate: Fraction) -> Row:
    tight = spec.bounds[1].budget if len(spec.bounds) > 1 else spec.budget
    return {
        "rate": f"{rate.numerator}/{rate.denominator}",
        "epsilon": to_json_number(spec.budget.upper(6)),
        "epsilon_tight": to_json_number(tight.upper(6)),
        "exact": spec.budget.exact,
    }


def _proved_row(spec: Specification, product: Product | None) -> Row:
    """Return the proved figure, and for a single product the factors that lead to the two figures."""
    row: Row = {
        "rho_squared_proved": to_json_number(spec.rho_squared.upper(6)),
        "exact_proved": spec.rho_squared.exact,
        "input_premetric_proved": str(spec.input_premetric),
    }
    if product is not None and product.conversion is not None:
        row["rho_squared_add_remove"] = Budget.of(product.counted).exact
        row["factor_published"] = _number_of(product.conversion.published)
        row["factor_proved"] = _number_of(product.conversion.proved)
    return row


def _number_of(factor: Factor) -> float:
    """Return a factor as a JSON number: all are whole, or a half."""
    return int(factor.times) if factor.times == int(factor.times) else float(factor.times)


def _budget(spec: Specification, delta: Fraction) -> Row:
    if isinstance(spec.output_premetric, NormalizedRenyi):
        rho_squared = spec.rho_squared
        simple, tight = (rho_squared_to_epsilon(rho_squared, delta, tight=best) for best in (False, True))
        return {
            "rho_squared": to_json_number(rho_squared.upper(6)),
            "delta": float(delta),
            "epsilon_simple": to_json_number(simple),
            "epsilon_tight": to_json_number(tight),
            "exact": rho_squared.exact,
        }
    # pure DP is not read at a δ: its ε holds for every event
    return {
        "epsilon": to_json_number(spec.budget.upper(6)),
        "delta": None,
        "epsilon_simple": None,
        "epsilon_tight": to_json_number(spec.bounds[1].budget.upper(6)) if len(spec.bounds) > 1 else None,
        "exact": spec.budget.exact,
    }


def list_parts(spec: Specification) -> "tuple[TotalPart, ...]":
    """Return the parts of a sum, each with the constant and the budget it counts with."""
    return tuple(_total_part(part, spec) for part in spec.parts) if len(spec.parts) > 1 else ()


def _total_part(part: Part, spec: Specification) -> "TotalPart":
    from stirred.spec.card import TotalPart

    constant = part.input_premetric.constant(spec.input_premetric, spec.domain, spec.multiverse)
    counted = (
        part.output_premetric.convert(part.budget * constant.factor, spec.output_premetric)
        or Budget.infinite()
    )
    return TotalPart(
        name=_TITLES.get((part.source, part.budget.exact), part.source),
        unit=str(part.input_premetric),
        budget=_write_budget(part.output_premetric, part.budget),
        constant=str(constant.factor),
        counted=_write_budget(spec.output_premetric, counted),
    )


def _write_budget(premetric: OutputPremetric, budget: Budget) -> str:
    """Return the budget with its letter, rounded up; zCDP is shown by ρ²."""
    from stirred.spec.card.words import write_decimal

    if isinstance(premetric, NormalizedRenyi):
        return Phrase(
            "card.budget", letter="ρ²", relation="=", number=write_decimal(budget.square().upper(4))
        )
    number = write_decimal(budget.upper(4))
    return Phrase("card.budget", letter=premetric.budget_symbol, relation="=", number=number)


def unstated_row(unstated: UnstatedRelease, delta: Fraction = DELTA) -> Row:
    """Return a release of unknown cost, with the same fields as the others."""
    return {
        "name": unstated.name,
        "title": unstated.title,
        "unit": None,
        "output_premetric": None,
        "invariants": None,
        "rho_squared": None,
        "delta": float(delta),
        "epsilon_simple": None,
        "epsilon_tight": None,
        "exact": None,
        "source": unstated.source,
        "status": "unknown",
    }


UNSTATED_BY_NAME: Mapping[str, UnstatedRelease] = {unstated.name: unstated for unstated in UNSTATED}


# How each published product was made, in a sentence.

_MECHANISMS = {
    "pl": "TopDown Algorithm: discrete Gaussian noise on queries over the geographic hierarchy, then constrained "
    "least squares and controlled rounding.",
    "dhc": "TopDown Algorithm: discrete Gaussian noise on queries over the geographic hierarchy, then constrained "
    "least squares and controlled rounding.",
    "topdown": "TopDown Algorithm, run for the redistricting data and again for the DHC: discrete Gaussian noise on "
    "queries over the geographic hierarchy, then constrained least squares and controlled rounding.",
    "ddhc-a": "SafeTab-P: discrete Gaussian noise on counts of population groups, adaptive detail.",
    "ddhc-b": "SafeTab-H: discrete Gaussian noise on counts of households by population group, adaptive detail.",
    "sdhc": "PHSafe: discrete Gaussian noise on counts that join persons and households, households truncated.",
    "das": "TopDown Algorithm, SafeTab-P, SafeTab-H and PHSafe.",
}


def mechanisms_of(entry: CatalogEntry) -> str:
    """Return the mechanisms of an entry in words."""
    if entry.rates:
        return "Data swapping, read as the Permutation Swapping Algorithm."
    known = sorted(_MECHANISMS, key=len, reverse=True)
    return _MECHANISMS[next((key for key in known if entry.name.startswith(key)), "das")]
