"""Specifications: list the published ones, show one, compare two, check the proofs, add up several, convert, export.

A specification is a name of the catalog (`stirred spec list`), a spec.json file, or a packet. A swap of the catalog is
also named with a swap rate: NAME@RATE.

  stirred spec list                                 the catalog: what others promised, every ε computed when it is shown
  stirred spec show das-2020                        the card: sentence, five parts, odds, other assumptions
  stirred spec show whatif-state@1/2                a swap at another rate; the same as --rate 1/2
  stirred spec show pl-2020 --per household         another unit of protection
  stirred spec show pl-2020 --language fr           the card in French; also de, es
  stirred spec compare das-2020 whatif-county       five verdicts with reasons, and which promises more
  stirred spec compare das-2010 das-2020 --why      also how each implication was proved or refuted
  stirred spec compare whatif-state@1/2 whatif-state@1/20
  stirred spec compare mine.json das-2020 --map same            mine.json restated on the census of das-2020
  stirred spec compare mine.json das-2020 --map ward=tract      where a variable has another name there
  stirred spec check das-2010 das-2020              verify both proofs with a checker of their own
  stirred spec check mine.json                      one file: its invariants, and whether it promises anything
  stirred spec compose pl-2020 dhc-2020             all outputs published together
  stirred spec convert pl-persons-2020 --delta 1e-10 --distance 1 2
  stirred spec export pl-2020 --registry            YAML for the OpenDP deployments registry
  stirred spec export pl-2020 --spec --out spec.json

Every one takes --json. Numbers are rounded up; exact budgets stand in the column "exactly" and in spec.json.
`spec check` ends with 0 where every proof is verified (an open question is not a fault) and with 1 where one is not.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stirred.catalog import DELTA, CatalogEntry, catalog
from stirred.catalog.entries import list_parts
from stirred.cli import catalog as catalog_table
from stirred.cli.output import console, print_json, table
from stirred.cli.parser import add_language_argument
from stirred.errors import InputError, SpecificationError, did_you_mean
from stirred.spec import (
    Budget,
    Multiplicative,
    NormalizedRenyi,
    Relation,
    Specification,
    compare,
    compose,
    reading,
)
from stirred.spec.exact import parse_fraction, to_json_number
from stirred.spec.files import dumps, load, save, to_json
from stirred.spec.nearest import smallest_distance
from stirred.spec.verdict import Answer, Derivation
from stirred.text_formats import TomlError, parse_json, parse_toml, read_plain_text

if TYPE_CHECKING:
    from stirred.report.comparison import Implication, NamedComparison
    from stirred.spec.card import Card


# Find the specifications that a command names: in the catalog, in spec.json files, or as a sum of several.
#
# A swap of the catalog is also named with its rate: ``whatif-state-size@1/2``.

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSpecification:
    """A specification with its name, and the entry or entries it comes from; ``unknown`` are parts of unknown cost."""

    name: str  # as the user typed it, without folders
    title: str
    specification: Specification
    entry: CatalogEntry | None = None
    unknown: tuple[str, ...] = ()
    restated: str = ""  # from which domain it was restated, and with which names

    def card(self, specification: Specification, *, delta: Fraction) -> "Card":
        """Return the card of this specification, or of the specification it was changed into."""
        if self.entry is not None:
            return self.entry.card(delta=delta, specification=specification)
        notes = (f"of unknown cost, hence ≥: {', '.join(self.unknown)}",) if self.unknown else ()
        finite = specification.budget.is_finite
        from stirred.spec.card import Card

        return Card(
            specification,
            title=self.title,
            delta=delta,
            at_least=bool(self.unknown) and finite,
            pieces=list_parts(specification),
            more_notes=notes,
        )


def resolve(*sources: str, rate: str | None = None) -> NamedSpecification:
    """Return the specification of names and files; ``rate`` applies to names without their own rate."""
    found = [_one(source, rate) for source in sources if source not in catalog.unstated]
    unknown = [source for source in sources if source in catalog.unstated]
    for item in found:
        unknown += item.unknown
    if not found:
        catalog.entry(sources[0])  # says that nobody has stated a specification for it
    if len(found) == 1 and len(sources) == 1:
        return found[0]
    return NamedSpecification(
        name=" + ".join(sources),
        title=" + ".join(sources),
        specification=compose([item.specification for item in found])
        if len(found) > 1
        else found[0].specification,
        unknown=tuple(dict.fromkeys(unknown)),
    )


def is_swap(source: str) -> bool:
    """Return whether a source is a swap of the catalog that names no rate."""
    return source in catalog and bool(catalog.entry(source).rates)


def _split(source: str) -> tuple[str, str | None]:
    """Split a source into its name and the rate after @; a file name may contain an @."""
    path = Path(source)
    if "@" not in source or path.suffix == ".json" or path.exists():
        return source, None
    name, _, rate = source.rpartition("@")
    return name, rate


def _one(source: str, rate: str | None) -> NamedSpecification:
    name, own = _split(source)
    path = Path(name)
    if not name or name in catalog or not (path.suffix == ".json" or path.exists()):
        if name not in catalog and name not in catalog.unstated:
            known = [*catalog, *catalog.unstated]
            swaps = [f"{known_name}@{own}" for known_name in catalog if is_swap(known_name)]
            raise InputError(
                f"no specification {source!r}",
                why="it is neither in the catalog nor a file",
                fix=did_you_mean(source, known if own is None else swaps),
            )
        return _entry(name, rate if own is None else own)
    if own is not None or rate is not None:
        raise InputError(
            "a swap rate can only be given for entries of the catalog",
            why="a spec.json has one budget",
            fix="leave the rate out",
        )
    called = path.name or source
    if path.is_dir():
        inside = (path / "public" / "spec.json", path / "spec.json")  # a packet, or a copy of its public part
        found = next((file for file in inside if file.exists()), None)
        if found is None:
            raise InputError(
                f"the folder {source} holds no spec.json",
                why="the specification of a packet is in this file",
                fix="give a packet, a copy of its public part, or the file itself",
            )
        return NamedSpecification(
            name=called, title=_title(found.parent) or called, specification=load(found)
        )
    return NamedSpecification(name=called, title=path.stem, specification=load(path))


def _title(public: Path) -> str:
    """Return the title of a packet from its receipt, or ""."""
    try:
        document = parse_json(read_plain_text(public / "receipt.json"))
    except (OSError, ValueError):
        return ""
    return str(document.get("title", "")) if isinstance(document, dict) else ""


def _entry(name: str, rate: str | None) -> NamedSpecification:
    entry = catalog.entry(name)
    spec = entry.specification if rate is None else entry.at(parse_fraction(rate, "swap rate"))
    return NamedSpecification(
        name=entry.name if rate is None else f"{entry.name}@{rate}",
        title=entry.title,
        specification=spec,
        entry=entry,
        unknown=tuple(unstated.name for unstated in entry.omits),
    )


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Add the options that restate a specification."""
    parser.add_argument("--delta", metavar="D", help="δ of (ε, δ) readings (default: 1e-10)")
    parser.add_argument("--per", metavar="UNIT", help="state it per person or per household")
    parser.add_argument(
        "--constant", type=int, choices=[1, 2], help="households a person's change alters (default: 1)"
    )
    parser.add_argument("--copies", type=int, metavar="K", help="records one contributor may be imputed into")
    parser.add_argument(
        "--without", metavar="INVARIANT", help="the same release without declaring this invariant"
    )
    parser.add_argument("--rate", metavar="P", help="swap rate, for entries that are swaps")


