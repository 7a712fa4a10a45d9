"""Readers: each format gives the same records, lazily, and says which extra it needs."""

import builtins
import gzip
import random
import warnings
import zipfile
from pathlib import Path

import duckdb
import polars as pl
import pyreadstat
import pytest
from ipumspy import readers as ipums

from shared_data import extract
from stirred.census import Census, check, pl94, ppmf, read, validate
from stirred.census.describe import describe, to_toml
from stirred.census.public_files import GEO_COLUMNS, SEGMENT_TABLES, list_cells
from stirred.census.readers import open_source
from stirred.census.schema import Source
from stirred.errors import DataError, InputError, MissingExtraError, SchemaError

FRAME = pl.DataFrame({"h": [1.0, 2.0, 3.0], "size": [2.0, None, 3.0], "tenure": ["own", "rent", "own"]})
TOML = """
record.household.files = ["{file}"]
record.household.id = "h"
record.household.variables.size = {{range = "1..7", missing = "keep"}}
record.household.variables.tenure = ["own", "rent"]
"""


def written(folder: Path, file: str, more: str = "") -> Census:
    (folder / "census.toml").write_text(TOML.format(file=file) + more)
    return read(folder)


def same(census: Census) -> None:
    table = census.table("household", ["size", "tenure"])
    assert table.to_pydict() == {"size": [2, None, 3], "tenure": ["own", "rent", "own"]}
    assert census.counts("household", ["tenure"])["count"].to_pylist() == [2, 1]
    assert census.count("household") == 3


@pytest.mark.parametrize(
    ("file", "writer"),
    [
        ("h.sav", "write_sav"),
        ("h.zsav", "write_sav"),
        ("h.dta", "write_dta"),
        ("h.xpt", "write_xport"),
        ("h.por", "write_por"),
    ],
)
def test_statistical_files(tmp_path: Path, file: str, writer: str) -> None:
    frame = FRAME.rename(str.upper) if file.endswith(".por") else FRAME  # portable files know capitals only
    getattr(pyreadstat, writer)(frame.to_pandas(), tmp_path / file)
    text = TOML.format(file=file)
    if file.endswith(".por"):
        text = text.replace('id = "h"', 'id = "H"').replace("size = {", 'size = {column = "SIZE", ')
        text = text.replace(
            'tenure = ["own", "rent"]', 'tenure = {column = "TENURE", levels = ["own", "rent"]}'
        )
    (tmp_path / "census.toml").write_text(text)
    same(read(tmp_path))


def test_statistical_files_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.census.readers.statistical.ROWS_PER_CHUNK", 7)
    frame = pl.DataFrame({"x": [float(i) for i in range(30)], "y": [str(i) for i in range(30)]})
    pyreadstat.write_sav(frame.to_pandas(), tmp_path / "x.sav")
    lazy = open_source(Source(files=("x.sav",)), tmp_path)
    assert lazy.collect().equals(frame)
    assert lazy.select("y").collect().equals(frame.select("y"))
    assert lazy.head(10).collect().equals(frame.head(10))
    assert lazy.filter(pl.col("x") > 20).collect().height == 9
    assert lazy.select(pl.len()).collect().item() == 30


def test_a_broken_statistical_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "x.sav").write_bytes(b"no such format at all")
    with pytest.raises(DataError, match="its header is damaged"):
        open_source(Source(files=("x.sav",)), tmp_path).collect()


def test_duckdb_tables(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "c.duckdb"))
    connection.execute("CREATE TABLE homes (h INTEGER, size INTEGER, tenure VARCHAR)")
    connection.execute("INSERT INTO homes VALUES (1, 2, 'own'), (2, NULL, 'rent'), (3, 3, 'own')")
    connection.execute('CREATE VIEW "odd ""name""" AS SELECT * FROM homes')
    connection.close()
    same(written(tmp_path, "c.duckdb", 'record.household.table = "homes"'))
    lazy = open_source(Source(files=("c.duckdb",), table='odd "name"'), tmp_path)
    assert lazy.select(pl.len()).collect().item() == 3
    assert lazy.filter(pl.col("size") == 3).collect().height == 1
    with pytest.raises(SchemaError, match="did you mean homes"):
        open_source(Source(files=("c.duckdb",), table="home"), tmp_path)
    with pytest.raises(SchemaError, match="cannot tell which table"):
        open_source(Source(files=("c.duckdb",)), tmp_path)
    (tmp_path / "bad.duckdb").write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match="cannot open bad"):
        open_source(Source(files=("bad.duckdb",), table="x"), tmp_path)


