"""Completion of commands in a shell: verbs, actions, flags, their choices and files, from the parser itself.

  stirred completion bash > ~/.local/share/bash-completion/completions/stirred
  stirred completion zsh > "${fpath[1]}/_stirred"
  stirred completion fish > ~/.config/fish/completions/stirred.fish

The script starts nothing when you press TAB; make it again after an update, or after a package with mechanisms was
installed.
"""

import argparse

from stirred.cli.output import print_json
from stirred.cli.parser import commands

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    script = write_script(arguments.whole_parser(), arguments.shell)
    if arguments.json:
        print_json({"shell": arguments.shell, "script": script})
    else:
        print(script)
    return 0


def write_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell; every argument without a list of values may be a file."""
    import shtab  # for this command alone

    for _, inner in commands(parser):
        for action in inner._actions:
            if action.choices is None and action.nargs != 0:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))
