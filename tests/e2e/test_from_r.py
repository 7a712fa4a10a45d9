"""From R and back: the script of examples/from-r with base R, and with the R package arrow where that is installed."""

import subprocess
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from e2e.pages import ROOT, STIRRED, environment

SCRIPT = ROOT / "examples/from-r/swap.R"


def run_script(folder: Path, *words: str) -> str:
    """What the script prints; it checks itself that the invariants hold and that factors, NA and names came back."""
    command = ["Rscript", str(SCRIPT), str(folder), str(STIRRED), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_script_for_base_r(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    assert "estimate" in run_script(folder, "csv")
    text = (folder / "household.csv").read_text()
    assert "\n1e+05," in text  # the file has what it is there to show
    assert "Genève" in text
    public = folder / "packet/public"
    swapped = pq.read_table(public / "data/household.parquet")
    again = pyarrow.csv.read_csv(public / "data/household.csv")
    assert swapped.num_rows == again.num_rows == 400
    assert {name: set(swapped[name].to_pylist()) for name in ("region", "tenure", "garden")} == {
        "region": {"Genève", "Zürich"},
        "tenure": {"own", "rent", "unknown"},
        "garden": {"true", "false"},
    }


@pytest.mark.slow
def test_the_script_chooses_the_files_that_r_can_write(tmp_path: Path) -> None:
    arrow = (
        subprocess.run(["Rscript", "-e", "library(arrow)"], capture_output=True, check=False).returncode == 0
    )
    run_script(tmp_path)
    assert (tmp_path / "household.parquet").exists() == arrow
    assert (tmp_path / "household.csv").exists() != arrow