@pytest.mark.parametrize(
    ("separator", "more"),
    [(",", ""), ("|", ""), (";", ""), ("\t", ""), (",", 'record.household.separator = ","')],
)
def test_delimited_text_is_typed_by_the_schema(tmp_path: Path, separator: str, more: str) -> None:
    lines = ["h,size,tenure", "1,2,own", "2,,rent", "3, 3 ,own"]
    (tmp_path / "h.csv").write_text("\n".join(lines).replace(",", separator) + "\n")
    same(written(tmp_path, "h.csv", more))


def test_delimited_text_may_be_compressed_quoted_or_without_header(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "h.csv.gz", "wt") as stream:
        stream.write('"h","size","tenure"\n1,2,"own"\n2,,"rent"\n3,3,"own"\n')
    same(written(tmp_path, "h.csv.gz"))
    (tmp_path / "h.txt").write_text("1;2;own\n2;;rent\n3;3;own\n")
    more = 'record.household.header = false\nrecord.household.columns = ["h", "size", "tenure"]'
    same(written(tmp_path, "h.txt", more))


def test_latin1_keeps_accents_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.census.readers.delimited.BLOCK_BYTES", 10)  # many blocks
    lines = ["år;size", *(f"{name};{i}" for i, name in enumerate(["Bé", "Bè", "Bê", "Bé"]))]
    (tmp_path / "h.csv").write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    (tmp_path / "census.toml").write_text(
        'record.household = {files = ["h.csv"], encoding = "latin1", variables = {"år" = "text", size = "0..9"}}'
    )
    census = read(tmp_path)
    assert census.counts("household", ["år"]).to_pydict() == {"år": ["Bè", "Bé", "Bê"], "count": [1, 2, 1]}
    assert census.count("household") == 4
    assert census.table("household")["size"].to_pylist() == [0, 1, 2, 3]


def test_a_misfit_stops_the_read_and_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("h,size,tenure\n1,SECRET,own\n")
    census = written(tmp_path, "h.csv")
    for action in (
        lambda: census.table("household"),
        lambda: census.counts("household", ["size"]),
        lambda: list(census.batches("household")),
    ):
        with pytest.raises(DataError) as caught:
            action()
        assert "size" in str(caught.value)
        assert "SECRET" not in repr(caught.value)


def test_files_of_one_type_must_have_one_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("h,size\n1,2\n")
    (tmp_path / "b.csv").write_text("size,h\n2,1\n")
    with pytest.raises(DataError, match=r"b.csv has another header than a.csv"):
        open_source(Source(files=("*.csv",)), tmp_path)


def test_unknown_formats_and_absent_files(tmp_path: Path) -> None:
    (tmp_path / "x.zzz").write_text("")
    with pytest.raises(SchemaError, match="cannot tell the format"):
        open_source(Source(files=("x.zzz",)), tmp_path)
    with pytest.raises(SchemaError, match="did you mean parquet"):
        open_source(Source(files=("x.zzz",), format="parket"), tmp_path)
    with pytest.raises(InputError, match=r"no file y.csv"):
        open_source(Source(files=("y.csv",)), tmp_path)
    with pytest.raises(SchemaError, match="no files"):
        open_source(Source(), tmp_path)


