"""Two specifications side by side: five verdicts, each with its reason, and an overall one only where it is proved."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stirred.errors import require_kind
from stirred.spec.notebook import write_html_table
from stirred.spec.refinement import fixes_everything
from stirred.spec.specification import Specification
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.parts import (
    Finding,
    Relation,
    compare_budgets,
    compare_domains,
    compare_measures,
    compare_multiverses,
    compare_units,
    settle,
)

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


__all__ = ["Comparison", "Finding", "Relation", "compare"]