def apply_changes(spec: Specification, arguments: argparse.Namespace) -> Specification:
    """Return the specification restated by the given options."""
    if arguments.per is not None or arguments.constant is not None or arguments.copies is not None:
        link: Literal["kept", "free"] | None = "free" if arguments.constant == 2 else None
        spec = spec.per(arguments.per or spec.input_premetric.unit, link=link, copies=arguments.copies)
    if arguments.without is not None:
        known = {invariant.words(): invariant for invariant in spec.multiverse}
        if arguments.without not in known:
            raise SpecificationError(
                f"no invariant {arguments.without!r} here",
                why="only a declared invariant can be left out",
                fix=did_you_mean(arguments.without, known),
            )
        spec = spec.without(known[arguments.without])
    return spec


def read_delta(arguments: argparse.Namespace) -> Fraction:
    """Return δ as an exact number."""
    if arguments.delta is None:
        return DELTA
    delta = parse_fraction(arguments.delta, "delta")
    if not 0 < delta < 1:
        raise InputError("delta must lie between 0 and 1", why="it is a probability", fix="--delta 1e-10")
    return delta


def budget_json(spec: Specification) -> Json:
    """Return the flavor and the budget as JSON values, rounded up and exact."""
    zcdp = isinstance(spec.output_premetric, NormalizedRenyi)
    shown = spec.rho_squared if zcdp else spec.budget
    return {
        "domain": spec.domain.name,
        "invariants": [invariant.words() for invariant in spec.multiverse],
        "input_premetric": str(spec.input_premetric),
        "unit": spec.input_premetric.unit,
        "output_premetric": str(spec.output_premetric),
        "rho_squared" if zcdp else "epsilon": to_json_number(shown.upper(6)),
        "exact": shown.exact,
        "status": spec.evidence.status,
        "source": spec.evidence.source,
    }