@pytest.mark.parametrize(
    ("module", "source", "extra"),
    [
        ("pyreadstat", Source(files=("x.sav",)), "stat"),
        ("duckdb", Source(files=("x.duckdb",), table="t"), "duckdb"),
        ("ipumspy.readers", Source(files=("x.dat",), ddi="x.xml"), "ipums"),
    ],
)
def test_a_missing_extra_gives_the_exact_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, source: Source, extra: str
) -> None:
    real = builtins.__import__
    import importlib

    def absent(name: str, package: str | None = None) -> object:
        if name == module:
            raise ImportError(name)
        return real_module(name, package)

    real_module = importlib.import_module
    monkeypatch.setattr("stirred._support.importlib.import_module", absent)
    assert real is builtins.__import__
    (tmp_path / source.files[0]).write_text("")
    with pytest.raises(MissingExtraError) as caught:
        open_source(source, tmp_path)
    assert caught.value.fix == f"pip install 'stirred[{extra}]'"


# ---- IPUMS: ipumspy itself is the oracle for the values --------------------------------------------------------------


def ddi(variables: list[tuple[str, int, int, int, str]], *, hierarchical: bool = False) -> str:
    groups = (
        '<recGrp rectype="H" recidvar="RECTYPE" keyvar="SERIAL"/><recGrp rectype="P" recidvar="RECTYPE" keyvar="SERIAL"/>'
        if hierarchical
        else ""
    )
    parts = []
    for name, start, width, decimals, rectype in variables:
        kind = "character" if name == "RECTYPE" else "numeric"
        of = f' rectype="{rectype}"' if hierarchical else ""
        codes = "<catgry><catValu>1</catValu><labl>one</labl></catgry>" if name == "SEX" else ""
        parts.append(
            f'<var ID="{name}" name="{name}" dcml="{decimals}" intrvl="discrete"{of}>'
            f'<location StartPos="{start}" EndPos="{start + width - 1}" width="{width}"/>'
            f'<labl>{name}</labl><txt>text</txt>{codes}<concept>c</concept><varFormat type="{kind}"/></var>'
        )
    structure = "hierarchical" if hierarchical else "rectangular"
    return f"""<?xml version="1.0"?>
<codeBook xmlns="ddi:codebook:2_5"><stdyDscr><citation><titlStmt><titl>t</titl><IDNo>d</IDNo></titlStmt>
<serStmt><serName abbr="usa">usa</serName><serInfo>doi</serInfo></serStmt></citation>
<stdyInfo><notes>User-provided: none</notes></stdyInfo><dataAccs><useStmt><citReq>cite</citReq>
<conditions>terms</conditions></useStmt></dataAccs></stdyDscr>
<fileDscr><fileTxt><fileName>x.dat</fileName><fileCont>c</fileCont><fileStrc type="{structure}">{groups}</fileStrc>
<fileType charset="UTF-8">UTF-8</fileType><format>fixed length fields</format><filePlac>p</filePlac></fileTxt></fileDscr>
<dataDscr>{"".join(parts)}</dataDscr></codeBook>"""


