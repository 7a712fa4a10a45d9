"""Light verbs import no heavy library: a child process runs them all and names the first that brings one in."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl

from stirred.census.synthetic import write_preset
from stirred.publish.packet import seal

HEAVY = ["altair", "duckdb", "numba", "numpy", "pandas", "polars", "pyarrow", "pyspark", "rich", "scipy"]
NO_TABLES = [name for name in HEAVY if name not in ("numpy", "polars", "pyarrow")]
CHILD = """
import contextlib, io, json, sys
from stirred.cli.main import main
found = []
for words, heavy in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words)
        except SystemExit as stopped:
            code = stopped.code
    found.append([words, code, [name for name in heavy if name in sys.modules]])
json.dump(found, sys.stdout)
"""
VERBS = """assess audit budget completion das2020 data demo frontier packet plan reproduce run spec
swap topdown
exact-margins safetab-p safetab-h phsafe cellkey gaussian-tables special-tabulations"""


def packet(folder: Path) -> Path:
    public = folder / "packet" / "public"
    (public / "tables").mkdir(parents=True)
    (public / "receipt.json").write_text(json.dumps({"private": True, "title": "Town"}))
    pl.DataFrame({"county": ["001"], "count": [19432]}).write_parquet(public / "tables" / "homes.parquet")
    seal(public)
    return folder / "packet"


def test_light_verbs_import_nothing_heavy(tmp_path: Path) -> None:
    made = str(packet(tmp_path))
    light = [
        ["--help"],
        *([verb, "--help"] for verb in VERBS.split()),
        ["packet", "verify", made],
        ["plan", "new", str(tmp_path / "swap.toml"), "--mechanism", "permutation-swapping"],
        ["plan", "new", str(tmp_path / "topdown.toml"), "--mechanism", "topdown"],
        ["budget", "--stratum", "264331", "--rate", "1/20"],
        ["catalog"],
        ["spec", "list"],
        ["spec", "show", "das-2020"],
        ["spec", "compare", "das-2010", "das-2020"],
    ]
    asked = [(words, [*HEAVY, "jinja2"]) for words in light]
    asked[: len(VERBS.split())] = [
        (words, [*heavy, "mpmath"]) for words, heavy in asked[: len(VERBS.split())]
    ]
    asked.append((["lookup", made, "--where", "county=001"], [name for name in HEAVY if name != "polars"]))
    write_preset("demo", tmp_path / "census", households=5)
    asked.append(
        (["safetab-p", str(tmp_path / "census"), "--out", str(tmp_path / "out"), "--json"], NO_TABLES)
    )
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(asked)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert [[words, 0, []] for words, _ in asked] == found, done.stderr


def test_public_names_of_rooms_are_loaded_on_demand() -> None:
    """A submodule never takes the place of a public name that is spelled like it."""
    check = (
        "import sys; import stirred.publish.run.part, stirred.census.schema\n"
        "assert 'polars' not in sys.modules\n"
        "import stirred.census.public_files\n"
        "from stirred.publish import run; from stirred.census import expand\n"
        "assert run.__name__ == 'run' and callable(run) and callable(expand)\n"
        "import stirred.publish, stirred.census, stirred.mechanisms.swap as s, stirred.report as r\n"
        "for room in (stirred.publish, stirred.census, s, r):\n"
        "    assert all(getattr(room, name) is not None for name in room.__all__)\n"
        "try: s.nothing\n"
        "except AttributeError as error: assert 'nothing' in str(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
