"""Damaged files: one readable report each, in bounded memory, and no value of a record in it."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

from stirred.census import Problems, check, read
from stirred.errors import DataError

SECRET = "4711SECRET"
TOML = """
geography.spine = ["region", "lau"]
[record.household]
files = ["{file}"]
id = "h"
size = "size"
[record.household.variables]
size = "1..7"
note = "text"
"""
ROWS = {
    "h": list(range(1, 2001)),
    "region": ["R1"] * 1000 + ["R2"] * 1000,
    "lau": [f"L{i % 4 + 4 * (i // 1000)}" for i in range(2000)],
    "size": [i % 7 + 1 for i in range(2000)],
    "note": [SECRET] * 2000,
}


def write(folder: Path, file: str, *, toml: str = TOML) -> Path:
    frame = pl.DataFrame(ROWS)
    if file.endswith(".csv"):
        frame.write_csv(folder / file)
    else:
        frame.write_parquet(folder / file, row_group_size=100)
    (folder / "census.toml").write_text(toml.format(file=file))
    return folder / file


def rules(problems: Problems) -> list[tuple[str, str, int]]:
    shown = str(problems) + repr(problems) + json.dumps(problems.to_json())
    assert "SECRET" not in shown
    assert "\n" in str(problems)
    return [(problem.column, problem.rule, problem.count) for problem in problems.problems]


def test_the_sound_census_has_no_problem(tmp_path: Path) -> None:
    for file in ("h.parquet", "h.csv"):
        write(tmp_path, file)
        assert not check(tmp_path)


@pytest.mark.parametrize("keep", [0, 3, 100, 0.5, 0.999])
def test_truncated_parquet(tmp_path: Path, keep: float) -> None:
    path = write(tmp_path, "h.parquet")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if isinstance(keep, int) else keep * len(content))])
    assert rules(check(tmp_path)) == [("h.parquet", "the file is not a complete Parquet file", 1)]
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert "Parquet" in str(caught.value)


def test_parquet_with_a_sound_footer_and_broken_pages(tmp_path: Path) -> None:
    path = write(tmp_path, "h.parquet")
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 4)
    path.write_bytes(bytes(content))
    found = rules(check(tmp_path))
    assert len(found) == 1
    assert found[0][2] == 1
    with pytest.raises(DataError) as caught:
        read(tmp_path).table("household")
    assert "SECRET" not in str(caught.value)


def test_one_truncated_file_of_many_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet")
    path = write(tmp_path, "b.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "census.toml").write_text(TOML.format(file="*.parquet"))
    assert rules(check(tmp_path)) == [("b.parquet", "the file is not a complete Parquet file", 1)]


def test_wrong_delimiter(tmp_path: Path) -> None:
    write(tmp_path, "h.csv", toml=TOML + '[record.household.variables.rooms]\ntype = "integer"\n')
    toml = TOML.replace('id = "h"', 'id = "h"\nseparator = ";"')
    (tmp_path / "census.toml").write_text(toml.format(file="h.csv"))
    problems = check(tmp_path)
    assert {column for column, _, _ in rules(problems)} == {"h", "size", "note"}
    assert {rule for _, rule, _ in rules(problems)} == {"the file has no such column"}
    assert {problem.fix for problem in problems.problems} == {'separator = ","'}


def test_a_letter_in_a_count(tmp_path: Path) -> None:
    path = write(tmp_path, "h.csv")
    lines = path.read_text().splitlines()
    for row in (5, 77, 1999):
        fields = lines[row].split(",")
        fields[3] = SECRET
        lines[row] = ",".join(fields)
    path.write_text("\n".join(lines) + "\n")
    assert rules(check(tmp_path)) == [("size", "values that are not whole numbers", 3)]


def test_a_line_with_too_many_fields(tmp_path: Path) -> None:
    path = write(tmp_path, "h.csv")
    path.write_text(path.read_text() + f"9999,R1,L0,1,{SECRET},{SECRET},{SECRET}\n")
    assert rules(check(tmp_path)) == [("", "a line has more fields than the header", 1)]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = write(tmp_path, "h.csv")
    path.write_bytes(path.read_bytes() + b"9999,R1,L0,1,\xff\xfe4711SECRET\n")
    assert rules(check(tmp_path)) == [("", "the file is not UTF-8 text", 1)]


def test_an_empty_file(tmp_path: Path) -> None:
    write(tmp_path, "h.csv").write_text("")
    assert len(rules(check(tmp_path))) == 1


def test_two_households_with_one_id(tmp_path: Path) -> None:
    path = write(tmp_path, "h.parquet")
    frame = pl.DataFrame(ROWS).with_columns(pl.when(pl.col("h") == 1500).then(7).otherwise("h").alias("h"))
    frame.write_parquet(path)
    assert rules(check(tmp_path)) == [("h", "identifiers used before by another record", 1)]


def areas(folder: Path, lines: str) -> None:
    write(folder, "h.parquet", toml='geography.areas = {{files = ["areas.csv"]}}\n' + TOML)
    (folder / "areas.csv").write_text("code,parent\n" + lines)


LAUS = "".join(f"L{i},R{1 + i // 4}\n" for i in range(8))


def test_a_sound_file_of_areas(tmp_path: Path) -> None:
    areas(tmp_path, "R1,\nR2,\n" + LAUS)
    assert not check(tmp_path)


def test_a_cycle_in_the_geography(tmp_path: Path) -> None:
    # R1 → R2 → R1: the two regions and all eight areas below never reach a top
    areas(tmp_path, "R1,R2\nR2,R1\n" + LAUS)
    assert rules(check(tmp_path)) == [("parent", "areas whose chain of parents is a cycle", 10)]


def test_a_child_with_two_parents_a_lost_parent_and_an_unknown_code(tmp_path: Path) -> None:
    areas(tmp_path, "R1,\nR2,\n" + LAUS.replace("L7,R2\n", "L0,R2\nL6,R9\n").replace("L6,R2\n", ""))
    assert rules(check(tmp_path)) == [
        ("parent", "areas with two parents", 1),
        ("parent", "areas whose parent is not listed", 1),
        ("lau", "codes that the file of areas does not know", 1),
    ]


MANY = """
import json, resource, sys
from pathlib import Path
from stirred.census import check
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
folder = Path(sys.argv[1])
check(folder / "small.toml")           # the libraries and their threads are there now
before = peak()
problems = check(folder / "big.toml")
print(json.dumps({"growth": peak() - before, "report": problems.to_json(), "text": str(problems)}))
"""


@pytest.mark.parametrize("file", ["big.csv", "big.parquet"])
def test_a_million_problems_at_once(tmp_path: Path, file: str) -> None:
    count = 1_000_000
    frame = pl.DataFrame(
        {
            "h": pl.int_range(0, count, eager=True) // 2,  # half of the identifiers are used before
            "region": pl.Series(["R1"]).extend_constant("R1", count - 1),
            "lau": pl.Series(["L1"]).extend_constant("L1", count - 1),
            "size": pl.Series([SECRET]).extend_constant(SECRET, count - 1),
            "note": pl.Series([None], dtype=pl.String).extend_constant(None, count - 1),
        }
    )
    frame.write_csv(tmp_path / file) if file.endswith("csv") else frame.write_parquet(tmp_path / file)
    write(tmp_path, "small." + file.split(".")[1])
    for name in ("small", "big"):
        (tmp_path / f"{name}.toml").write_text(TOML.format(file=f"{name}.{file.split('.')[1]}"))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MANY), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert "SECRET" not in done.stdout + done.stderr
    counts = {(p["column"], p["rule"]): p["count"] for p in result["report"]["problems"]}
    assert counts == {
        ("size", "values that are not whole numbers"): count,
        ("note", "missing values"): count,
        ("h", "identifiers used before by another record"): count // 2,
    }
    assert result["text"].count("\n") == 3
    # The file itself is 25 MB; a list of the problems would need some 100 bytes for each of two million.
    assert result["growth"] < 150_000_000