def test_ipums_extract_equals_ipumspy(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(ddi([("SERIAL", 1, 4, 0, ""), ("SEX", 5, 1, 0, ""), ("WT", 6, 6, 2, "")]))
    chance = random.Random(5)
    lines = [f"{i:04d}{chance.randint(1, 2)}{chance.randint(1, 999999):06d}" for i in range(1, 200)]
    (tmp_path / "x.dat").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "y.dat.gz", "wt") as stream:
        stream.write("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = ipums.read_microdata(ipums.read_ipums_ddi(tmp_path / "x.xml"), tmp_path / "x.dat")
    schema = 'record.person.variables = {{SERIAL = "integer", SEX = [1, 2], WT = "number"}}\nrecord.person.files = ["{}"]\n'
    for file, more in (("x.dat", ""), ("y.dat.gz", 'record.person.ddi = "x.xml"')):
        (tmp_path / "census.toml").write_text(
            schema.format(file).replace("{{", "{").replace("}}", "}") + more
        )
        table = read(tmp_path).table("person", ["SERIAL", "SEX", "WT"])
        assert table["SERIAL"].to_pylist() == expected["SERIAL"].tolist()
        assert table["SEX"].to_pylist() == expected["SEX"].tolist()
        assert table["WT"].to_pylist() == pytest.approx(expected["WT"].tolist())


def test_hierarchical_ipums_extract_gives_households_and_persons(tmp_path: Path) -> None:
    variables = [
        ("RECTYPE", 1, 1, 0, "H P"),
        ("SERIAL", 2, 3, 0, "H P"),
        ("ROOMS", 5, 1, 0, "H"),
        ("AGE", 5, 2, 0, "P"),
    ]
    (tmp_path / "x.xml").write_text(ddi(variables, hierarchical=True))
    (tmp_path / "x.dat").write_text("H0014 \nP00130\nP00129\nH0022 \nP00290\n")
    (tmp_path / "census.toml").write_text(
        """
        record.household = {files = ["x.dat"], table = "H", id = "SERIAL", variables = {ROOMS = "1..9"}}
        record.person = {files = ["x.dat"], table = "P", household = "SERIAL", variables = {AGE = "0..115"}}
        """
    )
    census = read(tmp_path)
    assert census.table("household").to_pydict() == {"SERIAL": ["001", "002"], "ROOMS": [4, 2]}
    assert census.counts("person", ["ROOMS", "AGE"]).to_pydict() == {
        "ROOMS": [2, 4, 4],
        "AGE": [90, 29, 30],
        "count": [1, 1, 1],
    }
    with pytest.raises(SchemaError, match="add table = one of H, P"):
        open_source(Source(files=("x.dat",)), tmp_path)


def test_a_codebook_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("1\n")
    with pytest.raises(SchemaError, match=r"no codebook x.xml"):
        open_source(Source(files=("x.dat",)), tmp_path)
    (tmp_path / "x.xml").write_text("<html></html>")
    with pytest.raises(DataError, match="not a DDI file"):
        open_source(Source(files=("x.dat",)), tmp_path)


# ---- the Bureau's formats --------------------------------------------------------------------------------------------


def test_pl94_layout_has_the_published_number_of_fields() -> None:
    # README of the fixture: 97 header fields; segments of 149, 152 and 15 with their five link fields
    assert len(GEO_COLUMNS) == len(set(GEO_COLUMNS)) == 97
    assert [5 + len(list_cells(segment)) for segment in SEGMENT_TABLES] == [149, 152, 15]


def test_pl94_files_of_another_layout_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        pl94(tmp_path).count("area")
    for name in ("rigeo2020.pl", "ri000012020.pl", "ri000022020.pl", "ri000032020.pl"):
        (tmp_path / name).write_text("PLST|RI|SECRET\n")
    with pytest.raises(DataError, match="has 3 fields instead of 97") as caught:
        pl94(tmp_path).count("area")
    assert "SECRET" not in str(caught.value)
    (tmp_path / "ri000032020.pl").unlink()
    (tmp_path / "rigeo2020.pl").write_text("|".join(["x"] * 97) + "\n")
    with pytest.raises(DataError, match="instead of 149"):
        pl94(tmp_path).count("area")


def test_a_file_that_is_no_ppmf(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="is not a PPMF"):
        ppmf(tmp_path / "x.csv").count("person")


def fixture_in_a_zip(folder: Path) -> Path:
    path = folder / "ri2020.pl.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(extract("pl94").glob("*.pl")):
            archive.write(file, file.name)
    return path


def test_pl94_files_are_read_from_the_zip_archive_the_bureau_distributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stirred.census.readers.delimited.BLOCK_BYTES", 1 << 14)  # many blocks
    path, folder = fixture_in_a_zip(tmp_path), extract("pl94")
    for level in ("750", "040"):
        expected = pl94(folder, summary_level=level).table("area")
        assert pl94(path, summary_level=level).table("area").equals(expected)  # the archive
        assert pl94(tmp_path, summary_level=level).table("area").equals(expected)  # a folder that holds it
    assert pl94(path).counts("area", [])["count"].to_pylist() == [93]  # blocks, by awk
    assert not validate(pl94(path))


def test_a_damaged_zip_archive_and_one_without_the_files(tmp_path: Path) -> None:
    whole = fixture_in_a_zip(tmp_path)
    whole.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(DataError, match="not a complete zip archive"):
        pl94(whole).count("area")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "SECRET")
    with pytest.raises(DataError, match="found 0") as caught:
        pl94(tmp_path / "other.zip").count("area")
    assert "SECRET" not in str(caught.value)


