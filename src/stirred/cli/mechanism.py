"""One mechanism without a plan file: its flags are its settings, its packet is that of the plan they describe.

  stirred NAME census.toml … --check            what would be promised; nothing is released
  stirred NAME census.toml … --out packet/      the packet: records, tables, specification, card, receipt, report

An interrupted run is taken up by the same command and gives the same packet. The key is kept outside the
packet: whoever has it can undo the noise. Keep it as you keep the census, or destroy it.
"""

import argparse
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from stirred.cli.options import (
    add_engine_arguments,
    add_invalid_argument,
    open_engine,
)
from stirred.cli.output import console, print_json, show_progress, table
from stirred.cli.parser import add_language_argument
from stirred.cli.run import describe_packet, release_plan, state_budget
from stirred.errors import InputError
from stirred.mechanisms.config import MechanismConfig, parse_settings, read_extra, read_kind
from stirred.mechanisms.registry import find_mechanism, find_registration, list_methods
from stirred.text_formats import write_toml

if TYPE_CHECKING:
    from stirred.census import Invalid
    from stirred.mechanisms.exhibits import Exhibit
    from stirred.publish import Plan
    from stirred.spec import Specification


# The flags of a command from the settings of a mechanism: one flag a field, its sentence as the help.

DEST_PREFIX = "setting "  # no flag of the command itself can be called so


def add_flags(parser: argparse.ArgumentParser, config: type[MechanismConfig]) -> None:
    """Add one flag for each setting; a setting that is not typed has the default of its model."""
    group = parser.add_argument_group("settings (the keys of a [[mechanism]] in plan.toml)")
    for name, field in config.model_fields.items():
        options = _options(name, field)
        if options is not None:
            group.add_argument(
                _flag(name, field), dest=DEST_PREFIX + name, default=argparse.SUPPRESS, **options
            )


def settings(arguments: argparse.Namespace, config: type[MechanismConfig]) -> MechanismConfig:
    """Return the settings that were typed, checked as those of a plan."""
    values: dict[str, object] = {}
    for dest, value in vars(arguments).items():
        if dest.startswith(DEST_PREFIX):
            name = dest.removeprefix(DEST_PREFIX)
            values[name] = _pairs(name, value) if _is(config.model_fields[name], dict) else value
    return parse_settings(config, values, what="the command")


def _flag(name: str, field: FieldInfo) -> str:
    """Return ``--name``, or ``--no-name`` for a setting that is on by default."""
    own = read_extra(field).get("flag")
    return str(own) if own else f"--{'no-' if field.default is True else ''}{name.replace('_', '-')}"


def _options(name: str, field: FieldInfo) -> dict[str, Any] | None:
    """Return the options of argparse, or None for a setting that has one value only."""
    told, kind = read_extra(field), read_kind(field)[0]
    usual = told.get("flag_default_words", field.default)
    known = not field.is_required() and usual not in (None, [], {}, "") and not isinstance(usual, bool)
    text = str(told.get("flag_help", field.description)) + (f" (default: {usual})" if known else "")
    options: dict[str, Any] = {"help": text.replace("%", "%%")}
    if field.is_required():
        options["required"] = True
    if kind is bool:
        return options | {"action": "store_const", "const": field.default is not True}
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return options | {"choices": choices} if all(isinstance(c, str) for c in choices) else None
    metavar = name.upper() if kind in (str, int) else "VARIABLE"
    if get_origin(kind) is list:
        nested = get_origin(get_args(kind)[0]) is list
        return options | {
            "nargs": told.get("nargs", "+"),
            "action": "append" if nested else "extend",
            "metavar": metavar,
        }
    if get_origin(kind) is dict:
        return options | {"nargs": "+", "action": "extend", "metavar": "NAME=VALUE"}
    return options | {"type": int if kind is int else str, "metavar": metavar}


def _is(field: FieldInfo, kind: type) -> bool:
    return get_origin(read_kind(field)[0]) is kind


