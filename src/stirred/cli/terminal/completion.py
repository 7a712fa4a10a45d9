"""Completion of commands in a shell: verbs, actions, flags and their choices, from the parser itself.

  stirred completion bash > ~/.local/share/bash-completion/completions/stirred
  stirred completion zsh > "${fpath[1]}/_stirred"
  stirred completion fish > ~/.config/fish/completions/stirred.fish

The script starts nothing when you press TAB; make it again after an update, or after a package with mechanisms was
installed.
"""

import argparse

from stirred.cli.terminal.output import print_json
from stirred.cli.terminal.parser import actions_of, commands, whole_parser

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


_BASH = """# completion of stirred for bash
_stirred() {{
    local word previous place="" index
    word="${{COMP_WORDS[COMP_CWORD]}}"
    previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$place ${{COMP_WORDS[index]}}" in
            {paths}) place="$place ${{COMP_WORDS[index]}}" ;;
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
    [ -z "$place" ] || COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _stirred stirred
"""


def bash(parser: argparse.ArgumentParser) -> str:
    """The script for bash."""
    paths, choices, flags, actions = [], [], [], []
    for words, inner in commands(parser):
        path = "".join(f" {word}" for word in words)
        if words:
            paths.append(f'"{path}"')
        for flag, values in _choices(inner):
            reply = f'COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word")); return'
            choices.append(f'        "{path} {flag}") {reply} ;;')
        reply = f'COMPREPLY=($(compgen -W "{" ".join(_flags(inner))}" -- "$word")); return'
        flags.append(f'            "{path}") {reply} ;;')
        if names := [*actions_of(inner), *_positional(inner)]:
            alone = "; return" if actions_of(inner) else ""  # an action is no file
            reply = f'COMPREPLY=($(compgen -W "{" ".join(names)}" -- "$word")){alone}'
            actions.append(f'            "{path}") {reply} ;;')
    return _BASH.format(
        paths="|".join(paths), choices="\n".join(choices), flags="\n".join(flags), actions="\n".join(actions)
    )


def zsh(parser: argparse.ArgumentParser) -> str:
    """The script for zsh, which can run that for bash; the first TAB reads the file and completes at once."""
    start = "#compdef stirred\nautoload -U +X bashcompinit && bashcompinit\n"
    at_once = '[ "${funcstack[1]}" != "_stirred" ] || _bash_complete -o filenames -F _stirred\n'
    return f"{start}{bash(parser)}{at_once}"


def fish(parser: argparse.ArgumentParser) -> str:
    """The script for fish: one line for each verb, action and flag."""
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
    """The flags whose values are known."""
    return [
        (flag, [str(value) for value in action.choices])
        for action in parser._actions
        if action.choices
        for flag in action.option_strings
    ]


def _positional(parser: argparse.ArgumentParser) -> list[str]:
    """The values of a positional argument that are known."""
    return [
        str(value)
        for action in parser._actions
        if action.choices and not action.option_strings and not isinstance(action, argparse._SubParsersAction)
        for value in action.choices
    ]
