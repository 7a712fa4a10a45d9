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
    from stirred.report.compared import NamedComparison

SAME = "same"


def add_pair(parser: argparse.ArgumentParser) -> None:
    """Add the options of every action on two specifications."""
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
    """Add the options of ``spec compare``."""
    parser.add_argument("first", metavar="A", help="a catalog name (a swap: NAME@RATE) or a spec.json")
    parser.add_argument("second", metavar="B", help="another one")
    add_pair(parser)
    parser.add_argument("--why", action="store_true", help="also print how each implication was decided")


def run_compare(arguments: argparse.Namespace) -> int:
    """Run ``spec compare``: print five verdicts, and an overall one where it is proved."""
    first, second = resolve_pair(arguments)
    said = compare_pair(first, second)
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
                    "headline": write_headline(said),
                    "because": said.overall,
                },
                "derivations": {"forth": said.forth.to_json(), "back": said.back.to_json()},
                "warnings": notes,
            }
        )
        return 0
    out = console()
    out.print(write_headline(said) + "\n", style="bold")
    out.print(table(f"How {said.first} stands to {said.second}", ["part", "verdict", "because"], said.rows))
    out.print(f"overall: {said.overall}")
    for note in notes:
        out.print(f"note: {note}")
    if hint := suggest_map(first, second):
        out.print(f"hint: {hint}")
    if arguments.why:
        out.print()
        for line in said.why():
            out.print(line)
    return 0


def write_headline(said: "NamedComparison") -> str:
    """Write in one sentence which of the two is stronger."""
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


def resolve_pair(arguments: argparse.Namespace) -> tuple[NamedSpecification, NamedSpecification]:
    """Return both specifications at their rates; restate the first on the second's domain if a map is given."""
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
    return _map_domain(one, two, arguments.map), two


def compare_pair(first: NamedSpecification, second: NamedSpecification) -> "NamedComparison":
    """Return the comparison with the names that the user typed."""
    # imported here: the room of the reports is slow to load, and only two commands need it
    from stirred.report.compared import NamedComparison

    return NamedComparison(
        first=first.name, second=second.name, found=compare(first.specification, second.specification)
    )


def _map_domain(
    first: NamedSpecification, second: NamedSpecification, words: Sequence[str]
) -> NamedSpecification:
    """Restate the first specification on the second's domain."""
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
        known = {*_list_variables(first.specification), *here.spine}
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


def suggest_map(first: NamedSpecification, second: NamedSpecification) -> str:
    """Explain how two domains can be mapped to each other; return "" where they are equal."""
    there = second.specification.domain
    if first.specification.domain == there:
        return ""
    common = (
        ", ".join(sorted(_list_variables(first.specification) & _list_variables(second.specification)))
        or "none"
    )
    return (
        f"--map same restates {first.name} on the domain {there}, where variables of equal names are the same "
        f"variable (equal names: {common}); --map mine=theirs adds others"
    )


def _list_variables(spec: Specification) -> set[str]:
    return {name for kind in spec.domain.record_types for name in kind.names()}
