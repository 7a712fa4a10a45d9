"""Compare two specifications in five verdicts with reasons; and hold the paper's results on invariants, with hypotheses."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum

from stirred.errors import IncompatibleError, SpecificationError, require_kind
from stirred.spec.budgets import Budget
from stirred.spec.domain import Domain
from stirred.spec.input_premetrics import InputPremetric, refines_within_reach
from stirred.spec.invariants import Invariant, abbreviate, join_words
from stirred.spec.multiverse import Multiverse
from stirred.spec.notebook import write_html_table
from stirred.spec.output_premetrics import OutputPremetric
from stirred.spec.refinement import decide_determined, fixes_everything
from stirred.spec.specification import Specification
from stirred.spec.statement import Evidence, compare_functions
from stirred.spec.verdict import Answer, Verdict

Budgets = Mapping[frozenset[Hashable], Budget]


def exact_release(
    statistic: Invariant,
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> Specification:
    r"""Proposition 1: publishing $c$ exactly costs 0 where every universe fixes it, and ∞ where one does not.

    The second half needs two data sets at finite distance on which $c$ differs, and $D = \infty$ at total variation 1;
    without these an error is raised.
    """
    verdict = refines_within_reach(multiverse, Multiverse.of(statistic), domain, input_premetric)
    if verdict:
        budget = Budget.zero()
    elif verdict.answer is Answer.UNKNOWN:
        raise SpecificationError(
            f"the loss of publishing {statistic} exactly is unknown",
            why=verdict.because,
            fix="declare it an invariant: then it costs nothing",
        )
    elif not output_premetric.infinite_at_total_variation_one:
        raise SpecificationError(
            f"Proposition 1 does not say what publishing {statistic} costs under {output_premetric}",
            why="its second half needs a premetric that is infinite at total variation 1",
            fix="state it under Multiplicative() or NormalizedRenyi()",
        )
    else:
        budget = Budget.infinite()
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=input_premetric,
        output_premetric=output_premetric,
        budget=budget,
        evidence=Evidence(status="proved", source="Proposition 1"),
        notes=(f"exact release of {statistic}: {verdict.because}",),
    )


def only_invariants_are_free(
    output_premetric: OutputPremetric, *, varies_at_finite_distance: bool
) -> Verdict:
    """Decide by Proposition 2 whether ε > 0: the output varies inside a universe and the premetric is a metric."""
    if not output_premetric.is_metric:
        raise SpecificationError(
            f"Proposition 2 does not apply to {output_premetric}",
            why="it needs a metric: D(P, Q) > 0 whenever P ≠ Q",
            fix="use D_mult or D_nor",
        )
    if varies_at_finite_distance:
        return Verdict.yes(
            "the output's distribution differs between two data sets of one universe, so ε > 0 (Proposition 2)"
        )
    return Verdict.no(
        "the output's distribution is the same throughout each universe: it is a function of the invariants"
    )


def loss_is_no_smaller(coarser: Multiverse, finer: Multiverse, domain: Domain) -> Verdict:
    """Decide by Proposition 3 whether the loss of a mechanism is at least as large with fewer invariants."""
    verdict = finer.refines(coarser, domain)
    if verdict:
        return Verdict.yes(
            f"every finer universe lies in a coarser one, so L' ≥ L (Proposition 3): {verdict.because}"
        )
    return Verdict.unknown(f"Proposition 3 needs one multiverse to refine the other: {verdict.because}")


def lemma_1(budgets: Budgets, finer: Budgets) -> Verdict:
    """Decide by Lemma 1 whether M(spec) ⊂ M(spec'): each D' lies in some D with ε_D ≤ ε'_{D'} (δ = 0).

    >>> whole, half = frozenset("ab"), frozenset("a")
    >>> bool(lemma_1({whole: Budget.of(1)}, {half: Budget.of(2)}))
    True
    """
    for inside, allowed in finer.items():
        holders = [budget for universe, budget in budgets.items() if inside <= universe]
        if not holders:
            return Verdict.unknown("Lemma 1 does not apply: some universe lies in none of the others")
        if not any(budget <= allowed for budget in holders):
            return Verdict.unknown(
                "Lemma 1 does not apply: every universe around some finer one has a larger budget"
            )
    return Verdict.yes("each finer universe lies in one whose budget is no larger (Lemma 1)")


def largest_coarse_budgets(
    universes: "frozenset[frozenset[Hashable]]", finer: Budgets
) -> dict[frozenset[Hashable], Budget]:
    r"""Proposition 5, first half: any $\varepsilon_D \le \inf\{\varepsilon'_{D'} : D' \subset D\}$ suffices."""
    _require_refinement(universes, frozenset(finer))
    return {
        universe: min((b for inside, b in finer.items() if inside <= universe), default=Budget.infinite())
        for universe in universes
    }


