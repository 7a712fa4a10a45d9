"""Find the specifications that a command names: in the catalog, in spec.json files, or as a sum of several.

A swap of the catalog is also named with its rate: ``whatif-state-size@1/2``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stirred.catalog import DELTA, CatalogEntry, catalog
from stirred.catalog.entries import list_parts
from stirred.errors import InputError, SpecificationError, did_you_mean
from stirred.spec import Multiplicative, NormalizedRenyi, Specification, compose, reading
from stirred.spec.files import load

if TYPE_CHECKING:
    from stirred.spec.card import Card
from stirred.spec.numbers.numerals import parse_fraction
from stirred.spec.numbers.rounding import to_json_number
from stirred.toml_text import parse_json, read_plain_text

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