def card_json(card: "Card") -> Json:
    """Return the card as a JSON document."""
    what = card.bound_odds()
    return {
        "title": card.title,
        "sentence": card.sentence(),
        **budget_json(card.specification),
        "budget": card.budget(),
        "at_least": card.at_least,
        "odds": {
            "distance": what.distance,
            "because": what.reason,
            "log_factor": None if what.log_odds is None else to_json_number(what.log_odds),
            "factor": what.factor,
            "exception": what.exception,
            "best_test_errs": what.error,
            "near_certainty_possible": what.near_certain,
        },
        "readings": readings_json(card.specification, card.delta, [1, 2]) if card.readings() else [],
        "bounds": [
            {"name": bound.name, "exact": bound.budget.exact, "status": bound.status, "tight": bound.tight}
            for bound in card.specification.bounds
        ],
        "assumptions": [{"if": v.words, "budget": v.budget, "odds": v.odds} for v in card.variants],
        "worked": card.write_example(),
        "warning": card.warning(),
        "notes": list(card.notes()),
    }


def readings_json(spec: Specification, delta: Fraction, distances: Sequence[int]) -> list[Json]:
    """Return (ε, δ) readings at each distance: by way of zCDP, and ε at δ = 0 for pure DP."""
    zcdp = spec if isinstance(spec.output_premetric, NormalizedRenyi) else spec.under(NormalizedRenyi())
    pure = isinstance(spec.output_premetric, Multiplicative)
    found: list[Json] = []
    for distance in distances:
        simple, tight = (
            reading(zcdp.rho_squared, delta, distance=distance, tight=best).epsilon for best in (False, True)
        )
        row: Json = {
            "distance": distance,
            "delta": float(delta),
            "epsilon_simple": to_json_number(simple),
            "epsilon_tight": to_json_number(tight),
        }
        if pure:
            row["epsilon_pure"] = to_json_number((spec.budget * distance).upper(6))
        found.append(row)
    return found


# ``stirred spec compare``: two specifications part by part, and which of them promises more.

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
    from stirred.report.comparison import NamedComparison

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


# ``stirred spec check``: every derivation is verified by a checker with code of its own.


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
    from stirred.report.comparison import Implication

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
    from stirred.report.comparison import Implication

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


