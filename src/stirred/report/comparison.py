"""Write a comparison with the names of the two specifications instead of "the first" and "the second"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stirred.spec import Comparison, Specification, Verdict
from stirred.spec.verdict import Answer

_PLACE = re.compile(r"\bthe (first|second)\b(?: (budget|distance|law|multiverse)\b)?")


def insert_names(text: str, first: str, second: str, *, times: int = 0) -> str:
    """Replace "the first" and "the second" by names; ``times`` limits how often, 0 is always.

    >>> insert_names("the second promises more than the first", "das-2010", "das-2020")
    'das-2020 promises more than das-2010'
    >>> insert_names("the first budget is 0", "das-2010", "das-2020")
    'the budget of das-2010 is 0'
    """

    def name(found: re.Match[str]) -> str:
        who = first if found[1] == "first" else second
        return f"the {found[2]} of {who}" if found[2] else who

    return _PLACE.sub(name, text, count=times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Implication:
    """One direction: does ``premise`` imply ``conclusion``? With the verdict and both specifications."""

    premise: str
    conclusion: str
    verdict: Verdict
    specifications: tuple[Specification, Specification]

    @property
    def question(self) -> str:
        return f"does {self.premise} imply {self.conclusion}?"

    @property
    def because(self) -> str:
        return self.insert_names(self.verdict.because)

    @property
    def why(self) -> str:
        """Return the derivation as a tree; for "unknown" the reason alone."""
        return self.insert_names(self.verdict.why)

    def insert_names(self, text: str) -> str:
        """Return a text about this implication, with the names of its two sides."""
        return insert_names(text, self.premise, self.conclusion)

    def to_json(self) -> dict[str, Any]:
        """Return question, answer, reason and derivation as plain values."""
        step = self.verdict.derivation
        return {
            "question": self.question,
            "answer": self.verdict.answer.value,
            "because": self.because,
            "derivation": None if step is None else self._claims(step.to_json()),
        }

    def _claims(self, document: dict[str, Any]) -> dict[str, Any]:
        found = {**document, "claim": self.insert_names(document["claim"])}
        if "premises" in document:
            found["premises"] = [self._claims(premise) for premise in document["premises"]]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedComparison:
    """A comparison with the names of its two sides.

    >>> from stirred.catalog import catalog
    >>> from stirred.spec import compare
    >>> swap = catalog.entry("whatif-state")
    >>> said = NamedComparison(first="often", second="rarely", found=compare(swap.at("1/2"), swap.at("1/20")))
    >>> said.overall.partition(":")[0]
    'often promises more than rarely'
    """

    first: str
    second: str
    found: Comparison

    @property
    def overall(self) -> str:
        """Return in one line which side promises more, and why."""
        for known, other in ((self.forth, self.back), (self.back, self.forth)):
            if other.verdict.answer is not Answer.UNKNOWN or known.verdict.answer is Answer.UNKNOWN:
                continue
            if known.verdict:
                most = f"{known.premise} promises at least as much as {known.conclusion}"
                return f"{most}: {known.because}; whether it promises more is unknown"
            first = f"{known.premise} does not imply {known.conclusion}: {known.because}"
            return f"{first}; whether {other.premise} implies {other.conclusion} is unknown"
        return self._insert_names(self.found.overall.because)

    @property
    def rows(self) -> list[list[str]]:
        """Return part, verdict and reason, one row for each part."""
        return [
            [part, finding.relation.value, self._insert_names(finding.because)]
            for part, finding in self.found.parts.items()
        ]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the notes with names; a quoted source is not changed."""
        return tuple(insert_names(text, self.first, self.second, times=1) for text in self.found.warnings)

    @property
    def forth(self) -> Implication:
        """Return the implication from the first to the second."""
        pair = (self.found.first, self.found.second)
        return Implication(
            premise=self.first, conclusion=self.second, verdict=self.found.forth, specifications=pair
        )

    @property
    def back(self) -> Implication:
        """Return the implication from the second to the first."""
        pair = (self.found.second, self.found.first)
        return Implication(
            premise=self.second, conclusion=self.first, verdict=self.found.back, specifications=pair
        )

    @property
    def implications(self) -> tuple[Implication, Implication]:
        return self.forth, self.back

    def why(self) -> Iterator[str]:
        """Yield both questions with their answers and derivations, line by line."""
        for asked in self.implications:
            yield f"{asked.question} {asked.verdict.answer.value}"
            yield from (f"  {line}" for line in asked.why.splitlines())

    def _insert_names(self, text: str) -> str:
        return insert_names(text, self.first, self.second)
