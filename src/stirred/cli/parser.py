"""The parsers of ``stirred``: help as it is written, verbs under headings, and a walk over all of them."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from stirred.errors import InputError, did_you_mean
from stirred.languages.phrase import CODES

EXIT_CODES = (
    "0 done; 1 a check found a problem; 2 wrong input or a refusal, nothing was released;\n"
    "70 a fault of stirred; 74 the system refused (a full disk, a limit); 129, 130, 143, 152 stopped by a\n"
    "signal, the same command goes on. See docs/reference/exit-codes.md."
)

EPILOG = "exit codes: stirred help exit-codes"

if TYPE_CHECKING:
    Choices = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Choices = argparse._SubParsersAction


class Actions(Choices):
    """The verbs of the program, under headings, or the actions of a verb; a name without help is not listed."""

    headings: dict[str, str]  # verb → heading; empty where there are none

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.headings = {}

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add an action; its description is its line of help, as a sentence."""
        text = str(settings.get("help") or "")
        settings.setdefault("description", f"{text[:1].upper()}{text[1:]}." if text else None)
        return super().add_parser(name, **settings)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Show the examples of a description as they are written, and verbs under their headings."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, Actions) or not action.headings:
            return super()._format_action(action)
        parts: list[str] = []
        for heading in dict.fromkeys(action.headings.values()):
            parts.append(f"{' ' * self._current_indent}{heading}\n")
            self._indent()
            listed = [verb for verb in action._get_subactions() if action.headings.get(verb.dest) == heading]
            parts += map(self._format_action, listed)
            self._dedent()
        return "".join(parts)


class VerbParser(argparse.ArgumentParser):
    """A parser that shows examples as they are written and says below its help where exit codes are told."""

    def __init__(self, *, epilog: str | None = EPILOG, **settings: object) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(epilog=epilog, **settings)  # type: ignore[arg-type]
        self.register("action", "parsers", Actions)
        self._given: list[str] = []

    def error(self, message: str) -> NoReturn:
        """Refuse words that are no command: what was not understood, why, and the word that was probably meant."""
        helped = f"{self.prog} --help"
        if "required" in message and (misspelt := self._find_misspelt()):
            message = f"unrecognized arguments: {misspelt}"
        if found := _UNKNOWN.fullmatch(message):
            flags = [word for word in found[1].split() if word.startswith("-")]
            what = f"{self.prog} does not know {flags[0] if flags else found[1]}"
            if flags:
                word = flags[0].partition("=")[0]
                raise InputError(what, why=f"{helped} lists its flags", fix=did_you_mean(word, self._flags()))
            raise InputError(what, why="it takes no such word in this place", fix=helped)
        if found := _CHOICE.fullmatch(message):
            known = [word.strip("' ") for word in found["known"].split(",")]
            name = found["name"] if found["name"].startswith("-") else "word"
            what = f"{self.prog} has no {name} {found['value']}"
            raise InputError(
                what, why=f"{helped} lists what it knows", fix=did_you_mean(found["value"].strip("'"), known)
            )
        for pattern, explain in _EXPLAINED:
            if found := pattern.fullmatch(message):
                what, why, fix = explain(self, found)
                raise InputError(what, why=why, fix=fix)
        raise InputError(
            f"{self.prog}: {message}", why="the command was not understood", fix=f"{helped} shows examples"
        )

    def find_action(self, flag: str) -> argparse.Action | None:
        """Return the argument that a message of argparse names, by its flags or its name."""
        named = {*flag.split("/")}
        return next(
            (a for a in self._actions if named & {*a.option_strings, str(a.metavar), a.dest}),
            None,
        )

    def find_example(self) -> str:
        """Return the first example of this command in its help; without one, how its help is shown."""
        lines = (line.strip() for line in (self.description or "").splitlines())
        told = next((line for line in lines if line.startswith(f"{self.prog} ")), "")
        return re.split(r"\s{2,}", told)[0] or f"{self.prog} --help shows examples"

    def _flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def _find_misspelt(self) -> str:
        """Return a given flag that begins no flag of this parser, or an empty text; a missing one may be meant by it."""
        given = [word.partition("=")[0] for word in self._given if word.startswith("--") and len(word) > 2]
        known = self._flags()
        return next((word for word in given if not any(flag.startswith(word) for flag in known)), "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and let the verb that was called refuse unknown words, for it knows its own flags."""
        self._given = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not actions_of(self):
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)
_CHOICE = re.compile(
    r"argument (?P<name>.*?): invalid choice: (?P<value>.*?) \(choose from (?P<known>.*)\)", re.DOTALL
)

