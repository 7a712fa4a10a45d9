"""The specification: five parts that together say what is promised.

Composition keeps the parts it was made of and converts once, at the end: (ε₁ + ε₂)²/2 is not ε₁²/2 + ε₂²/2, so
converting step by step would make the sum depend on where the brackets stand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, singledispatch
from html import escape
from typing import Literal

from stirred.errors import BudgetError, SpecificationError, require_kind
from stirred.spec.algebra import (
    add_invariants,
    chain,
    change_domain,
    change_output_premetric,
    change_unit,
    compose,
    drop_invariants,
)
from stirred.spec.budgets import Bound, Budget
from stirred.spec.domain import Domain
from stirred.spec.input_premetrics import InputPremetric, refines_within_reach
from stirred.spec.invariants import Invariant, Margin, Views, abbreviate, released_columns
from stirred.spec.multiverse import Multiverse, refuse_single_universe
from stirred.spec.output_premetrics import NormalizedRenyi, OutputPremetric
from stirred.spec.statement import BudgetFunction, Evidence, Part
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.search import implies


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    r"""$D(P_x, P_{x'}) \le \varepsilon_{\mathcal D}\, d(x, x')$ for all $x, x'$ in every universe $\mathcal D$.

    >>> from stirred.spec import Hamming, Margin, Multiplicative
    >>> spec = Specification(
    ...     domain=Domain(name="households"), multiverse=Multiverse.of(Margin("household", ("block",))),
    ...     input_premetric=Hamming("household"), output_premetric=Multiplicative(), budget=Budget.log(5022308))
    >>> print(spec)
    households | {households by block} | d_Ham(household) | D_mult | ε = 15.4295
    """

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    evidence: Evidence = field(default_factory=Evidence)
    bounds: tuple[Bound, ...] = ()
    # records that are released exactly, in words; the setting of this name that some mechanisms have is a rule for them
    untouched: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()  # what it was composed of; empty: itself
    varies: BudgetFunction | None = None  # the budget of each universe; None: the same in all
    # Tables of the data, where they are stated. ``measures``: the output is computed from them and the invariants, so a
    # part whose measures the invariants determine costs nothing. ``released``: the output's law is a function of them; the
    # card gives odds for the smallest change that they show, and no claim rests on them. ``views`` is the one stated.
    measures: tuple[Margin, ...] = ()
    released: Views = ()

    def __post_init__(self) -> None:
        multiverse: object = self.multiverse
        budget: object = self.budget
        if not isinstance(multiverse, Multiverse):
            refuse_single_universe()
        if not isinstance(budget, Budget):
            raise BudgetError(
                "the budget of a specification is a Budget",
                why=f"this is a {type(budget).__name__}, and a promise needs an exact number",
                fix='give budget=Budget.of("1/20")',
            )
        kinds = (
            ("domain", Domain, "a Domain", 'domain=Domain(name="households")'),
            ("input_premetric", InputPremetric, "an input premetric", 'input_premetric=Hamming("household")'),
            ("output_premetric", OutputPremetric, "an output premetric", "output_premetric=Multiplicative()"),
        )
        for name, kind, wanted, fix in kinds:
            require_kind(name, getattr(self, name), kind, wanted=wanted, fix=fix, error=SpecificationError)
        self.multiverse.check(self.domain)
        Multiverse.of(*self.released).check(self.domain)
        self._check_statistic()
        if self.output_premetric.needs_whole_distances and not self.input_premetric.whole:
            raise SpecificationError(
                f"cannot state {self.output_premetric} under {self.input_premetric}",
                why="(ε, δ) is defined for distances 0, 1, 2, …, and this distance is not known to take only these",
                fix="set whole = True in the input premetric if it does, or state pure DP or zCDP",
            )

    def _check_statistic(self) -> None:
        """Refuse a budget function of a statistic that two data sets of one universe do not share."""
        statistic = None if self.varies is None else self.varies.statistic
        if statistic is None:
            return
        tables = Multiverse.of(*statistic.needs())
        found = _refines_cached(self.multiverse, tables, self.domain, self.input_premetric)
        if found.answer is Answer.NO:
            raise SpecificationError(
                "this budget is not a function of the universe",
                why=f"its invariants do not determine b, {statistic.words()}: {found.because}",
                fix=f"declare these invariants: {tables}",
            )

    @property
    def flavor(self) -> tuple[Domain, Multiverse, InputPremetric, OutputPremetric]:
        return (self.domain, self.multiverse, self.input_premetric, self.output_premetric)

    @property
    def rho_squared(self) -> Budget:
        """Return the usual zCDP parameter ρ², the square of this budget."""
        if not isinstance(self.output_premetric, NormalizedRenyi):
            raise SpecificationError(
                f"a budget under {self.output_premetric} has no ρ²",
                why="ρ² is the parameter of zCDP, the budget under NormalizedRenyi() squared",
                fix="spec.under(NormalizedRenyi()).rho_squared",
            )
        return self.budget.square()

    @property
    def shown_budget(self) -> str:
        """Return the budget with its letter, rounded up; for zCDP it is ρ²."""
        if isinstance(self.output_premetric, NormalizedRenyi):
            return f"ρ² = {self.rho_squared}"
        return f"{self.output_premetric.budget_symbol} = {self.budget}"

    @property
    def views(self) -> Views:
        """Return the released tables, or the tables that the output is computed from; empty: not stated."""
        return self.released or self.measures

    @property
    def released_columns(self) -> dict[str, tuple[str, ...]]:
        """Return the released columns of each record type, or all that the domain lists where none are stated."""
        return released_columns(self.domain, self.views)

    @property
    def statements(self) -> tuple[Part, ...]:
        """Return the parts with the universes, units and premetrics in which they were first stated."""
        return self.parts or (
            Part(
                input_premetric=self.input_premetric,
                output_premetric=self.output_premetric,
                budget=self.budget,
                source=self.evidence.source,
                varies=self.varies,
                measures=self.measures,
                multiverse=self.multiverse,
            ),
        )

    def __add__(self, other: "Specification") -> "Specification":
        """Publish both outputs: budgets compose in the output premetric's own way, invariants join."""
        if not isinstance(other, Specification):
            return NotImplemented
        return compose([self, other])

    def given(self, more: Multiverse | Invariant) -> "Specification":
        """Return the promise inside smaller universes: weaker, at the same budget (Proposition 5, second half)."""
        return add_invariants(self, more)

    def without(self, *dropped: Invariant, released: bool = False) -> "Specification":
        """Return the promise with fewer invariants: as before they were given, else without a finite budget.

        ``released`` says that they are published exactly all the same. Then no finite budget holds (Proposition 1), unless
        the rest determines them.
        """
        return drop_invariants(self, dropped, released=released)

    def per(
        self,
        unit: str | InputPremetric,
        *,
        link: Literal["kept", "free"] | None = None,
        copies: int | None = None,
    ) -> "Specification":
        """Return the promise for another protection unit, with the constant that relates the two."""
        return change_unit(self, unit, link=link, copies=copies)

    def before_imputation(self) -> "Specification":
        """Return the promise for contributors, whom imputation may have copied into several records."""
        return self.per(self.input_premetric.unit, copies=self.domain.copies)

    def under(self, output_premetric: OutputPremetric) -> "Specification":
        """Return the promise in another output premetric, where a conversion holds at every distance."""
        return change_output_premetric(self, output_premetric)

    def within(self, budget: Budget) -> "Specification":
        """Return a weaker promise: the same flavor with a larger budget."""
        require_kind(
            "the budget", budget, Budget, wanted="a Budget", fix='within(Budget.of("20"))', error=BudgetError
        )
        if budget < self.budget:
            raise BudgetError(
                "cannot promise less loss than is proved",
                why=f"proved {self.budget}, asked for {budget}",
                fix="give a budget at least as large",
            )
        varies = self.varies
        if varies is not None and varies.most <= budget:
            varies = None  # it covers every universe
        elif varies is not None:
            # the budget is raised where we stand; what it is in other universes is unchanged
            varies = replace(varies, words=f"{varies.words}; raised to {budget} at the realised universe")
        return replace(self, budget=budget, parts=(), varies=varies, bounds=())

    def post_processed(self, by: str) -> "Specification":
        """Return the same promise with a note on what was computed from the output alone."""
        return replace(self, notes=tuple(sorted({*self.notes, f"post-processing: {by}"})))

    def then(self, other: "Specification", *, stability: int | Fraction | None = None) -> "Specification":
        """Return the promise of a chain in which ``other`` reads this one's output and nothing else."""
        return chain(self, other, stability=stability).specification

    def on(
        self,
        domain: Domain,
        mapping: Mapping[str, str] | None = None,
        *,
        record_types: Mapping[str, str] | None = None,
    ) -> "Specification":
        """Return the promise on another domain, with this one's variables renamed to the other's."""
        return change_domain(self, domain, mapping, record_types=record_types)

    def implies(self, other: "Specification") -> Verdict:
        """Decide whether every mechanism that satisfies this specification satisfies the other."""
        require_kind(
            "the other", other, Specification, wanted="a Specification", fix='implies(catalog["das-2020"])'
        )
        return implies(self, other)

    def __str__(self) -> str:
        kept = ", ".join(abbreviate(invariant, self.domain) for invariant in self.multiverse)
        rest = (self.input_premetric, self.output_premetric, self.shown_budget)
        return " | ".join([str(self.domain), "{" + kept + "}", *map(str, rest)])

    def __repr__(self) -> str:
        return f"Specification({self})"

    def _repr_html_(self) -> str:
        """Return the card as HTML for a notebook."""
        return html_of(self)


_refines_cached = lru_cache(maxsize=512)(
    refines_within_reach
)  # asked anew by each restatement of a specification


@singledispatch
def html_of(statement: object) -> str:
    """Return a statement as HTML: escaped text, unless the package registers a card for it."""
    return f"<pre>{escape(str(statement))}</pre>"
