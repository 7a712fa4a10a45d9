"""The R package of r/: built with its vignette and checked with the R that is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.pages import ROOT, STIRRED, environment

NEEDED = ("jsonlite", "testthat", "knitr", "markdown", "laeken", "haven", "bit64")
MOST_SECONDS = (
    1800  # seconds; it takes about 150 of the processor, and a machine that does other work is slow
)


def find_missing(packages: tuple[str, ...]) -> list[str]:
    """Return the R packages that are not installed."""
    asked = "cat(setdiff(commandArgs(TRUE), rownames(installed.packages())))"
    done = subprocess.run(["Rscript", "-e", asked, *packages], capture_output=True, text=True, check=True)
    return done.stdout.split()


def run_r(*words: str, folder: Path) -> str:
    """Return what a command of R prints; its failure shows all of it."""
    # arrow, which is not in Debian, may be missing
    told = environment() | {
        "STIRRED_COMMAND": str(STIRRED),
        "_R_CHECK_PACKAGE_DEPENDS_IGNORE_MISSING_ENHANCES_": "true",
    }
    done = subprocess.run(
        ["R", "CMD", *words],
        cwd=folder,
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    logs = [path.read_text(errors="replace")[-3000:] for path in folder.glob("*.Rcheck/tests/*.fail")]
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:] + "".join(logs)
    return done.stdout


@pytest.mark.slow
def test_the_package_passes_the_check_of_r(tmp_path: Path) -> None:
    assert shutil.which("Rscript"), "R is not installed: bash tools/r"
    missing = find_missing(NEEDED)
    assert not missing, "R packages are missing: sudo apt-get install " + " ".join(
        f"r-cran-{one}" for one in missing
    )
    shutil.copytree(ROOT / "r", tmp_path / "r")
    run_r("build", "r", folder=tmp_path)
    (archive,) = tmp_path.glob("stirred_*.tar.gz")
    # the vignette was just built from the same sources
    told = run_r("check", "--no-manual", "--ignore-vignettes", archive.name, folder=tmp_path)
    assert told.rstrip().endswith("Status: OK"), told
