"""A derivation: the rule that gives a verdict, what it rests on, and the witness where there is one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from stirred.spec.verdicts.witness import DataSet, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """One step: ``claim`` follows from the premises by ``rule``; ``facts`` hold what a checker needs to verify it.

    >>> step = Derivation(rule="budget", claim="1 ≤ 2", facts={"first": "1", "second": "2"})
    >>> print(Derivation(rule="implication", claim="the first implies the second", premises=(step,)))
    the first implies the second [implication]
    └─ 1 ≤ 2 [budget]
    """

    rule: str
    claim: str
    premises: "tuple[Derivation, ...]" = ()
    witness: Witness | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the tree, one line for each step."""
        yield f"{self.claim} [{self.rule}]"
        branches: list[list[str]] = [list(premise.lines()) for premise in self.premises]
        # a step that rests on the same pair shows it already
        if self.witness is not None and all(premise.witness != self.witness for premise in self.premises):
            branches.append([f"witness: {self.witness}"])
        last = len(branches) - 1
        for place, branch in enumerate(branches):
            yield ("└─ " if place == last else "├─ ") + branch[0]
            yield from (("   " if place == last else "│  ") + line for line in branch[1:])

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Return the whole tree as plain data."""
        document: dict[str, Any] = {"rule": self.rule, "claim": self.claim}
        if self.premises:
            document["premises"] = [premise.to_json() for premise in self.premises]
        if self.witness is not None:
            document["witness"] = self.witness.to_json()
        if self.facts:
            document["facts"] = {name: _to_plain(value) for name, value in self.facts.items()}
        return document


def _to_plain(value: Any) -> Any:
    """Return a fact as JSON: objects by their own JSON or text, fractions as text."""
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, DataSet | Witness):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [_to_plain(item) for item in value]
    return str(value)
