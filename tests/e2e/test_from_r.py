"""From R through Parquet: the script of examples/from-r where R is found, else the same round trip by pyarrow."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
STIRRED = Path(sys.executable).with_name("stirred")
SCRIPT = ROOT / "examples/from-r/swap.R"


def has_arrow() -> bool:
    """Whether Rscript is there, with the package arrow."""
    found = shutil.which("Rscript")
    return bool(found) and subprocess.run([str(found), "-e", "library(arrow)"], check=False).returncode == 0


def schema_of_the_script() -> str:
    """The census.toml that the script writes."""
    text = SCRIPT.read_text()
    inside = text[text.index("writeLines(c(") : text.index('), file.path(folder, "census.toml"))')]
    lines = [part.strip() for part in inside.removeprefix("writeLines(c(").replace("\n", " ").split(", ")]
    parts = [line[1:-1] for line in _joined(lines)]
    return "\n".join(parts) + "\n"


def _joined(parts: list[str]) -> list[str]:
    """Quoted texts that a comma divided, whole again."""
    whole: list[str] = []
    for part in parts:
        if whole and not whole[-1].endswith(whole[-1][0]):
            whole[-1] += ", " + part
        else:
            whole.append(part)
    return whole


@pytest.mark.slow
def test_the_script_for_r(tmp_path: Path) -> None:
    if has_arrow():
        subprocess.run(["Rscript", str(SCRIPT), str(tmp_path), str(STIRRED)], check=True)
        return
    dice = random.Random(1)
    homes = pa.table(
        {
            "hid": pa.array(range(1, 401), pa.int32()),
            "region": ["North"] * 200 + ["South"] * 200,
            "district": [name for name in ("N1", "N2", "S1", "S2") for _ in range(100)],
            "size": pa.array([dice.randint(1, 4) for _ in range(400)], pa.int32()),
            "tenure": pa.array([dice.choice(["own", "rent"]) for _ in range(400)]).dictionary_encode(),
        }
    )
    pq.write_table(homes, tmp_path / "household.parquet")
    (tmp_path / "census.toml").write_text(schema_of_the_script())
    command = ["swap", str(tmp_path / "census.toml"), "--match", "region", "size", "--swap", "district"]
    command += ["--rate", "1/10", "--table", "district", "tenure", "--out", str(tmp_path / "packet")]
    subprocess.run([str(STIRRED), *command], check=True)
    swapped = pq.read_table(tmp_path / "packet/public/data/household.parquet")
    by = ["district", "size"]
    assert swapped.num_rows == 400
    assert counts(swapped, by) == counts(homes, by)
    assert "estimate" in pq.read_table(tmp_path / "packet/public/tables/district-tenure.parquet").column_names


def counts(table: pa.Table, by: list[str]) -> dict[tuple[object, ...], int]:
    """How many records have each combination of values."""
    rows = zip(*(table[name].to_pylist() for name in by), strict=True)
    found: dict[tuple[object, ...], int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return found
