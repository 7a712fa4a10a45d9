"""``stirred spec export``: spec.json, registry YAML, HTML and Markdown."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from stirred.cli.spec.sources import add_changes, apply_changes, read_delta, resolve
from stirred.cli.terminal.output import print_json
from stirred.cli.terminal.parser import add_language_argument
from stirred.errors import InputError
from stirred.spec.files import dumps
from stirred.toml_text import TomlError, parse_toml, read_plain_text


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
        from stirred.publish.export.catalog_about import about_entry
        from stirred.publish.export.registry import About, registry_entry, to_yaml

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
