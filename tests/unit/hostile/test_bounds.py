"""Texts that would exhaust the machine are refused by what a parser would make of them, in TOML, JSON and CSV alike."""

import json
import os
import random
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import stirred as st
from small_census import CENSUS
from stirred import Packet, text_formats
from stirred.child_processes import PIPE, python_command, start_child
from stirred.cli.main import main
from stirred.errors import InputError, SchemaError
from stirred.spec.files import load as load_specification
from stirred.text_formats import MAX_TOML_DEPTH, TOO_DEEP, TomlError, parse_json, parse_toml

MANY = 24_000
BOMBS = {
    "a quoted equals sign": '"="' + ".a" * MANY + " = 1",
    "a quoted equals sign, then spaces": "'=' " + ". a " * MANY + "= 1",
    "a header": "[a" + ".a" * MANY + "]",
    "a header of an array": "[[a" + ".a" * MANY + "]]",
    "a quoted header": '["]#"' + ".a" * MANY + "]",
    "an inline table": "x = {" + "a." * MANY + "a = 1}",
    "after a long string": 'a = """\\""" = [ """""\n"#"' + ".a" * MANY + " = 1",
    "after a literal": "a = '\\'\n'#'" + ".a" * MANY + " = 1",
    "after a long literal": "a = '''#'''''\n'#'" + ".a" * MANY + " = 1",
    "arrays": "a = " + "[" * MANY,
    "tables in tables": "a = " + "{a = " * 60 + "1" + "}" * 60,
    "all three together": "[" + ".".join("a" * 40) + "]\n" + ".".join("b" * 40) + " = {c.d = 1}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_toml_is_bounded_by_its_depth(name: str) -> None:
    with pytest.raises(TomlError, match=TOO_DEEP):
        parse_toml(BOMBS[name])


def test_toml_is_bounded_by_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "MAX_VALUES", 2_000)
    monkeypatch.setattr(text_formats, "MAX_KEY_PARTS", 500)
    with pytest.raises(TomlError, match="more than"):
        parse_toml("a = [" + "[]," * 2_001 + "]")
    with pytest.raises(TomlError, match="more than"):
        parse_toml("\n".join(f"a{i}.b.c.d.e.f.g.h.i.j.k = 1" for i in range(51)))
    with pytest.raises(TomlError, match="too long"):
        parse_toml("a = 1" + "0" * 5000)


def test_what_is_within_the_bounds_is_read_as_before() -> None:
    """Random texts of the characters that matter: the bound neither refuses nor changes what the parser reads."""
    rng = random.Random(5)
    pieces = [
        "a",
        "b",
        ".",
        "=",
        "\n",
        '"',
        "'",
        '"""',
        "'''",
        "#",
        "[",
        "]",
        "{",
        "}",
        ",",
        " ",
        "\\",
        "1",
        "\r\n",
    ]
    read = 0
    for _ in range(30_000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 14)))
        try:
            wanted = tomllib.loads(text)
        except ValueError:
            continue
        read += 1
        assert parse_toml(text) == wanted
    assert read > 500
    nested = "[" + ".".join(["a"] * (MAX_TOML_DEPTH - 1)) + "]\nb = 1"
    assert parse_toml(nested) == tomllib.loads(nested)


def peak_megabytes(command: list[str], folder: Path) -> tuple[int, float]:
    """The memory that a command takes at most, and its processor seconds."""
    child = start_child(command, folder=folder, stderr=PIPE)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stderr is not None
    child.stderr.close()
    assert child.returncode == 2
    return used.ru_maxrss // 1024, used.ru_utime + used.ru_stime


def test_a_plan_of_48_kilobytes_takes_no_gigabytes(tmp_path: Path) -> None:
    """It took 2.3 GB. A plan that is refused at once is measured beside it: a child counts its parent's memory too."""
    (tmp_path / "bomb.toml").write_text('title = "x"\n' + BOMBS["a quoted equals sign"])
    (tmp_path / "small.toml").write_text("title = \n")
    small, bomb = (
        peak_megabytes(python_command("stirred", "plan", "check", name), tmp_path)[0]
        for name in ("small.toml", "bomb.toml")
    )
    assert bomb < small + 400


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 1000, "1" + "0" * 5000])
def test_json_is_bounded(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
    (tmp_path / "spec.json").write_text(text)
    (tmp_path / "receipt.json").write_text(text)
    with pytest.raises(InputError, match="cannot read"):
        load_specification(tmp_path / "spec.json")
    with pytest.raises(InputError, match="no packet"):
        Packet(tmp_path).receipt()


def test_json_is_bounded_by_its_values() -> None:
    with pytest.raises(ValueError, match="more than 100 values"):
        parse_json("[" + "[]," * 101 + "[]]", most_values=100)


def test_json_within_the_bounds_is_read_as_before() -> None:
    for value in ({"a": ["[", '"', "\\", {"}": None}]}, [[[[1.5, "]"]]]], "x", 3):
        assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "codes",
    [
        ",".join(f"c{i}" for i in range(2_001)) + "\n" + "," * 2_000 + "\n",
        "code,label\n" + "a," * 600_000 + "\n",
        "code\n" + "a" * (1 << 21) + "\n",
    ],
    ids=["columns", "fields", "a line"],
)
def test_a_table_of_codes_is_bounded(codes: str, tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text(codes)
    (tmp_path / "census.toml").write_text(CENSUS.replace('levels = ["o", "r"]', 'codes_from = "codes.csv"'))
    with pytest.raises(SchemaError, match="cannot read the codes"):
        st.read(tmp_path)


def fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["receipt.json", "spec.json", "labels.json", "plan.toml"])
@pytest.mark.parametrize("made", [fifo, Path.mkdir], ids=["pipe", "folder"])
def test_a_packet_with_a_pipe_does_not_block(name: str, made: Callable[[Path], None], tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    for other in ("receipt.json", "spec.json", "labels.json", "plan.toml", "checksums.txt"):
        (public / other).write_text("{}")
    (public / name).unlink()
    made(public / name)
    for words in (
        ["spec", "show"],
        ["lookup", "--where", "a=1"],
        ["packet", "verify"],
        ["packet", "contents"],
    ):
        action = [words[0], str(tmp_path), *words[1:]] if words[0] == "lookup" else [*words, str(tmp_path)]
        assert main(action) in (0, 1, 2)  # it answers
