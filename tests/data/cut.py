"""Cut the extracts of this folder from the larger public files: python tests/data/cut.py FOLDER_OF_THE_FILES.

Only sources whose licence lets a table be handed on are cut: MIT, Apache-2.0 or CC0. README.md names each.
"""

import hashlib
import json
import sys
from pathlib import Path

import polars as pl
import yaml

HERE = Path(__file__).parent
TRACTS = {"000400", "000500"}  # of Providence County, in the prototype of P.L. 94-171


def pl94(source: Path) -> None:
    """State, county, and two tracts with their block groups and blocks, in all four files."""
    folder = HERE / "pl94"
    folder.mkdir(exist_ok=True)
    geo = (source / "rigeo2018_2020Style.pl").read_text().splitlines()
    kept = [line for line in geo if line.split("|")[2] in {"040", "050"} or line.split("|")[32] in TRACTS]
    (folder / "rigeo2018_2020Style.pl").write_text("\n".join(kept) + "\n")
    numbers = {line.split("|")[7] for line in kept}
    for n in (1, 2, 3):
        name = f"ri0000{n}2018_2020Style.pl"
        lines = (source / name).read_text().splitlines()
        rows = [line for line in lines if line.split("|")[4] in numbers]
        (folder / name).write_text("\n".join(rows) + "\n")


def rhode_island(source: Path) -> None:
    """The blocks of Bristol County with their voting districts."""
    here = pl.col("geoid").str.starts_with("44001")
    blocks = pl.read_parquet(source / "ri_blocks.parquet").filter(here).select("geoid", "pop")
    blocks.write_csv(HERE / "bristol_blocks.csv")
    vtd = pl.read_csv(source / "ri_block_vtd.csv", infer_schema=False).filter(here)
    vtd.write_csv(HERE / "bristol_block_vtd.csv")


def hawaii(source: Path) -> None:
    """The population of every block group of Hawaii."""
    groups = pl.read_parquet(source / "block_groups.parquet").filter(pl.col("state") == "15")
    groups.select("geoid", "pop").write_csv(HERE / "hawaii_block_groups.csv")


def oregon(source: Path) -> None:
    """All units of two areas of the 5 % sample, with their persons."""
    homes = pl.read_parquet(source / "households.parquet").filter(pl.col("PUMA5").is_in(["01312", "01313"]))
    people = pl.read_parquet(source / "persons.parquet").filter(
        pl.col("SERIALNO").is_in(homes["SERIALNO"].implode())
    )
    homes.write_parquet(HERE / "oregon_households.parquet", compression="zstd", compression_level=19)
    people.write_parquet(HERE / "oregon_persons.parquet", compression="zstd", compression_level=19)


def guernsey(source: Path) -> None:
    """Synthetic persons of two tracts of Guernsey County in the layout of a privacy-protected microdata file."""
    made = pl.read_parquet(source / "synthetic_persons.parquet")
    made = made.filter(pl.col("tract").is_in(["39059977300", "39059977600"]))
    code = pl.col("geoid")
    made.select(
        TABBLKST=code.str.slice(0, 2),
        TABBLKCOU=code.str.slice(2, 3),
        TABTRACTCE=code.str.slice(5, 6),
        TABBLKGRPCE=code.str.slice(11, 1),
        TABBLK=code.str.slice(11, 4),
        RTYPE=pl.when(pl.col("HT") == 1).then(pl.lit("3")).otherwise(pl.lit("5")),
        GQTYPE_PL=(pl.col("HT") - 1).cast(pl.String),
        VOTING_AGE=pl.col("VA").cast(pl.String),
        CENHISP=pl.col("E").cast(pl.String),
        CENRACE=pl.col("R").cast(pl.String).str.zfill(2),
    ).write_parquet(HERE / "guernsey_synthetic_ppmf.parquet", compression="zstd", compression_level=19)


def race_codes(source: Path) -> None:
    """The major races of the production lists, the codes that belong to each, and all codes without their names."""
    folder = HERE / "race_codes"
    folder.mkdir(exist_ok=True)

    def lines(name: str) -> list[str]:
        return (source / name).read_text(encoding="utf-8", errors="replace").splitlines()

    first, *rows = lines("race-characteristic-iterations.txt")
    major = [row for row in rows if row.split("|")[2:4] == ["0", "True"]]
    numbers = {row.split("|")[0] for row in major}
    _write(folder / "race-characteristic-iterations.txt", [first, *major])
    first, *rows = lines("race-and-ethnicity-code-to-iteration.txt")
    own = [row for row in rows if row.split("|")[0] in numbers]
    _write(folder / "race-and-ethnicity-code-to-iteration.txt", [first, *own])
    codes = [row.split("|")[0] for row in lines("race-and-ethnicity-codes.txt") if row]
    _write(folder / "race-and-ethnicity-codes.txt", codes)


def mapping_cases(source: Path) -> None:
    """The lists and the twelve cases of the mapping from codes to population groups, whole."""
    folder = HERE / "safetab_mapping"
    folder.mkdir(exist_ok=True)
    for path in [*source.glob("race*.txt"), *source.glob("ethnicity*.txt")]:
        (folder / path.name).write_bytes(path.read_bytes())


def registry(source: Path) -> None:
    """The rules of the registry's schema, without its descriptions."""
    schema = yaml.safe_load((source / "deployments-schema.yaml").read_text())
    _write(HERE / "registry_schema.json", [json.dumps(_bare(schema), indent=1, sort_keys=True)])


def _bare(value: object) -> object:
    if isinstance(value, dict):
        words = {"description", "title", "examples"}
        return {k: _bare(v) for k, v in value.items() if k not in words or not isinstance(v, str | list)}
    return [_bare(one) for one in value] if isinstance(value, list) else value


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    given = Path(sys.argv[1])
    pl94(given / "pl94_format")
    rhode_island(given / "us2020")
    hawaii(given / "us2020")
    oregon(given / "pums2000_oregon")
    guernsey(given / "guernsey2010")
    race_codes(given / "safetab" / "p_production_NMFv7-2020")
    mapping_cases(given / "safetab" / "p_mapping_cases")
    registry(given / "registry")
    for file in sorted(
        path for path in HERE.rglob("*") if path.is_file() and path.suffix not in {".py", ".md"}
    ):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.relative_to(HERE), file.stat().st_size)
