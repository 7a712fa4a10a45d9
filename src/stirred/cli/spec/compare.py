"""``stirred spec compare``: two specifications part by part, and which of them promises more."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stirred.cli.spec.sources import NamedSpecification, budget_json, is_swap, resolve
from stirred.cli.terminal.output import console, print_json, table
from stirred.errors import InputError, did_you_mean
from stirred.spec import Relation, Specification, compare

if TYPE_CHECKING:
    from stirred.report.compared import Compared

SAME = "same"


def add_pair(parser: argparse.ArgumentParser) -> None:
    """The options of everything that is done with two specifications."""
    parser.add_argument(
        "--rate",
        nargs="+",
        default=[],
        metavar="P",
        help="swap rate of both, or of A and of B; the same as NAME@P",
    )
    parser.add_argument(
        "--map",
        nargs="+",
        action="extend",
        default=[],
        metavar="A=B",
        help="restate A on the domain of B: a variable (or record type) of A and its name in B; names that are equal "
        "need no entry, and 'same' says that there are no others",
    )


def add_compare(parser: argparse.ArgumentParser) -> None:
    """The options of ``spec compare``."""
    parser.add_argument("first", metavar="A", help="a catalog name (a swap: NAME@RATE) or a spec.json")
    parser.add_argument("second", metavar="B", help="another one")
    add_pair(parser)
    parser.add_argument("--why", action="store_true", help="also print how each implication was decided")


def run_compare(arguments: argparse.Namespace) -> int:
    """``spec compare``: five verdicts and an overall one where it is proved."""
    first, second = pair_of(arguments)
    said = compared(first, second)
    notes = [*([f"{first.name} is {first.restated}"] if first.restated else []), *said.warnings]
    if arguments.json:
        print_json(
            {
                "first": {"name": said.first, **budget_json(first.specification)},
                "second": {"name": said.second, **budget_json(second.specification)},
                "parts": {
                    part: {"verdict": verdict, "because": because} for part, verdict, because in said.rows
                },
                "overall": {
                    "verdict": said.found.overall.relation.value,
                    "headline": headline(said),
                    "because": said.overall,
                },
                "derivations": {"forth": said.forth.to_json(), "back": said.back.to_json()},
                "warnings": notes,
            }
        )
        return 0
    out = console()
    out.print(headline(said) + "\n", style="bold")
    out.print(table(f"How {said.first} stands to {said.second}", ["part", "verdict", "because"], said.rows))
    out.print(f"overall: {said.overall}")
    for note in notes:
        out.print(f"note: {note}")
    if hint := hint_of(first, second):
        out.print(f"hint: {hint}")
    if arguments.why:
        out.print()
        for line in said.why():
            out.print(line)
    return 0


def headline(said: "Compared") -> str:
    """Which of the two is stronger, in one sentence."""
    first, second, relation = said.first, said.second, said.found.overall.relation
    if relation is Relation.STRONGER:
        return f"{first} is stronger: it promises more than {second}."
    if relation is Relation.WEAKER:
        return f"{second} is stronger: it promises more than {first}."
    if relation is Relation.EQUAL:
        return f"Neither is stronger: {first} and {second} promise the same."
    if relation is Relation.INCOMPARABLE:
        return f"Neither is stronger: {first} and {second} each lack something that the other promises."
    for one, other, verdict in ((first, second, said.found.forth), (second, first, said.found.back)):
        if verdict:
            return f"{one} is at least as strong as {other}; whether it is stronger is not known."
    return f"Which of {first} and {second} is stronger is not known."


def pair_of(arguments: argparse.Namespace) -> tuple[NamedSpecification, NamedSpecification]:
    """Both specifications, each at its rate, the first restated on the second's domain where a map is given."""
    first, second = arguments.first, arguments.second
    rates: list[str] = arguments.rate
    if len(rates) > 2:
        raise InputError(
            f"{len(rates)} swap rates for two specifications",
            why="each specification has one budget",
            fix="give one rate for both, or one for each",
        )
    if len(rates) == 2:
        one, two = resolve(first, rate=rates[0]), resolve(second, rate=rates[1])
    else:
        # one rate holds for each swap; where neither is one, the first says that it has no rate
        rate = rates[0] if rates else None
        swaps = is_swap(first), is_swap(second)
        if rate is not None and not any(swaps):
            swaps = True, True
        one, two = (
            resolve(source, rate=rate if swap else None)
            for source, swap in zip((first, second), swaps, strict=True)
        )
    if one.name == two.name and first != second:
        one, two = replace(one, name=first), replace(two, name=second)
    return _mapped(one, two, arguments.map), two


def compared(first: NamedSpecification, second: NamedSpecification) -> "Compared":
    """The comparison with the names that the user typed."""
    # imported here: the room of the reports is slow to load, and only two commands need it
    from stirred.report.compared import Compared

    return Compared(
        first=first.name, second=second.name, found=compare(first.specification, second.specification)
    )


def _mapped(
    first: NamedSpecification, second: NamedSpecification, words: Sequence[str]
) -> NamedSpecification:
    """The first on the second's domain."""
    here, there = first.specification.domain, second.specification.domain
    names = [word for word in words if word != SAME]
    if not words or (here == there and not names):
        return first
    if here == there:
        raise InputError(
            "there is nothing to map", why=f"both specifications speak of {here}", fix="leave --map out"
        )
    variables: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for word in names:
        mine, sign, theirs = word.partition("=")
        if not (sign and mine and theirs):
            raise InputError(
                f"cannot read the map {word!r}",
                why="it names no two variables",
                fix="--map tract=tract hid=household, or --map same where equal names mean the same",
            )
        known = {*_names(first.specification), *here.spine}
        if known and mine not in known and not here.has(mine):
            raise InputError(
                f"cannot map {mine!r}", why=f"{here} has no such variable", fix=did_you_mean(mine, known)
            )
        between_kinds = here.has(mine) and there.has(theirs)
        into = kinds if between_kinds else variables
        if into.setdefault(mine, theirs) != theirs:
            raise InputError(
                f"{mine} is mapped twice",
                why=f"to {into[mine]} and to {theirs}",
                fix="map each name once",
            )
    told = ", ".join(f"{mine} = {theirs}" for mine, theirs in sorted({**kinds, **variables}.items()))
    return replace(
        first,
        specification=first.specification.on(there, variables, record_types=kinds),
        restated=f"restated from the domain {here} on {there}" + (f", where {told}" if told else ""),
    )


def hint_of(first: NamedSpecification, second: NamedSpecification) -> str:
    """How two domains can be brought together; nothing where they are one."""
    there = second.specification.domain
    if first.specification.domain == there:
        return ""
    common = ", ".join(sorted(_names(first.specification) & _names(second.specification))) or "none"
    return (
        f"--map same restates {first.name} on the domain {there}, where variables of equal names are the same "
        f"variable (equal names: {common}); --map mine=theirs adds others"
    )


def _names(spec: Specification) -> set[str]:
    return {name for kind in spec.domain.record_types for name in kind.names()}
