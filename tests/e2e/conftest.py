"""A small census on disk and a plan for it, shared by the end-to-end tests; one browser for the run."""

import contextlib
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from small_town import CENSUS
from stirred.cli.main import main

STIRRED = Path(sys.executable).with_name("stirred")
PLAN = """title = "Town"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "block"]
rate = "1/5"
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
[[table]]
name = "sex-by-county"
record_type = "person"
by = ["county", "sex"]
[[table]]
name = "households-by-block"
by = ["block"]
[[reason]]
invariant = "households by block × county × size × state"
kind = "operation"
text = "the enumeration areas are already public"
[budget]
owner = "Chief methodologist"
[assess]
relations = [["county", "tenure"]]
[about]
contact = "statistics@example.org"
"""


def write_census(folder: Path, *, households: int = 600, extra: str = "") -> None:
    """A fictional town; ``extra`` is planted in a column that no plan reads."""
    rng = random.Random(7)
    homes, people, person = (
        ["household_id,state,county,block,size,tenure,memo"],
        ["person_id,household_id,sex"],
        0,
    )
    for home in range(households):
        county = rng.randrange(3)
        size = 1 + min(rng.randrange(6), rng.randrange(6))
        tenure = "owned" if rng.random() < 0.3 + 0.2 * county else "rented"
        homes.append(f"{home},s,c{county},c{county}b{rng.randrange(12)},{size},{tenure},{extra or 'x'}")
        for _ in range(size):
            people.append(f"{person},{home},{'fm'[rng.random() < 0.5]}")
            person += 1
    (folder / "household.csv").write_text("\n".join(homes) + "\n")
    (folder / "person.csv").write_text("\n".join(people) + "\n")
    (folder / "census.toml").write_text(CENSUS)


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a census, a plan and a private key."""
    from stirred.chance import Key

    folder = tmp_path_factory.mktemp("town")
    write_census(folder)
    (folder / "plan.toml").write_text(PLAN)
    Key.fresh().save(folder / "town.key")
    return folder


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command."""

    def call(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(STIRRED), *map(str, words)],
            capture_output=True,
            text=True,
            cwd=cwd,
            check=False,
            env=dict(os.environ),
        )

    return call


@pytest.fixture(scope="session")
def called() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in this process, which saves the seconds that Python needs to start."""

    def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
        written = list(map(str, words))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(written)
            except SystemExit as stopped:
                code = int(stopped.code or 0)
        return subprocess.CompletedProcess(written, code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="session")
def packet(town: Path, command: Callable[..., subprocess.CompletedProcess[str]]) -> Path:
    """An undisturbed run of the plan."""
    done = command("run", town / "plan.toml", "--out", town / "packet", "--key", town / "town.key")
    assert done.returncode == 0, done.stderr
    return town / "packet"