# ``stirred spec export``: spec.json, registry YAML, HTML and Markdown.


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``spec export``."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="NAME|FILE",
        help="catalog names or spec.json files (several: their sum)",
    )
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--registry", action="store_true", help="YAML for the OpenDP deployments registry")
    form.add_argument("--spec", action="store_true", help="spec.json")
    form.add_argument("--html", action="store_true", help="the card as a self-contained page")
    form.add_argument("--markdown", action="store_true", help="the card as Markdown")
    parser.add_argument(
        "--about", type=Path, metavar="TOML", help="what the registry asks about the data product"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of standard output")
    add_changes(parser)
    add_language_argument(parser)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the specification in the form asked for."""
    found = resolve(*arguments.sources, rate=arguments.rate)
    spec, delta = apply_changes(found.specification, arguments), read_delta(arguments)
    card = found.card(spec, delta=delta)
    if arguments.registry:
        # imported here: the room that runs plans is slow to load, and only this form needs it
        from stirred.publish.registry import About, about_entry, registry_entry, to_yaml

        about = about_entry(found.entry) if arguments.about is None else About.of(_toml(arguments.about))
        document = registry_entry(card, about)
        text = to_yaml(document)
    else:
        written = replace(card, language=arguments.language or "en")
        text = dumps(spec) if arguments.spec else written.html() if arguments.html else written.markdown()
        document = {"text": text}
    if arguments.out is not None:
        _write(arguments.out, text)
    if arguments.json:
        if arguments.spec:
            document = json.loads(text)
        print_json(document)
    elif arguments.out is None:
        sys.stdout.write(text)
    else:
        print(f"written: {arguments.out}")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {path.name}",
            why=error.strerror or "unknown reason",
            fix="name a file that can be written",
        ) from None


def _toml(path: Path) -> dict[str, object]:
    try:
        return parse_toml(read_plain_text(path))
    except OSError as error:
        raise InputError(
            f"cannot read {path.name}",
            why=error.strerror or "unknown reason",
            fix="give the path of a TOML file",
        ) from None
    except (TomlError, UnicodeDecodeError):
        raise InputError(
            f"cannot read {path.name}", why="it is not valid TOML", fix="see docs/reference/spec-json.md"
        ) from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions on specifications."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    listed = _command(commands, "list", "the published specifications", catalog_table.run)
    listed.description = catalog_table.__doc__
    catalog_table.add_arguments(listed)
    show = _command(commands, "show", "one specification as a card", run_show)
    show.add_argument("source", metavar="NAME|FILE", help="a catalog name or a spec.json")
    add_changes(show)
    add_language_argument(show)
    two = _command(commands, "compare", "two specifications, part by part", run_compare)
    add_compare(two)
    verify = _command(commands, "check", "the proofs behind a comparison, verified", run_check)
    add_check(verify)
    total = _command(commands, "compose", "several specifications published together", run_compose)
    total.add_argument("sources", nargs="+", metavar="NAME|FILE", help="catalog names or spec.json files")
    total.add_argument("--out", type=Path, metavar="FILE", help="also write the sum as a spec.json")
    add_changes(total)
    add_language_argument(total)
    convert = _command(commands, "convert", "readings at a δ, other units, other premetrics", run_convert)
    convert.add_argument("source", metavar="NAME|FILE", help="a catalog name or a spec.json")
    convert.add_argument(
        "--distance", type=int, nargs="+", action="extend", metavar="K", help="distances (default: 1 2)"
    )
    add_changes(convert)
    export = _command(commands, "export", "write it for others to read", run_export)
    add_export(export)


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    text: str,
    action: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(action=action)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    result: int = arguments.action(arguments)
    return result


def run_show(arguments: argparse.Namespace) -> int:
    """Run ``spec show``: print the card."""
    found = resolve(arguments.source, rate=arguments.rate)
    card = found.card(apply_changes(found.specification, arguments), delta=read_delta(arguments))
    if arguments.json:
        print_json(card_json(card))
    else:
        console().print(replace(card, language=arguments.language or "en").text())
    return 0


def run_compose(arguments: argparse.Namespace) -> int:
    """Run ``spec compose``: print the sum, with "≥" when it has a part of unknown cost."""
    found = resolve(*arguments.sources, rate=arguments.rate)
    spec = apply_changes(found.specification, arguments)
    if arguments.out is not None:
        save(spec, arguments.out)
    card = found.card(spec, delta=read_delta(arguments))
    if arguments.json:
        print_json({**card_json(card), "unknown": list(found.unknown), "specification": to_json(spec)})
    else:
        console().print(replace(card, language=arguments.language or "en").text())
    return 0


def run_convert(arguments: argparse.Namespace) -> int:
    """Run ``spec convert``: print the budget as zCDP, and its (ε, δ) readings at stated distances."""
    found = resolve(arguments.source, rate=arguments.rate)
    spec, delta = apply_changes(found.specification, arguments), read_delta(arguments)
    distances = arguments.distance or [1, 2]
    zcdp = spec if isinstance(spec.output_premetric, NormalizedRenyi) else spec.under(NormalizedRenyi())
    if arguments.json:
        print_json(
            {
                "name": found.name,
                **budget_json(spec),
                "rho_squared": to_json_number(zcdp.rho_squared.upper(6)),
                "delta": float(delta),
                "readings": readings_json(spec, delta, distances),
                "notes": list(spec.notes),
            }
        )
        return 0
    from stirred.spec.card import Card, shorten
    from stirred.spec.card.words import write_decimal, write_small

    exact = zcdp.rho_squared
    columns = ["distance", "δ", "ε simple", "ε tight"]
    rows = [
        [str(k), write_small(delta), _read(exact, delta, k), _read(exact, delta, k, tight=True)]
        for k in distances
    ]
    if isinstance(spec.output_premetric, Multiplicative):
        columns.append("ε at δ = 0 (pure)")
        rows = [
            [*row, write_decimal((spec.budget * k).upper(4))] for row, k in zip(rows, distances, strict=True)
        ]
    out = console()
    card = Card(spec, title=found.title, delta=delta)
    out.print(f"{found.title}\n{spec.input_premetric}, {spec.output_premetric}: {card.budget()}")
    out.print(f"as zCDP: ρ² = {write_decimal(exact.upper(4))} (exactly {shorten(exact.exact)})\n")
    out.print(table("Read as (ε, δ), at each distance alone; by way of zCDP", columns, rows))
    for note in spec.notes:
        out.print(f"- {note}")
    return 0


def _read(rho_squared: Budget, delta: Fraction, distance: int, *, tight: bool = False) -> str:
    from stirred.spec.card.words import write_decimal

    return write_decimal(reading(rho_squared, delta, distance=distance, tight=tight, decimals=4).epsilon)