def smallest_fine_budgets(
    budgets: Budgets, universes: "frozenset[frozenset[Hashable]]"
) -> dict[frozenset[Hashable], Budget]:
    r"""Proposition 5, second half: $\varepsilon'_{D'} = \inf\{\varepsilon_D : D' \subset D\}$ holds."""
    _require_refinement(frozenset(budgets), universes)
    return {inside: min(b for universe, b in budgets.items() if inside <= universe) for inside in universes}


def _require_refinement(
    coarse: "frozenset[frozenset[Hashable]]", fine: "frozenset[frozenset[Hashable]]"
) -> None:
    if not all(any(inside <= universe for universe in coarse) for inside in fine):
        raise SpecificationError(
            "Proposition 5 does not apply",
            why="the second multiverse is no refinement of the first",
            fix="give the multiverse with the larger universes first",
        )


# The five parts of two specifications compared: domain, multiverse, input premetric, output premetric, budget.


class Relation(Enum):
    """The relation of the first to the second."""

    STRONGER = "stronger"
    WEAKER = "weaker"
    EQUAL = "equal"
    INCOMPARABLE = "incomparable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of a comparison, with its sentence."""

    relation: Relation
    because: str

    def __str__(self) -> str:
        return f"{self.relation.value}: {self.because}"


def settle(forth: Verdict, back: Verdict, *, equal: str, stronger: str, weaker: str, apart: str) -> Finding:
    """Return one relation from two implications: the first gives the second, and the reverse."""
    if forth and back:
        return Finding(Relation.EQUAL, equal)
    if forth and back.answer is Answer.NO:
        return Finding(Relation.STRONGER, stronger)
    if back and forth.answer is Answer.NO:
        return Finding(Relation.WEAKER, weaker)
    if forth.answer is Answer.NO and back.answer is Answer.NO:
        return Finding(Relation.INCOMPARABLE, apart)
    open_one = forth if forth.answer is Answer.UNKNOWN else back
    return Finding(Relation.UNKNOWN, open_one.because)


def compare_domains(first: Specification, second: Specification) -> Finding:
    """Compare the domains: whether the two speak of the same data sets."""
    if first.domain == second.domain:
        return Finding(Relation.EQUAL, f"both protect the data sets of {first.domain}")
    return Finding(Relation.UNKNOWN, f"no rule relates the domains {first.domain} and {second.domain}")


def compare_multiverses(first: Specification, second: Specification) -> Finding:
    """Compare the multiverses: which of the two keeps fewer numbers exact."""
    if first.domain != second.domain:
        return Finding(
            Relation.UNKNOWN,
            f"invariants of different domains cannot be compared, because nothing says which variable "
            f"of {first.domain} is which of {second.domain}",
        )
    fewer = second.multiverse.refines(
        first.multiverse, first.domain
    )  # the second keeps all that the first keeps
    more = first.multiverse.refines(second.multiverse, first.domain)
    return settle(
        fewer,
        more,
        equal="the invariants determine each other",
        stronger=f"it keeps fewer numbers exact: {_list_lacking(first, second, 'the second')}",
        weaker=f"it keeps more numbers exact: {_list_lacking(second, first, 'the first')}",
        apart=f"each keeps a number exact that the other does not determine: {_list_lacking(second, first, 'the first')}; "
        f"{_list_lacking(first, second, 'the second')}",
    )


def _list_lacking(without: Specification, having: Specification, whose: str) -> str:
    """Return in words what ``having`` keeps exact and ``without`` does not determine."""
    given = tuple(without.multiverse)
    missing = [
        abbreviate(invariant, having.domain)
        for invariant in having.multiverse
        if decide_determined(given, invariant, without.domain).answer is Answer.NO
    ]
    return f"only {whose} fixes {join_words(missing)}"


def compare_units(first: Specification, second: Specification) -> Finding:
    """Compare the units: which of the two protects the larger one."""
    mine, theirs = first.input_premetric, second.input_premetric
    if mine == theirs:
        return Finding(Relation.EQUAL, f"both protect {mine.smallest_distance}")
    if first.domain == second.domain:
        return _compare_units_in(first.domain, first.multiverse & second.multiverse, mine, theirs)
    # what one unit costs in the other can be asked in any domain; an answer that is the same in both is one
    here = _compare_units_in(first.domain, first.multiverse, mine, theirs)
    there = _compare_units_in(second.domain, second.multiverse, mine, theirs)
    if here.relation is there.relation:
        return Finding(here.relation, f"in {first.domain} as in {second.domain}: {here.because}")
    return Finding(
        Relation.UNKNOWN,
        f"{here.relation.value} in {first.domain}, {there.relation.value} in {second.domain}: {there.because}",
    )