def _pairs(name: str, words: list[str]) -> Mapping[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(
                f"--{name.replace('_', '-')} takes pairs",
                why=f"{write_toml(word)} has no equals sign",
                fix=f"--{name.replace('_', '-')} NAME=VALUE",
            )
        found[key] = value
    return found


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: those of every mechanism, and the settings of this one."""
    kind = find_registration(name)
    parser.prog = f"stirred {kind.command}"
    usage = (__doc__ or "").replace("stirred NAME", parser.prog)
    parser.description = f"{inspect.cleandoc(kind.Config.__doc__ or '')}\n\n{usage}"
    add_places(parser)
    if kind.method and kind.verb == kind.family:
        parser.description += "\nMethods (--method NAME):\n\n" + "".join(
            f"  {method:<16}{find_registration(other).summary}\n"
            for method, other in list_methods(kind.family).items()
        )
        parser.add_argument(
            "--method",
            choices=list(list_methods(kind.family)),
            default=kind.method,
            help=f"the method (default: {kind.method}); each has its own settings: stirred {kind.verb} --method NAME --help",
        )
    add_flags(parser, kind.Config)
    add_ways(parser)
    parser.set_defaults(run=partial(run, name))


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the census, the packet and the key: the arguments that every command of a release begins with."""
    parser.add_argument(
        "census", type=Path, help="census.toml, its folder, or a folder in the format of the Census Bureau"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the packet to write; must not exist")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key beside the packet)")
    parser.add_argument("--check", action="store_true", help="print what would be promised and stop")


def add_ways(parser: argparse.ArgumentParser) -> None:
    """Add what every command of a release ends with: invalid records, language, engine and JSON."""
    add_invalid_argument(parser, default="refuse")
    add_language_argument(parser)
    parser.add_argument(
        "--accept-small-effect",
        metavar="REASON",
        default="",
        help="publish although the release is expected to be nearly the truth; the reason stands on the card's first line",
    )
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(name: str, arguments: argparse.Namespace) -> int:
    """State the promise; or make the plan of this command and run it."""
    from stirred.publish.check import require_room
    from stirred.publish.plan.description import plan_of

    kind = find_mechanism(name)
    path, out = find_census_file(arguments.census), arguments.out
    mechanism = kind.of(_encode_labels(settings(arguments, kind.Config), path))
    invalid: Invalid = arguments.invalid or "refuse"
    if arguments.check:
        with open_engine(arguments) as engine:
            with show_progress(quiet=arguments.json, late=True, kind=arguments.progress) as shown:
                census = engine.read(path).check(invalid=invalid, progress=shown)
            promise = mechanism.specification(census, engine=engine)
            before = mechanism.preview(census)
            return _promise(promise, before, json=arguments.json, language=arguments.language or "en")
    if out is None:
        raise InputError(
            "there is no place for the packet",
            why="--out is not given",
            fix="--out packet/, or --check to see only the promise",
        )
    require_room(out)
    plan = plan_of(
        mechanism,
        path.parent,
        census=path.name,
        invalid=invalid,
        language=arguments.language,
        accept_small_effect=arguments.accept_small_effect,
    )
    return release(plan, out, arguments)


def release(plan: "Plan", out: Path, arguments: argparse.Namespace) -> int:
    """Run a plan that a command made, and say what was promised and kept."""
    noiseless = arguments.key is None and all(mechanism.is_noiseless for mechanism in plan.mechanisms)
    packet, ready = release_plan(plan, out, arguments, noiseless=noiseless)
    if arguments.json:
        print_json(describe_packet(packet, ready.specification))
        return 0
    told_to = console()
    told_to.print(str(ready.specification))
    for line in (*ready.specification.untouched, *ready.specification.notes, *packet.notes()):
        told_to.print(f"note: {line}")
    for made in packet.mechanisms():
        for guard in made["guards"]:
            told_to.print(f"guard: {guard['name']}: {guard['finding']}")
    for check in packet.checks():
        unit = "number" if check.numbers == 1 else "numbers"
        told_to.print(f"kept: {check.invariant} ({check.numbers:,} {unit})")
    told_to.print(f"packet: {out}")
    told_to.print(f"open {packet.public / 'report.html'}")
    return 0


def _encode_labels(config: "MechanismConfig", census: Path) -> "MechanismConfig":
    """Return the settings with labels replaced by their codes, as the codebook has them."""
    if not config.names_levels():
        return config
    from stirred.census import toml
    from stirred.census.schema import make_coder

    return config.encode_labels(
        make_coder(toml.load_schema(census / "census.toml" if census.is_dir() else census))
    )


def find_census_file(path: Path) -> Path:
    """Return the census.toml of a folder, or the folder itself where its files have a known format."""
    if not path.is_dir():
        return path
    described = path / "census.toml"
    return described if described.exists() else path.resolve()


def _promise(
    promise: "Specification",
    before: "tuple[Sequence[Exhibit], Mapping[str, object]]",
    *,
    json: bool,
    language: str,
) -> int:
    from stirred.languages import Language
    from stirred.mechanisms.exhibits import Listing
    from stirred.spec.card import Card

    exhibits, details = before
    if json:
        notes = {"notes": list(promise.notes)}
        print_json({"specification": str(promise)} | state_budget(promise) | notes | dict(details))
        return 0
    shown, said = console(), Language.of(language).translate
    shown.print(Card(promise, language=language).text())
    for exhibit in exhibits:
        for part in exhibit.parts:
            if isinstance(part, Listing):
                rows = [
                    [said(value) if isinstance(value, str) else str(value) for value in row]
                    for row in part.rows
                ]
                title = f"{said(exhibit.title)}: {said(part.caption)}"
                shown.print(table(title, [said(name) for name in part.columns], rows))
        if exhibit.note:
            shown.print(said(exhibit.note))
    return 0
