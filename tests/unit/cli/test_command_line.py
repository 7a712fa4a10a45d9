"""What every command has in common: JSON, exit codes, completion, pipes, and tables that cut nothing."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from stirred import kernels
from stirred.catalog import catalog
from stirred.cli import options
from stirred.cli.completion import write_script
from stirred.cli.main import main
from stirred.cli.output import TextTable, show_progress
from stirred.cli.parser import EPILOG, VerbParser, actions_of, commands
from stirred.cli.verbs import GROUPS, RENAMED, whole_parser
from stirred.errors import InputError
from stirred.spec.files import save

PARSER = whole_parser()
LEAVES = {" ".join(words): inner for words, inner in commands(PARSER) if words and not actions_of(inner)}
DOCS = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("words", LEAVES)
def test_every_command_has_json_and_names_its_exit_codes(words: str) -> None:
    flags = [flag for action in LEAVES[words]._actions for flag in action.option_strings]
    assert "--json" in flags
    assert EPILOG in LEAVES[words].format_help()
    assert LEAVES[words].description
    assert [action.dest for action in LEAVES[words]._actions if not action.help] == []


def test_examples_name_the_command_itself() -> None:
    assert "stirred topdown census.toml … --check" in str(LEAVES["topdown"].description)
    assert not [words for words, inner in LEAVES.items() if "stirred NAME " in str(inner.description)]


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("report", "open packet/public/report.html"),
        ("verfy", "packet verify"),
        ("bugdet", "did you mean budget"),
        ("equate", "stirred frontier plan.toml"),
    ],
)
def test_an_unknown_command_says_what_was_meant(
    word: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "packet/"]) == 2
    said = capsys.readouterr().err
    assert f"error: stirred has no command '{word}'" in said
    assert fix in said
    assert "usage" not in said


@pytest.mark.parametrize(
    ("words", "what", "why", "fix"),
    [
        (
            "data synth demo --out x --houeholds 3",
            "stirred data synth does not know --houeholds",
            "stirred data synth --help lists its flags",
            "did you mean --households?",
        ),
        (
            "data synth demo --out x --households abc",
            "stirred data synth cannot read --households abc",
            "it is not a whole number",
            "write a whole number, such as --households 10",
        ),
        (
            "audit plan.toml --runs 1e4",
            "stirred audit cannot read --runs 1e4",
            "it is not a whole number",
            "write a whole number, such as --runs 20000",
        ),
        (
            "serve --port 99999",
            "there is no port 99999",
            "a port is a number from 0 to 65535",
            "--port 8642; or --port 0 for any that is free",
        ),
        (
            "run",
            "stirred run needs plan and --out",
            "the command cannot begin without it",
            "stirred run plan.toml --out packet/",
        ),
        (
            "run plan.toml --out",
            "--out of stirred run needs a value",
            "too little follows it: it takes one argument",
            "--out DIR",
        ),
        (
            "data synth demo --out x --h",
            "stirred data synth does not know --h",
            "it is the beginning of several flags",
            "write one of them: --help, --households",
        ),
        ("budget --json=x", "--json of stirred budget takes no value", "'x' is given to it", "--json"),
        (
            "lookup packet/ --where count=1 tract=x",
            "count is a number of a cell, no variable",
            "--where says which cell, and its numbers are what is looked up",
            "leave count=1 out",
        ),
        (
            "packet verfy x",
            "stirred packet has no word 'verfy'",
            "stirred packet --help lists what it knows",
            "did you mean verify?",
        ),
        (
            "lokup x",
            "stirred has no command 'lokup'",
            "stirred --help lists all of them",
            "did you mean lookup?",
        ),
    ],
)
def test_words_that_are_no_command_are_refused_in_the_form_of_the_house(
    words: str, what: str, why: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"error: {what}\n  why: {why}\n  fix: {fix}\n"


def test_every_message_of_argparse_has_words_of_the_house() -> None:
    """The library's own refusals are matched by pattern; a new version may word one anew."""
    parser = VerbParser(prog="stirred try", description="Try.\n\n  stirred try --one 1      (an example)")
    one_of = parser.add_mutually_exclusive_group(required=True)
    one_of.add_argument("--one", type=float)
    one_of.add_argument("--other", action="store_true")
    parser.add_argument("--two", nargs=2)
    told = {}
    for words in ("", "--one x", "--one 1 --other", "--one 1 --two 1", "--o 1", "--other=1", "--one"):
        with pytest.raises(InputError) as refused:
            parser.parse_args(words.split())
        told[words] = refused.value.what
        assert refused.value.why != "the command was not understood", words
        assert refused.value.fix, words
    assert told[""] == "stirred try needs --one or --other"
    assert told["--one 1 --other"] == "stirred try takes --other or --one"


