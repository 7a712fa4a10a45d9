"""Completion of commands in a shell: verbs, actions, flags and their choices, from the parser itself.

  stirred completion bash > ~/.local/share/bash-completion/completions/stirred
  stirred completion zsh > "${fpath[1]}/_stirred"
  stirred completion fish > ~/.config/fish/completions/stirred.fish

The script starts nothing when you press TAB; make it again after an update, or after a package with mechanisms was
installed.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from stirred.cli.output import print_json
from stirred.cli.parser import actions_of, commands, whole_parser

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](whole_parser())
    if arguments.json:
        print_json({"shell": arguments.shell, "script": script})
    else:
        print(script, end="")
    return 0


_SCRIPT = """# completion of stirred for {shell}
_stirred() {{
    local word previous place="" index
    word="{word}"
    previous="{previous}"
    for ((index = {first}; index < {current}; index++)); do
        case "$place {one}" in
            {paths}) place="$place {one}" ;;
        esac
    done
    case "$place $previous" in
{choices}
    esac
    if [[ $word == -* ]]; then
        case "$place" in
{flags}
        esac
    else
        case "$place" in
{actions}
        esac
    fi
    [ -z "$place" ] || {{ {files}; }}
}}
{start}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A shell: how it names the words of a command and takes the possible next ones."""

    shell: str
    word: str
    previous: str
    one: str
    first: int
    current: str
    offered: str  # words that may follow
    files: str  # files that may follow; a word that is also the name of a folder, as demo is, stays a word
    start: str

    def script(self, parser: argparse.ArgumentParser) -> str:
        """Return the script, with one case for each verb, action and flag with known values."""
        paths, choices, flags, actions = [], [], [], []
        for words, inner in commands(parser):
            place = "".join(f" {word}" for word in words)
            if words:
                paths.append(f'"{place}"')
            for flag, values in _choices(inner):
                choices.append(f'        "{place} {flag}") {self._offer(values)}; return ;;')
            flags.append(f'            "{place}") {self._offer(_flags(inner))}; return ;;')
            if names := [*actions_of(inner), *_positional(inner)]:
                alone = "; return" if actions_of(inner) else ""  # file names are not actions
                actions.append(f'            "{place}") {self._offer(names)}{alone} ;;')
        return _SCRIPT.format(
            paths="|".join(paths),
            choices="\n".join(choices),
            flags="\n".join(flags),
            actions="\n".join(actions),
            **asdict(self),
        )

    def _offer(self, names: Sequence[str]) -> str:
        return self.offered.format(" ".join(names))


BASH = Shell(
    shell="bash",
    word="${COMP_WORDS[COMP_CWORD]}",
    previous="${COMP_WORDS[COMP_CWORD-1]}",
    one="${COMP_WORDS[index]}",
    first=1,
    current="COMP_CWORD",
    offered='COMPREPLY=($(compgen -W "{}" -- "$word"))',
    files='compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$word"))',
    start="complete -F _stirred stirred",
)
ZSH = Shell(
    shell="zsh",
    word="${words[CURRENT]}",
    previous="${words[CURRENT-1]}",
    one="${words[index]}",
    first=2,
    current="CURRENT",
    offered="compadd -- {}",
    files="_files",
    start='if [ "${funcstack[1]}" = "_stirred" ]; then _stirred "$@"; else compdef _stirred stirred; fi',
)


def bash(parser: argparse.ArgumentParser) -> str:
    """Return the script for bash."""
    return BASH.script(parser)


def zsh(parser: argparse.ArgumentParser) -> str:
    """Return the script for zsh; the first TAB reads the file and completes at once."""
    return f"#compdef stirred\n{ZSH.script(parser)}"


def fish(parser: argparse.ArgumentParser) -> str:
    """Return the script for fish, with one line for each verb, action and flag."""
    lines = ["# completion of stirred for fish"]
    for words, inner in commands(parser):
        names = list(actions_of(inner))
        seen = [f"__fish_seen_subcommand_from {word}" for word in words]
        others = [f"not __fish_seen_subcommand_from {' '.join(names)}"] if names else []
        here = "; and ".join([*seen, *others]) or "__fish_use_subcommand"
        lines += [f"complete -c stirred -n '{here}' -f -a '{name}'" for name in names]
        for action in inner._actions:
            for flag in action.option_strings:
                if flag.startswith("--"):
                    text = " ".join((action.help or "").replace("%%", "%").split()).replace("'", "\\'")
                    values = f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else ""
                    lines.append(f"complete -c stirred -n '{here}' -l {flag[2:]}{values} -d '{text}'")
    return "\n".join(lines) + "\n"


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]


def _choices(parser: argparse.ArgumentParser) -> list[tuple[str, list[str]]]:
    """Return the flags whose values are known, with these values."""
    return [
        (flag, [str(value) for value in action.choices])
        for action in parser._actions
        if action.choices
        for flag in action.option_strings
    ]


def _positional(parser: argparse.ArgumentParser) -> list[str]:
    """Return the known values of a positional argument."""
    return [
        str(value)
        for action in parser._actions
        if action.choices and not action.option_strings and not isinstance(action, argparse._SubParsersAction)
        for value in action.choices
    ]