Explained = tuple[str, str, str]  # what, why, fix
_KINDS = {"int": ("a whole number", "10"), "float": ("a number", "0.5")}


def _explain_value(parser: VerbParser, found: re.Match[str]) -> Explained:
    wanted, example = _KINDS.get(found["kind"], (found["kind"], ""))
    action = parser.find_action(found["name"])
    usual = example if action is None or action.default in (None, argparse.SUPPRESS) else str(action.default)
    flag = "" if action is None or not action.option_strings else f"{action.option_strings[-1]} "
    what = f"{parser.prog} cannot read {flag or found['name'] + ' '}{found['value']}"
    return what, f"it is not {wanted}", f"write {wanted}, such as {flag}{usual}"


def _explain_nothing(parser: VerbParser, found: re.Match[str]) -> Explained:
    action = parser.find_action(found["name"])
    shown = "VALUE" if action is None else _metavar(action)
    flag = found["name"].split("/")[-1]
    return (
        f"{flag} of {parser.prog} needs a value",
        f"too little follows it: it takes {found['many']}",
        f"{flag} {shown}",
    )


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None:
        return " or ".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _explain_missing(parser: VerbParser, found: re.Match[str]) -> Explained:
    names = found["names"].split(", ")
    told = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{parser.prog} needs {told}", "the command cannot begin without it", parser.find_example()


def _explain_one_of(parser: VerbParser, found: re.Match[str]) -> Explained:
    told = " or ".join(found["names"].split())
    return f"{parser.prog} needs {told}", "none of them is given", parser.find_example()


def _explain_both(parser: VerbParser, found: re.Match[str]) -> Explained:
    return (
        f"{parser.prog} takes {found['name']} or {found['other']}",
        "both are given, and one excludes the other",
        f"leave {found['name']} out, or {found['other']}",
    )


def _explain_beginning(parser: VerbParser, found: re.Match[str]) -> Explained:
    known = found["known"].split(", ")
    return (
        f"{parser.prog} does not know {found['value']}",
        "it is the beginning of several flags",
        f"write one of them: {', '.join(known)}",
    )


def _explain_switch(parser: VerbParser, found: re.Match[str]) -> Explained:
    flag = found["name"].split("/")[-1]
    return f"{flag} of {parser.prog} takes no value", f"{found['value']} is given to it", flag


# what argparse says → what a person is told
_EXPLAINED: tuple[tuple[re.Pattern[str], Callable[[VerbParser, re.Match[str]], Explained]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), explain)
    for pattern, explain in (
        (r"argument (?P<name>.*?): invalid (?P<kind>\w+) value: '(?P<value>.*)'", _explain_value),
        (r"argument (?P<name>.*?): expected (?P<many>.* arguments?)", _explain_nothing),
        (r"the following arguments are required: (?P<names>.*)", _explain_missing),
        (r"one of the arguments (?P<names>.*) is required", _explain_one_of),
        (r"argument (?P<name>.*?): not allowed with argument (?P<other>.*)", _explain_both),
        (r"ambiguous option: (?P<value>.*?) could match (?P<known>.*)", _explain_beginning),
        (r"argument (?P<name>.*?): ignored explicit argument (?P<value>.*)", _explain_switch),
    )
)


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


def add_language_argument(parser: argparse.ArgumentParser, *, default: str = "en") -> None:
    """Add ``--language``; ``default`` is said in the help."""
    parser.add_argument(
        "--language",
        choices=CODES,
        help=f"the language of the card and of the public report (default: {default}); JSON, receipts and names of "
        "the census stay as they are",
    )
