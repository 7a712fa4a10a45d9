"""``stirred spec check``: every derivation is verified by a checker with code of its own."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stirred.cli.spec.compare import add_pair, compare_pair, resolve_pair, suggest_map
from stirred.cli.spec.sources import Json, NamedSpecification, budget_json, resolve
from stirred.cli.terminal.output import console, print_json
from stirred.errors import InputError
from stirred.spec import Budget, Specification
from stirred.spec.nearest.distance import smallest_distance
from stirred.spec.verdict import Answer
from stirred.spec.verdicts.derivation import Derivation

if TYPE_CHECKING:
    from stirred.report.compared import Implication


@dataclass(frozen=True, slots=True)
class CheckedImplication:
    """An implication with the finding of the checker about its derivation."""

    asked: "Implication"
    problems: tuple[str, ...]

    @property
    def state(self) -> str:
        """Return what is known now, in the words that are printed."""
        if self.problems:
            return f"NOT VERIFIED ({self.asked.verdict.answer.value} was claimed)"
        if self.asked.verdict.answer is Answer.UNKNOWN:
            return "unknown"
        if self.asked.verdict:
            return "proved"
        shown = _has_witness(self.asked.verdict.derivation)
        return "refuted with a witness that was verified" if shown else "refuted, and the proof was verified"

    def line(self) -> str:
        """Return the question, the state and the reason in one line."""
        if self.problems:
            return f"{self.asked.question} {self.state}: {'; '.join(self.problems)}"
        word = ", because " if self.asked.verdict.answer is Answer.UNKNOWN else ": "
        return f"{self.asked.question} {self.state}{word}{self.asked.because}"

    def to_json(self) -> Json:
        return {**self.asked.to_json(), "state": self.state, "problems": list(self.problems)}


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spec check``."""
    parser.add_argument("first", metavar="A", help="a catalog name (a swap: NAME@RATE) or a spec.json")
    parser.add_argument(
        "second", metavar="B", nargs="?", help="another one; without it A is checked by itself"
    )
    add_pair(parser)


def run_check(arguments: argparse.Namespace) -> int:
    """Run ``spec check``; return 0 where every derivation is verified, 1 where one is not."""
    return _alone(arguments) if arguments.second is None else _both(arguments)


def verify_implication(asked: "Implication") -> CheckedImplication:
    """Return the verdict of an implication after the checker verified its derivation."""
    from stirred.spec.verdicts.checker.check import check_implication

    problems = check_implication(*asked.specifications, asked.verdict)
    return CheckedImplication(asked, tuple(asked.insert_names(problem) for problem in problems))


def _both(arguments: argparse.Namespace) -> int:
    first, second = resolve_pair(arguments)
    said = compare_pair(first, second)
    found = [verify_implication(asked) for asked in said.implications]
    verified = not any(item.problems for item in found)
    if arguments.json:
        print_json(
            {
                "first": {"name": said.first, **budget_json(first.specification)},
                "second": {"name": said.second, **budget_json(second.specification)},
                "implications": [item.to_json() for item in found],
                "verified": verified,
            }
        )
        return 0 if verified else 1
    out = console()
    for item in found:
        out.print(item.line())
    if hint := suggest_map(first, second):
        out.print(f"hint: {hint}")
    return 0 if verified else 1


