"""The R package of r/: built with its vignette and checked with the R that is installed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.pages import ROOT, STIRRED, environment

NEEDED = ("jsonlite", "testthat")  # to check the package
VIGNETTE = ("knitr", "markdown", "laeken")  # to build its vignette too
MOST_SECONDS = 1800  # seconds; a machine that does other work is slow


def find_missing(packages: tuple[str, ...]) -> list[str]:
    """The R packages that are not installed."""
    asked = "cat(setdiff(commandArgs(TRUE), rownames(installed.packages())))"
    done = subprocess.run(["Rscript", "-e", asked, *packages], capture_output=True, text=True, check=True)
    return done.stdout.split()


def run_r(*words: str, folder: Path) -> str:
    """What a command of R prints; its failure shows all of it."""
    told = environment() | {"STIRRED_COMMAND": str(STIRRED), "_R_CHECK_FORCE_SUGGESTS_": "false"}
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
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed: sudo apt-get install r-base-core r-cran-jsonlite r-cran-testthat")
    if missing := find_missing(NEEDED):
        pytest.skip(
            "R packages are missing: sudo apt-get install " + " ".join(f"r-cran-{m}" for m in missing)
        )
    shutil.copytree(ROOT / "r", tmp_path / "r")
    no_vignette = bool(find_missing(VIGNETTE))
    run_r("build", *(["--no-build-vignettes"] if no_vignette else []), "r", folder=tmp_path)
    (archive,) = tmp_path.glob("stirred_*.tar.gz")
    told = run_r("check", "--no-manual", "--ignore-vignettes", archive.name, folder=tmp_path)
    # packages that are suggested and not installed are a note of R; nothing else is
    notes = re.findall(r"\.\.\..* NOTE$|^ NOTE$", told, flags=re.MULTILINE)
    assert "WARNING" not in told, told
    assert len(notes) <= told.count("Package suggested but not available") + told.count(
        "Packages suggested but not available"
    ), told
