"""The verbs of ``stirred``: every one has a module, which is imported only when the verb is called."""

import argparse
import importlib
from collections.abc import Sequence
from difflib import get_close_matches

from stirred.cli.parser import Actions, VerbParser, actions_of
from stirred.errors import InputError, did_you_mean

MECHANISMS_HEADING = "release: one mechanism by itself"
# heading → verb → (module, one line of help). A verb's module has add_arguments(parser) and run(arguments) -> int.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "begin": {
        "demo": ("stirred.cli.demo", "three releases of a synthetic census, compared in one report"),
        "data": ("stirred.cli.data", "describe, check and synthesise censuses"),
        "plan": ("stirred.cli.plan", "describe a release, see its promise, tune and justify it"),
        "serve": ("stirred.cli.serve", "the workbench: design a release by looking, in a browser"),
        "completion": ("stirred.cli.completion", "a script that completes commands in your shell"),
    },
    "release": {
        "run": ("stirred.cli.run", "run a plan: plan → packet"),
        "das2020": ("stirred.cli.das2020", "the products of the 2020 census, as one composed release"),
    },
    MECHANISMS_HEADING: {},  # those of the registry
    "check": {
        "packet": ("stirred.cli.packet", "look up a number; verify, sign and compare packets"),
    },
    "test": {
        "assess": ("stirred.cli.assess", "hold packets against the truth: utility, audit, attack, universe"),
        "audit": (
            "stirred.cli.audit",
            "claimed and observed loss of the mechanisms of a plan, on invented records",
        ),
        "frontier": ("stirred.cli.frontier", "risk against error over a family of releases"),
    },
    "state": {
        "spec": (
            "stirred.cli.spec",
            "list, show, compare, check, compose, convert and export specifications",
        ),
        "budget": ("stirred.cli.budget", "the budget of a swap from its stratum and rate, and back"),
        "reproduce": ("stirred.cli.reproduce", "the tables and figures of the paper"),
    },
}
VERBS = {verb: told for verbs in GROUPS.values() for verb, told in verbs.items()}
# what a command was called before, and is called now
RENAMED = {"catalog": ("spec", "list"), "lookup": ("packet", "lookup")}
# words that people try first, and the command that does it
SUGGESTED_COMMANDS = {
    "card": "stirred spec show packet/",
    "check": "stirred plan check plan.toml, or --check with the command of a mechanism",
    "compare": "stirred spec compare A B, or stirred packet compare a/ b/ --out both.html",
    "describe": "stirred data describe FILE",
    "equate": "stirred frontier plan.toml, with one [[mechanism]] for each method",
    "new": "stirred plan new plan.toml",
    "report": "open packet/public/report.html; of several: stirred packet compare a/ b/ --out both.html",
    "show": "stirred spec show NAME",
    "synth": "stirred data synth demo --out census",
    "tune": "stirred plan tune plan.toml",
    "verify": "stirred packet verify packet/",
}


def parser_for(words: Sequence[str]) -> VerbParser:
    """Return the parser with all verbs; only the called one has arguments and is imported."""
    called = next((word for word in words if not word.startswith("-")), None)
    return _make_parser(called, every=False)


def whole_parser() -> VerbParser:
    """Return the parser with all arguments of all verbs, for completion and tests; import every verb."""
    return _make_parser(None, every=True)


def require_verb(parser: VerbParser, words: Sequence[str]) -> None:
    """Refuse an unknown command, and name the one that was probably meant."""
    word, known = words[0] if words else "", actions_of(parser)
    if word and not word.startswith("-") and word not in known:
        near = get_close_matches(word, SUGGESTED_COMMANDS, n=1, cutoff=0.75)
        meant = did_you_mean(word, {*known, *RENAMED, "help"})
        if meant.startswith("known: "):  # a list of forty words helps nobody
            meant = "begin with stirred demo"
        raise InputError(
            f"stirred has no command {word!r}",
            why="stirred --help lists all of them",
            fix=SUGGESTED_COMMANDS[near[0]] if near else meant,
        )


def _make_parser(called: str | None, *, every: bool) -> VerbParser:
    parser = VerbParser(
        prog="stirred", description="Formally private official statistics that keep some numbers exact."
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and stop")
    verbs = parser.add_subparsers(
        title="commands", dest="verb", metavar="VERB", prog="stirred", parser_class=VerbParser
    )
    assert isinstance(verbs, Actions)
    for heading, group in GROUPS.items():
        verbs.headings |= dict.fromkeys(group, heading)
        for verb, (module_name, text) in group.items():
            sub = verbs.add_parser(verb, help=text)
            if every or verb == called:
                module = importlib.import_module(module_name)
                sub.description = module.__doc__
                module.add_arguments(sub)
                sub.set_defaults(run=module.run, whole_parser=whole_parser)
                _add_examples(sub)
        if heading == MECHANISMS_HEADING and called not in VERBS:
            _add_mechanisms(verbs, called, every=every)
    return parser


def _add_examples(parser: argparse.ArgumentParser) -> None:
    """Add to each action of a verb the examples of it that stand in the verb's own help."""
    told = (parser.description or "").splitlines()
    for name, action in actions_of(parser).items():
        command = f"{parser.prog} {name}"
        lines = [f"  {line.strip()}" for line in told if line.strip().startswith(f"{command} ")]
        if lines and command not in (action.description or ""):
            action.description = "\n\n".join([action.description or "", "\n".join(lines)]).strip()


def _add_mechanisms(verbs: Actions, called: str | None, *, every: bool) -> None:
    """Add the mechanisms; to look for those of other packages takes longer than most verbs.

    Methods of a command, and second names, are commands too and are not listed.
    """
    from stirred.mechanisms.registry import list_mechanisms

    for item in list_mechanisms().values():
        listed, *others = dict.fromkeys([item.verb or item.name, item.name])
        if listed in VERBS or listed in RENAMED:
            raise InputError(
                f"the mechanism {item.name} cannot be a command",
                why=f"stirred {listed} is another one",
                fix="rename the mechanism of that package",
            )
        if item.family in ("", listed):
            verbs.headings[listed] = MECHANISMS_HEADING
            made = [(listed, verbs.add_parser(listed, help=item.summary))]
        else:
            others = [listed, *others]
            made = []
        for name, sub in [*made, *((name, verbs.add_parser(name)) for name in others)]:
            if every or name == called:
                importlib.import_module("stirred.cli.mechanism").add_arguments(item.name, sub)


def respell(words: list[str]) -> list[str]:
    """Return the words of a command as it is called now: old names, and ``--method NAME`` as the mechanism's own verb.

    >>> respell(["lookup", "packet/", "--json"])
    ['packet', 'lookup', 'packet/', '--json']
    >>> respell(["help", "packet", "lookup"])
    ['packet', 'lookup', '--help']
    >>> respell(["help", "lookup"])
    ['packet', 'lookup', '--help']
    >>> respell(["swap", "census.toml", "--method", "targeted", "--check"])
    ['targeted-swapping', 'census.toml', '--check']
    """
    if words and words[0] == "help":
        return respell([*words[1:], "--help"])
    if words and words[0] in RENAMED:
        return [*RENAMED[words[0]], *words[1:]]
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
