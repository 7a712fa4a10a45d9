"""The parser of ``stirred``: every verb has a module, which is imported only when the verb is called."""

import argparse
import importlib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from stirred.errors import InputError, did_you_mean
from stirred.languages.phrase import CODES

# verb → (module, one line of help). A verb's module has add_arguments(parser) and run(arguments) -> int.
VERBS: dict[str, tuple[str, str]] = {
    "assess": (
        "stirred.cli.assess",
        "hold packets against the truth: utility, audit, attack, universe",
    ),
    "audit": (
        "stirred.cli.audit",
        "claimed and observed loss of the mechanisms of a plan, on invented records",
    ),
    "budget": ("stirred.cli.budget", "the budget of a swap from its stratum and rate, and back"),
    "catalog": ("stirred.cli.catalog", "the published specifications"),
    "completion": (
        "stirred.cli.completion",
        "a script that completes commands in bash, zsh or fish",
    ),
    "das2020": ("stirred.cli.das2020", "the products of the 2020 census, as one composed release"),
    "data": ("stirred.cli.data", "describe, check and synthesise censuses"),
    "demo": ("stirred.cli.demo", "three releases of a synthetic census, compared in one report"),
    "equate": (
        "stirred.cli.equate",
        "where two methods meet at equal success of one attack (heuristic)",
    ),
    "frontier": ("stirred.cli.frontier", "risk against error over a family of releases"),
    "lookup": ("stirred.cli.lookup", "one published number: which to quote, with its interval"),
    "packet": ("stirred.cli.packet", "verify and compare packets"),
    "plan": ("stirred.cli.plan", "describe a release, see its promise, tune and justify it"),
    "reproduce": ("stirred.cli.reproduce", "the tables and figures of the paper"),
    "run": ("stirred.cli.run", "run a plan: plan → packet"),
    "serve": ("stirred.cli.serve", "the workbench: design a release by looking, in a browser"),
    "spec": ("stirred.cli.spec", "show, compare, check, compose, convert and export specifications"),
}

# words that people try first, and the command that does it
SUGGESTED_COMMANDS = {
    "card": "stirred spec show packet/",
    "check": "stirred plan check plan.toml, or --check with the command of a mechanism",
    "compare": "stirred spec compare A B, or stirred packet compare a/ b/ --out both.html",
    "describe": "stirred data describe FILE",
    "new": "stirred plan new plan.toml",
    "report": "open packet/public/report.html; of several: stirred packet compare a/ b/ --out both.html",
    "show": "stirred spec show NAME",
    "synth": "stirred data synth demo --out census",
    "tune": "stirred plan tune plan.toml",
    "verify": "stirred packet verify packet/",
}

EXIT_CODES = (
    "exit codes: 0 done; 1 a check found a problem; 2 wrong input or a refusal, nothing was released;\n"
    "70 a fault of stirred; 74 the system refused (a full disk, a limit); 129, 130, 143, 152 stopped by a\n"
    "signal, the same command goes on. See docs/reference/exit-codes.md."
)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Show the examples of a description as they are written."""


if TYPE_CHECKING:
    Choices = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Choices = argparse._SubParsersAction


class Actions(Choices):
    """The actions of a verb; the help of one begins with what the list of all says about it."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add an action; its description is its line of help, as a sentence."""
        text = str(settings.get("help") or "")
        settings.setdefault("description", f"{text[:1].upper()}{text[1:]}." if text else None)
        return super().add_parser(name, **settings)


class VerbParser(argparse.ArgumentParser):
    """A parser that shows examples as they are written and names the exit codes below its help."""

    def __init__(self, *, epilog: str | None = EXIT_CODES, **settings: object) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(epilog=epilog, **settings)  # type: ignore[arg-type]
        self.register("action", "parsers", Actions)


def parser_for(words: Sequence[str]) -> VerbParser:
    """Return the parser with all verbs; only the called one has arguments and is imported."""
    parser = VerbParser(
        prog="stirred", description="Formally private official statistics that keep some numbers exact."
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    _add_verbs(parser, next((word for word in words if not word.startswith("-")), None))
    return parser


def whole_parser() -> VerbParser:
    """Return the parser with all arguments of all verbs, for completion and tests; import every verb."""
    parser = VerbParser(prog="stirred")
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    _add_verbs(parser, None, every=True)
    return parser


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs or actions below a parser, by name."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield every parser below this one, and itself, with the words that lead to it."""
    yield words, parser
    for name, inner in actions_of(parser).items():
        yield from commands(inner, (*words, name))


def require_verb(parser: VerbParser, words: Sequence[str]) -> None:
    """Refuse an unknown command, and name the one that was probably meant."""
    word, known = words[0] if words else "", actions_of(parser)
    if word and not word.startswith("-") and word not in known:
        near = get_close_matches(word, SUGGESTED_COMMANDS, n=1, cutoff=0.75)
        raise InputError(
            f"stirred has no command {word!r}",
            why="stirred --help lists all of them",
            fix=SUGGESTED_COMMANDS[near[0]] if near else did_you_mean(word, known),
        )


def _add_verbs(parser: VerbParser, called: str | None, *, every: bool = False) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=VerbParser)
    for verb, (module_name, text) in VERBS.items():
        sub = verbs.add_parser(verb, help=text)
        if every or verb == called:
            module = importlib.import_module(module_name)
            sub.description = module.__doc__
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    if called in VERBS:
        return  # to look for the mechanisms of other packages takes longer than most verbs
    from stirred.mechanisms.registry import list_mechanisms

    for item in list_mechanisms().values():
        names = [item.verb, item.name] if item.verb else [item.name]
        if names[0] in VERBS:
            raise InputError(
                f"the mechanism {item.name} cannot be a command",
                why=f"stirred {names[0]} is another one",
                fix="rename the mechanism of that package",
            )
        sub = verbs.add_parser(names[0], aliases=names[1:], help=item.summary)
        if every or called in names:
            importlib.import_module("stirred.cli.mechanism").add_arguments(item.name, sub)


def resolve_method(words: list[str]) -> list[str]:
    """Replace ``--method NAME`` by the verb of that mechanism, and return the words of the command.

    >>> resolve_method(["swap", "census.toml", "--method", "targeted", "--check"])
    ['targeted-swapping', 'census.toml', '--check']
    """
    place = next((i for i, word in enumerate(words) if word.partition("=")[0] == "--method"), None)
    if place is None:
        return words
    from stirred.mechanisms.registry import list_methods

    known = list_methods(words[0])
    _, joined, value = words[place].partition("=")
    rest = words[place + 1 :]
    if not joined:
        value, rest = (rest or [""])[0], rest[1:]
    if not known or (value not in known and "--help" in words):
        return words
    if value not in known:
        raise InputError(
            f"stirred {words[0]} has no method {value!r}",
            why="a method is a mechanism with flags of its own",
            fix=did_you_mean(value, known),
        )
    return [known[value], *words[1:place], *rest]


def add_language_argument(parser: argparse.ArgumentParser, *, default: str = "en") -> None:
    """Add ``--language``; ``default`` is said in the help."""
    parser.add_argument(
        "--language",
        choices=CODES,
        help=f"the language of the card and of the public report (default: {default}); JSON, receipts and names of "
        "the census stay as they are",
    )