def _compare_units_in(
    domain: Domain, multiverse: Multiverse, mine: InputPremetric, theirs: InputPremetric
) -> Finding:
    factors: list[tuple[Budget, str] | None] = []
    for one, other in ((mine, theirs), (theirs, mine)):
        try:
            constant = one.constant(other, domain, multiverse)
            factors.append((Budget.of(constant.factor), constant.because))
        except IncompatibleError as reason:
            factors.append(None if not reason.why else (Budget.infinite(), reason.why))
    forth, back = factors
    if forth is None or back is None or not (forth[0].is_finite or back[0].is_finite):
        return Finding(Relation.UNKNOWN, f"no rule relates {mine} and {theirs}")
    if forth[0] < back[0]:
        return Finding(
            Relation.STRONGER,
            f"{mine} protects the larger unit, as against {theirs}: {_describe_cost(forth, back)}",
        )
    if back[0] < forth[0]:
        return Finding(
            Relation.WEAKER,
            f"{theirs} protects the larger unit, as against {mine}: {_describe_cost(back, forth)}",
        )
    return Finding(Relation.EQUAL, f"{mine} and {theirs} are the same up to constants")


def _describe_cost(small: tuple[Budget, str], large: tuple[Budget, str]) -> str:
    """Describe the cost of restating one unit as the other, the smaller constant first."""
    there = (
        f"a budget carries over times {small[0].exact} ({small[1]})" if small[1] else "a budget carries over"
    )
    factor = large[0].fraction
    whole = factor is not None and factor.denominator == 1
    back = (
        f"times {factor.numerator:,}"
        if factor is not None and whole
        else f"times {factor}"
        if factor
        else "not at all"
    )
    return f"{there}, and back {back} ({large[1]})"


def compare_measures(first: Specification, second: Specification) -> Finding:
    """Compare the output premetrics: which of the two measures a change of the output more strictly."""
    mine, theirs = first.output_premetric, second.output_premetric
    if mine == theirs:
        return Finding(Relation.EQUAL, f"both measure change by {mine}")
    forth = mine.convert(Budget.of(1), theirs) is not None
    back = theirs.convert(Budget.of(1), mine) is not None
    if forth and not back:
        return Finding(
            Relation.STRONGER,
            f"a bound on {mine} gives one on {theirs} at every distance, and not the reverse",
        )
    if back and not forth:
        return Finding(
            Relation.WEAKER, f"a bound on {theirs} gives one on {mine} at every distance, and not the reverse"
        )
    if forth and back:
        return Finding(Relation.EQUAL, f"{mine} and {theirs} bound each other")
    return Finding(Relation.UNKNOWN, f"no conversion between {mine} and {theirs} holds at every distance")


def compare_budgets(first: Specification, second: Specification) -> Finding:
    """Compare the budgets where the flavors are the same: which of the two is smaller."""
    shown = f"{first.shown_budget}, {second.shown_budget}"
    if first.flavor != second.flavor:
        same = (first.input_premetric, first.output_premetric) == (
            second.input_premetric,
            second.output_premetric,
        )
        words = (
            "the universes differ, so the budgets bound different things"
            if same
            else "the flavors differ, so the budgets are in different units"
        )
        return Finding(Relation.INCOMPARABLE, f"{words} ({shown})")
    forth, back = compare_functions(first, second), compare_functions(second, first)
    if forth and back:
        return Finding(Relation.EQUAL, f"the budgets are equal ({shown})")
    if forth and back.answer == "no":
        words = "its budget is smaller" if first.varies is second.varies is None else forth.because
        return Finding(Relation.STRONGER, f"{words} ({shown})")
    if back and forth.answer == "no":
        words = "its budget is larger" if first.varies is second.varies is None else back.because
        return Finding(Relation.WEAKER, f"{words} ({shown})")
    if forth.answer == back.answer == "no":
        return Finding(Relation.INCOMPARABLE, f"{forth.because} ({shown})")
    open_one = forth if forth.answer == "unknown" else back
    return Finding(Relation.UNKNOWN, f"{open_one.because} ({shown})")


# Two specifications side by side: five verdicts, each with its reason, and an overall one only where it is proved.