# ---- what is no record, or no text, is not shown -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"71,3,SECRET\n72,2,SECRET\n",  # no header: the first record would be the names
        b"71;3;SECRET\n72;2;SECRET\n",
        b"h,size,tenure\r71,3,SECRET\r",  # bare carriage returns: all records would be one line of names
        "h,size,tenure\n71,3,SECRET\n".encode("utf-16"),
    ],
)
@pytest.mark.parametrize("separator", ["", 'record.household.separator = ","'])
def test_a_first_line_that_is_no_header_is_not_shown(tmp_path: Path, data: bytes, separator: str) -> None:
    (tmp_path / "h.csv").write_bytes(data)
    (tmp_path / "census.toml").write_text(TOML.format(file="h.csv") + separator)
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    told = f"{caught.value} {check(tmp_path)}"
    with pytest.raises(DataError) as guessed:
        describe(["h.csv"], folder=tmp_path)
    told += str(guessed.value)
    for value in ("SECRET", "71", "S\x00E"):
        assert value not in told


def test_numbers_may_be_names_when_the_schema_says_so(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1,2,3\n1,2,own\n2,,rent\n3,3,own\n")
    same(written(tmp_path, "h.csv", 'record.household.columns = ["h", "size", "tenure"]'))


@pytest.mark.parametrize(
    ("file", "data", "why"),
    [
        (
            "h.csv.gz",
            gzip.compress(b"h,size,tenure\n" + b"1,2,own\n" * 5000, mtime=0)[:-20],
            "compressed file is damaged",
        ),
        ("h.csv", b'h,size,tenure\n1,2,own\n2,"3,SECRET\n4,1,own\n', "quoted field is not closed"),
    ],
)
def test_the_reason_is_the_right_one(tmp_path: Path, file: str, data: bytes, why: str) -> None:
    (tmp_path / file).write_bytes(data)
    (tmp_path / "census.toml").write_text(TOML.format(file=file))
    report = str(check(tmp_path))
    assert why in report
    assert "SECRET" not in report


def test_files_with_other_columns_are_not_called_damaged(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.with_columns(more=1).write_parquet(tmp_path / "b.parquet")
    (tmp_path / "census.toml").write_text(TOML.format(file="*.parquet"))
    assert "differ in their columns" in str(check(tmp_path))


def test_an_error_inside_a_query_has_our_words_alone(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("h,size,tenure\n1,SECRET,own\n")
    with pytest.raises(DataError) as caught:
        written(tmp_path, "h.csv").table("household")
    assert caught.value.what == "column size: 1 values of a batch are not a number"
    assert caught.value.fix == "see all problems with: stirred data check census.toml"


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_truncated_database_is_one_problem(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "h.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE homes AS SELECT i AS h, 1 + i % 7 AS size, 'SECRET' AS tenure FROM range(50000) t(i)"
        )
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    (tmp_path / "census.toml").write_text(TOML.format(file="h.duckdb") + 'record.household.table = "homes"')
    report = check(tmp_path)
    assert len(report) == 1
    assert "SECRET" not in str(report)
    with pytest.raises(DataError, match=r"h.duckdb"):
        read(tmp_path).counts("household", ["size"])


def test_a_truncated_arrow_file_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "h.arrow"
    FRAME.write_ipc(path)
    path.write_bytes(path.read_bytes()[:300])
    (tmp_path / "census.toml").write_text(TOML.format(file="h.arrow"))
    assert "not a complete Arrow file" in str(check(tmp_path))


def test_latin1_is_found_by_describe_and_the_description_reads(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_bytes("år;size\nBé;1\nBè;2\n".encode("latin-1"))
    document = describe(["homes.csv"], folder=tmp_path)
    assert document["record"]["household"]["encoding"] == "latin1"
    (tmp_path / "census.toml").write_text(to_toml(document), encoding="utf-8")
    assert read(tmp_path).counts("household", ["år"])["år"].to_pylist() == ["Bè", "Bé"]
    (tmp_path / "homes.csv").write_text("år;size\nBé;1\n", encoding="utf-8")
    assert "encoding" not in describe(["homes.csv"], folder=tmp_path)["record"]["household"]
