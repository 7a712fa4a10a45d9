"""The parsers of ``stirred``: help as it is written, verbs under headings, and a walk over all of them."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from stirred.cli.process import speaks_json
from stirred.errors import InputError
from stirred.languages.phrase import CODES

EXIT_CODES = (
    "exit codes: 0 done; 1 a check found a problem; 2 wrong input or a refusal, nothing was released;\n"
    "70 a fault of stirred; 74 the system refused (a full disk, a limit); 129, 130, 143, 152 stopped by a\n"
    "signal, the same command goes on. See docs/reference/exit-codes.md."
)

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
    """A parser that shows examples as they are written and names the exit codes below its help."""

    def __init__(self, *, epilog: str | None = EXIT_CODES, **settings: object) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(epilog=epilog, **settings)  # type: ignore[arg-type]
        self.register("action", "parsers", Actions)

    def error(self, message: str) -> NoReturn:
        """Refuse words that are no command; programs get what, why and fix, people the usage too."""
        if speaks_json():
            raise InputError(message, why="the command was not understood", fix=f"{self.prog} --help")
        super().error(message)


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