UNITS = (
    "budgets of different flavors are in different units, like amounts in different currencies: "
    "the smaller number need not protect more"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The relation of the first specification to the second, part by part and overall."""

    first: Specification
    second: Specification
    parts: Mapping[str, Finding]
    overall: Finding
    forth: Verdict  # the first implies the second
    back: Verdict  # the second implies the first
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return the overall verdict in one sentence."""
        return self.overall.because

    @property
    def why(self) -> str:
        """Return both implications with their derivations."""
        return "\n".join(
            f"{asked} {verdict.answer.value}\n" + "\n".join(f"  {line}" for line in verdict.why.splitlines())
            for asked, verdict in (
                ("does the first imply the second?", self.forth),
                ("does the second imply the first?", self.back),
            )
        )

    def __repr__(self) -> str:
        return f"Comparison({self.overall.relation.value}: {self.first.shown_budget} beside {self.second.shown_budget})"

    def _repr_html_(self) -> str:
        """Return the five verdicts and the overall one as an HTML table."""
        rows = [(name, found.relation.value, found.because) for name, found in self.parts.items()]
        rows.append(("overall", self.overall.relation.value, self.overall.because))
        title = "How the first specification stands to the second"
        return write_html_table(title, rows, columns=("part", "verdict", "because"), notes=self.warnings)

    def __str__(self) -> str:
        rows = [f"{name}: {finding}" for name, finding in self.parts.items()]
        return "\n".join(
            [*rows, f"overall: {self.overall}", *(f"note: {warning}" for warning in self.warnings)]
        )


def compare(first: Specification, second: Specification) -> Comparison:
    """Compare two specifications in five verdicts; stronger means that ``first`` promises more.

    >>> from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> found = compare(spec, spec.given(Margin("household", ("block",))))
    >>> print(found.parts["multiverse"])
    stronger: it keeps fewer numbers exact: only the second fixes households by block
    >>> found.overall.relation.value
    'stronger'
    """
    for name, given in (("the first", first), ("the second", second)):
        require_kind(
            name,
            given,
            Specification,
            wanted="a Specification",
            fix='compare(release.specification, catalog["das-2020"])',
        )
    parts = {
        "domain": compare_domains(first, second),
        "multiverse": compare_multiverses(first, second),
        "input premetric": compare_units(first, second),
        "output premetric": compare_measures(first, second),
        "budget": compare_budgets(first, second),
    }
    warnings = [] if first.flavor == second.flavor else [UNITS]
    for which, spec in (("first", first), ("second", second)):
        if spec.evidence.status != "proved":
            warnings.append(
                f"the budget of the {which} is {spec.evidence.status}, not proved here: {spec.evidence.source}"
            )
        if fixes_everything(spec.multiverse, spec.domain):
            warnings.append(
                f"the invariants of the {which} fix the whole data set: any budget is met and nothing is protected"
            )
        if spec.varies is not None:
            warnings.append(
                f"the budget of the {which} differs by universe ({spec.varies.words}); shown at {spec.varies.universe}"
            )
    forth, back = first.implies(second), second.implies(first)
    return Comparison(
        first=first,
        second=second,
        parts=parts,
        overall=_decide_overall(forth, back),
        forth=forth,
        back=back,
        warnings=tuple(warnings),
    )


def _join_reasons(forth: Verdict, back: Verdict) -> str:
    """Return why neither implies the other, with both reasons naming the two in the same order."""
    if forth.because == back.because:
        return forth.because
    return f"{forth.because}; and the other way, {_exchange_names(back.because)}"


def _exchange_names(because: str) -> str:
    """Exchange the names of the two specifications in a reason."""
    places = {"the first": "the second", "the second": "the first"}
    return re.sub("the (first|second)", lambda found: places[found.group(0)], because)


def _decide_overall(forth: Verdict, back: Verdict) -> Finding:
    """Return the overall finding: which of the two implies the other, and why."""
    found = settle(
        forth,
        back,
        equal=f"each implies the other: {forth.because}",
        stronger=f"the first promises more than the second: {forth.because}",
        weaker=f"the second promises more than the first: {_exchange_names(back.because)}",
        apart=f"neither implies the other, so the two are not ranked: {_join_reasons(forth, back)}",
    )
    if found.relation is not Relation.UNKNOWN:
        return found
    for verdict, one, other in ((forth, "first", "second"), (back, "second", "first")):
        if verdict:
            reason = verdict.because if verdict is forth else _exchange_names(verdict.because)
            words = f"the {one} implies the {other} ({reason}); whether the reverse holds is unknown"
            return Finding(Relation.UNKNOWN, words)
        if verdict.answer is Answer.NO:
            reason = verdict.because if verdict is forth else _exchange_names(verdict.because)
            words = f"the {one} does not imply the {other} ({reason}); whether the reverse holds is unknown"
            return Finding(Relation.UNKNOWN, words)
    return Finding(Relation.UNKNOWN, f"the two are not ranked, because no rule decides: {found.because}")