def _alone(arguments: argparse.Namespace) -> int:
    """Check one specification: its names, that it implies itself, and whether it promises anything."""
    if arguments.map:
        raise InputError(
            "--map needs two specifications",
            why="it says which names of one are names of the other",
            fix="stirred spec check A B --map …",
        )
    if len(arguments.rate) > 1:
        raise InputError(
            f"{len(arguments.rate)} swap rates for one specification",
            why="a specification has one budget",
            fix="give one rate",
        )
    found = resolve(arguments.first, rate=arguments.rate[0] if arguments.rate else None)
    spec = found.specification
    spec.multiverse.check(spec.domain)
    itself, empty = _itself(found), _empty(found)
    near = smallest_distance(spec.domain, spec.multiverse, spec.input_premetric, spec.views)
    # a file that refutes itself is as wrong as one whose proof fails
    verified = not itself.problems and not empty.problems and itself.asked.verdict.answer is not Answer.NO
    if arguments.json:
        print_json(
            {
                "name": found.name,
                **budget_json(spec),
                "names": _describe_names(spec),
                "implies_itself": itself.to_json(),
                "promises_something": {"answer": _promises(empty), **_without_question(empty)},
                "smallest_distance": {"value": near.value, "exact": near.exact, "because": near.because},
                "verified": verified,
            }
        )
        return 0 if verified else 1
    out = console()
    for line in _lines(found, itself, empty):
        out.print(line)
    if near.value is None:
        out.print(f"smallest distance: none, because {near.because}")
    else:
        unit = spec.input_premetric
        out.print(
            f"smallest distance {near.occurs} in a universe: {near.value} by {unit}, because {near.because}"
        )
    return 0 if verified else 1


def _lines(found: NamedSpecification, itself: CheckedImplication, empty: CheckedImplication) -> Iterator[str]:
    yield f"{found.name}: {found.specification}"
    yield f"invariants: {_describe_names(found.specification)}"
    yield itself.line()
    yield f"does it promise anything? {_promises(empty)}{_reason(empty)}"
    step = empty.asked.verdict.derivation
    for premise in step.premises if step is not None else ():
        yield from (f"  {line}" for line in premise.lines())


def _itself(found: NamedSpecification) -> CheckedImplication:
    """Check that a specification implies itself; compare with a copy, so that the rules are used."""
    from stirred.report.compared import Implication

    spec = found.specification
    again = replace(spec, notes=(*spec.notes, "read again"))
    return verify_implication(
        Implication(
            premise=found.name,
            conclusion="itself",
            verdict=spec.implies(again),
            specifications=(spec, again),
        )
    )


def _empty(found: NamedSpecification) -> CheckedImplication:
    """Check whether a promise without a finite budget implies the specification, which then promises nothing."""
    from stirred.report.compared import Implication

    spec = found.specification
    nothing = replace(spec, budget=Budget.infinite(), varies=None, parts=(), bounds=())
    return verify_implication(
        Implication(
            premise="a promise without a finite budget",
            conclusion=found.name,
            verdict=nothing.implies(spec),
            specifications=(nothing, spec),
        )
    )


def _promises(empty: CheckedImplication) -> str:
    """Turn the answer around: a specification that follows from no promise at all promises nothing."""
    if empty.problems:
        return "NOT VERIFIED"
    return {Answer.YES: "no", Answer.NO: "yes", Answer.UNKNOWN: "unknown"}[empty.asked.verdict.answer]


def _reason(empty: CheckedImplication) -> str:
    if empty.problems:
        return f": {'; '.join(empty.problems)}"
    if empty.asked.verdict.answer is Answer.NO:
        return ": two data sets of one universe were found and verified, and it limits how well they can be told apart"
    return f", because {empty.asked.because}"


def _without_question(empty: CheckedImplication) -> Json:
    document = empty.to_json()
    return {name: document[name] for name in ("because", "derivation", "problems")}


def _describe_names(spec: Specification) -> str:
    """Describe what the check of names covers; wrong names were refused when the file was read."""
    domain, number = spec.domain, len(spec.multiverse)
    if not number:
        return "none are declared"
    kinds = {
        margin.record_type
        for invariant in spec.multiverse
        for margin in invariant.needs()
        if margin.record_type
    }
    bare = sorted(kind for kind in kinds if not domain.has(kind) or not domain.record_type(kind).variables)
    if not domain.record_types or bare == sorted(kinds):
        return f"{number}, but the domain {domain} lists no variables, so their names cannot be checked"
    if bare:
        return f"{number}; the domain {domain} lists no variables of {', '.join(bare)}, all other names are known"
    return f"{number}, all over variables of the domain {domain}"


def _has_witness(step: Derivation | None) -> bool:
    return step is not None and (
        step.witness is not None or any(_has_witness(each) for each in step.premises)
    )
