"""Verdicts of the library held against brute force, one pair of promises after the other."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from oracles.bridge import data_of, domain_of, specification
from oracles.census import Small
from oracles.promises import Promise, brute, refuted_by
from stirred.spec import Specification, Verdict
from stirred.spec.verdict import Derivation
from stirred.spec.verdicts.checker.check import check_implication

MOST_SHOWN = 12


@dataclass
class Outcome:
    """How often each answer was given, what was wrong, and why a question stayed open."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def asked(self) -> int:
        return sum(self.answers.values())

    @property
    def share_unknown(self) -> float:
        return sum(self.unknown.values()) / max(1, self.asked)

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(self.answers + other.answers, self.faults + other.faults, self.unknown + other.unknown)

    def __str__(self) -> str:
        lines = [f"{self.asked} questions, {self.share_unknown:.2%} unknown"]
        lines += [
            f"  {n:6} {answer}, brute force: {found}" for (answer, found), n in sorted(self.answers.items())
        ]
        lines += [f"  {n:6} unknown: {why}" for why, n in self.unknown.most_common(MOST_SHOWN)]
        return "\n".join([*lines, *self.faults[:MOST_SHOWN]])


class Library:
    """The library's specifications of plain promises, each made once."""

    def __init__(self, small: Small, spine: tuple[str, ...] = ()) -> None:
        self.small, self.domain = small, domain_of(small, spine)
        self.made: dict[Promise, Specification] = {}

    def __getitem__(self, promise: Promise) -> Specification:
        if promise not in self.made:
            self.made[promise] = specification(promise, self.domain)
        return self.made[promise]


def what_is_wrong(
    first: Promise, second: Promise, library: Library, verdict: Verdict, found: set[str]
) -> str:
    """Why a verdict is false or not proved; empty where it is right."""
    problems = check_implication(library[first], library[second], verdict)
    if problems:
        return f"the checker: {'; '.join(problems)}"
    if verdict.answer.value == "unknown":
        return ""
    if verdict:
        return "yes, and a pair of data sets breaks it" if "broken" in found else ""
    return witness_fault(first, second, library.small, verdict.derivation)


def witness_fault(first: Promise, second: Promise, small: Small, step: Derivation | None) -> str:
    """Why the witness of a no does not refute; empty where it does."""
    if step is None or step.witness is None:
        return "no without a witness"
    copies = step.facts.get("copies", 1)
    x, y = (data_of(data, small, copies) for data in (step.witness.first, step.witness.second))
    problem = refuted_by(first, second, small, x, y)
    return f"the witness: {problem}" if problem else ""


PURE = ("determined", "different_pair")  # functions of their arguments, asked the same by many pairs


@contextmanager
def asked_once() -> Iterator[None]:
    """Let the library answer a question about the same invariants once; a changed function answers afresh."""
    modules = [m for path, m in sys.modules.items() if path.startswith("stirred.spec")]
    had = [
        (module, name, getattr(module, name)) for name in PURE for module in modules if hasattr(module, name)
    ]
    once = {function: cache(function) for _, _, function in had}
    try:
        for module, name, function in had:
            setattr(module, name, once[function])
        yield
    finally:
        for module, name, function in had:
            setattr(module, name, function)


def sweep(library: Library, pairs: Iterable[tuple[Promise, Promise]]) -> Outcome:
    """Every pair asked, checked and held against all data sets of a few records."""
    with asked_once():
        return _swept(library, pairs)


def _swept(library: Library, pairs: Iterable[tuple[Promise, Promise]]) -> Outcome:
    outcome = Outcome()
    for first, second in pairs:
        verdict = library[first].implies(library[second])
        found = brute(first, second, library.small)
        told = "broken" if "broken" in found else "cannot tell" if "cannot tell" in found else "holds"
        outcome.answers[verdict.answer.value, told] += 1
        if verdict.answer.value == "unknown":
            outcome.unknown[verdict.because[:60]] += 1
        wrong = what_is_wrong(first, second, library, verdict, {*found})
        if wrong:
            outcome.faults.append(f"{wrong}\n    {library[first]}\n    {library[second]}\n    {verdict}")
    return outcome