def test_help_of_an_old_name_is_that_of_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "lookup"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: stirred packet lookup")


def test_the_page_on_json_names_every_command() -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    own = [
        words
        for words in LEAVES
        if not words.startswith(("swapping-", "permutation-", "targeted-", "cell-key"))
    ]
    assert [words for words in own if f"`{words}`" not in page] == []


def completed(script: str, *words: str) -> list[str]:
    """What a real bash offers for the last word."""
    asked = f"""{script}
COMP_WORDS=({" ".join(map(repr, words))}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _shtab_stirred
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_verbs_actions_flags_choices_and_files() -> None:
    script = write_script(whole_parser(), "bash")
    assert completed(script, "stirred", "pac") == ["packet"]
    assert completed(script, "stirred", "packet", "ver") == ["verify"]
    assert "verify" in completed(script, "stirred", "packet", "")
    assert "README.md" not in completed(script, "stirred", "packet", "")  # file names are not actions
    assert completed(script, "stirred", "packet", "verify", "READ") == ["README.md"]
    assert completed(script, "stirred", "packet", "verify", "--pub") == ["--public"]
    assert completed(script, "stirred", "run", "plan.toml", "--engine", "sp") == ["spark"]
    assert completed(script, "stirred", "data", "synth", "mass") == ["massachusetts-1940"]
    assert set(completed(script, "stirred", "swap", "--s")) >= {"--scratch", "--swap"}
    assert completed(script, "stirred", "swapping") == []  # an old name works and is not offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_read_their_script(shell: str, tmp_path: Path) -> None:
    script = write_script(whole_parser(), shell)
    assert "packet" in script
    if (program := shutil.which(shell)) is not None:
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_help_lists_verbs_under_headings_and_old_names_still_work(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"(?m)^  ([a-z].*)", shown) == list(GROUPS)
    listed = re.findall(r"(?m)^    ([a-z][\w-]*)", shown)
    assert len(listed) == len(set(listed)) == 24
    for old in (
        *RENAMED,
        "swapping-near-places",
        "swapping-2010",
        "targeted-swapping",
        "permutation-swapping",
        "cell-key",
    ):
        assert old not in listed
        with pytest.raises(SystemExit) as ended:
            main([old, "--help"])
        assert ended.value.code == 0
    assert "usage: stirred packet lookup" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["catalog --json", "--help"])
def test_a_reader_may_stop(words: str) -> None:
    command = f"{sys.executable} -m stirred {words} | head -n 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_an_output_that_cannot_be_written_is_an_error() -> None:
    command = f"{sys.executable} -m stirred budget --stratum 10 --rate 1/20 > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 74
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("width", [1, 40, 80, 200])
def test_tables_cut_no_word_and_no_number(width: int) -> None:
    cells = ("hispanic-by-county", "19,432,001.25", "≥ 126.7910", "neither a fraction nor a decimal number")
    drawn = "\n".join(
        TextTable(title="t", columns=("name", "count", "ε", "because"), rows=(cells,)).lines(width)
    )
    assert "…" not in drawn
    for word in (*cells[:3], *cells[3].split()):
        assert word in drawn


def test_a_pipe_gets_a_line_at_the_start_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as progress:
        for _ in range(2):  # two releases have the same steps
            for done in range(4):
                progress("swap", done, 3)
        progress("report", 0, 1)
    with show_progress(quiet=True) as progress:
        progress("swap", 0, 1)
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["swap", "swap", "report"]


def test_a_long_step_says_how_far_it_is_and_how_long_it_will_take(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 0.0, 10.0, 10.0, 14.0, 40.0, 40.0])
    monkeypatch.setattr("stirred.cli.output.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with show_progress(kind="lines") as progress:
        progress("draw", 0, 100)
        progress("draw", 25, 100)  # a quarter in 10 seconds
        progress("draw", 30, 100)  # too soon after the last line
        progress("draw", 80, 100)
    assert capsys.readouterr().err.splitlines() == [
        "   0.0 s  draw",
        "  10.0 s  draw 25%, about 30 s left",
        "  40.0 s  draw 80%, about 10 s left",
    ]


def test_compiling_is_told_once_where_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[tuple[float, Callable[[], None]]] = []

    class Timed:
        daemon = False

        def __init__(self, seconds: float, action: Callable[[], None]) -> None:
            timers.append((seconds, action))

        def start(self) -> None:
            """Wait for the test to call the action."""

        def cancel(self) -> None:
            """Leave it in the list."""

    monkeypatch.setattr(kernels, "Timer", Timed)
    monkeypatch.setattr(kernels, "monotonic", iter([0.0, 0.4, 5.0, 9.0]).__next__)
    clock = kernels.CompileClock()
    with show_progress(kind="lines"):
        for _ in range(2):
            clock.begin()
            clock.begin()  # a kernel within a kernel
            clock.end()
            clock.end()
        assert [round(seconds, 1) for seconds, _ in timers] == [1.0, 0.6]
        for _, action in timers:
            action()
    timers[0][1]()  # nobody waits any more
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("s  compiling, first time only")


def test_spec_show_takes_a_packet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = tmp_path / "town" / "public"
    public.mkdir(parents=True)
    save(catalog["pl-2020"], public / "spec.json")
    (public / "receipt.json").write_text(json.dumps({"title": "A town"}))
    for folder in (tmp_path / "town", public):
        assert main(["spec", "show", str(folder)]) == 0
        assert capsys.readouterr().out.startswith("A town\n")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("whatif-state@1/2", "whatif-state@1/20", "whatif-state@1/2 is stronger: it promises more"),
        ("whatif-state@1/20", "whatif-state@1/2", "whatif-state@1/2 is stronger: it promises more"),
        ("pl-2020", "pl-2020", "Neither is stronger: pl-2020 and pl-2020 promise the same."),
        ("das-2010", "das-2020", "Neither is stronger: das-2010 and das-2020 each lack"),
    ],
)
def test_spec_compare_says_first_which_side_is_stronger(
    first: str, second: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spec", "compare", first, second]) == 0
    assert capsys.readouterr().out.startswith(said)
    assert main(["spec", "compare", first, second, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["headline"].startswith(said)


def test_what_is_refused_at_once_has_no_line_before_its_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("stirred.cli.output.time.monotonic", lambda: now[0])
    with show_progress(late=True) as told:
        told("check", 0, 5)
        told("check", 1, 5)
        assert capsys.readouterr().err == ""
        now[0] = 40.0
        told("check", 2, 5)
        assert capsys.readouterr().err == "  40.0 s  check 40%, about 60 s left\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("packet verfy x", "did you mean verify?"),
        ("data synth demmo", "did you mean demo?"),
        ("data synth demo --houeholds 3", "--households"),
        ("serve --port 99999", "--port 8642"),
    ],
)
def test_mistyped_words_are_refused_with_what_was_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert meant in told.partition("fix: ")[2]


@pytest.mark.parametrize(
    ("engine", "kind", "seconds", "told"),
    [
        ("spark", "lines", 0.0, r" +0\.\d s  spark\n"),
        (
            "spark",
            "json",
            0.0,
            r'.*"step": "spark", "state": "begun".*\n.*"step": "spark", "state": "done".*\n',
        ),
        ("spark", "none", 0.0, ""),
        ("spark", "lines", 60.0, ""),  # a refusal comes sooner: one error, and nothing before it
        ("local", "lines", 0.0, ""),
    ],
)
def test_a_cluster_that_starts_slowly_is_told(
    engine: str,
    kind: str,
    seconds: float,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(options, "START_TOLD_SECONDS", seconds)
    with options.tell_start(argparse.Namespace(json=False, progress=kind), engine):
        time.sleep(0.2)
    assert re.fullmatch(told, capsys.readouterr().err)
