"""Every path that comes through the workbench lies under its folders: each route and each field that takes one is here."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import polars as pl
import pytest
from pydantic import BaseModel
from starlette.routing import Route

from bench_client import BenchClient, form_in
from small_town import CENSUS, write_town
from stirred.census import read
from stirred.census.toml import CensusModel
from stirred.errors import InputError, StirredError
from stirred.mechanisms.config import read_extra
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.publish.plan.models import PlanConfig
from stirred.roots import SETTING, reading_below, require_names, require_readable
from stirred.web.jobs import JobQueue
from stirred.web.workbench import Workbench

SECRET = "4711-confidential"
CLOSED = "is not open to the workbench"

# fields of census.toml that name a file, and the text that states them
CODEBOOK_FIELDS: dict[str, Callable[[str], str]] = {
    "record.files": lambda name: CENSUS.replace("household.csv", name),
    "record.ddi": lambda name: CENSUS.replace('size = "size"', f'size = "size"\nddi = "{name}"', 1),
    "record.variables.codes_from": lambda name: CENSUS.replace(
        '{levels = ["owned", "rented"]}', f'{{codes_from = "{name}"}}'
    ),
    "record.variables.codes_from.file": lambda name: CENSUS.replace(
        '{levels = ["owned", "rented"]}', f'{{codes_from = {{file = "{name}"}}}}'
    ),
    "geography.shapes": lambda name: CENSUS.replace("[geography]", f'[geography]\nshapes = "{name}"'),
    "geography.areas.files": lambda name: CENSUS.replace(
        "[record.household]", f'[geography.areas]\nfiles = ["{name}"]\n[record.household]', 1
    ),
    "geography.off_spine.files": lambda name: CENSUS.replace(
        "[record.household]",
        f'[geography.off_spine.place]\nof = "block"\nfiles = ["{name}"]\nkey = "block"\n[record.household]',
        1,
    ),
}
# texts of census.toml that may look like the name of a file, and name a column, a label or a way to read
NO_FILES = (
    "at_most code codes column columns empty_as forbid format group_quarters household household_from housing_units "
    "id imputed key label labels leave_out level levels name nests_in not_applicable occupied of off_spine parent "
    "parts preset range record separator shapes_key shapes_level sheet size spine table total vacant variables "
    "weight where"
)
# routes that take a text in which a path may stand, and their fields
ROUTES = {
    "/data/folder": "folder",
    "/data/upload": "files",
    "/data/codebook": "text",
    "/method/text": "text",
    "/method": "settings",
    "/promise": "settings",
    "/promise/answer": "settings",
    "/promise/universe": "settings",
}
# routes whose fields are numbers, words of a list, or names of settings and variables
NO_PATHS = {
    "/visit/start",
    "/visit/end",
    "/data/demo",
    "/data/describe",
    "/data/read",
    "/data/figures",
    "/promise/start",
    "/run/check",
    "/run/start",
    "/run/{number}/cancel",
    "/run/{number}/resume",
    "/look/{number}/assess",
    "/compare/report",
    "/compare/frontier",
    "/history/restore",
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside those of the workbench, with something of every kind that a field can name."""
    folder = tmp_path / "outside"
    write_town(folder)
    (folder / "codes.csv").write_text(f"code,label\nowned,{SECRET}\nrented,r\n")
    (folder / "plain.toml").write_text(f'name = "{SECRET}"\n')
    (folder / "shapes.geojson").write_text(json.dumps({"features": [], "secret": SECRET}))
    sqlite3.connect(folder / "shapes.gpkg").close()
    pl.DataFrame({"a": [SECRET]}).write_parquet(folder / "t.parquet")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> BenchClient:
    """A browser with a workbench that holds a codebook of its own and is open to one folder beside it."""
    write_town(tmp_path / "data")
    bench = Workbench.of(tmp_path / "bench", roots=(tmp_path / "data",), most_upload=100_000)
    write_town(bench.workspace.own_census)
    return BenchClient(bench)


def names_of(outside: Path, file: str, base: Path) -> list[str]:
    """The ways to name a file outside: from the root, by dots, by a link, by a pattern, and as an address."""
    link = base / f"link-{file}"
    link.unlink(missing_ok=True)
    link.symlink_to(outside / file)
    up = "../" * 2 + outside.name
    return [
        f"{outside}/{file}",
        f"{up}/{file}",
        link.name,
        f"{up}/*{Path(file).suffix}",
        f"file:/{outside}/{file}",
    ]


def test_every_route_is_listed(own: BenchClient) -> None:
    posts = {
        route.path
        for route in own.app.inner.routes  # type: ignore[attr-defined]
        if isinstance(route, Route) and "POST" in (route.methods or ())
    }
    assert posts == set(ROUTES) | NO_PATHS


def test_every_field_of_a_codebook_is_listed() -> None:
    """A field that holds a text is one of those that name a file, or is known to name none."""

    def below(model: type[BaseModel], place: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            inner = _models_in(field.annotation)
            where = f"{place}.{name}".lstrip(".")
            if str in _kinds_in(field.annotation):
                yield where
            for one in inner:
                yield from below(one, where)

    texts = set(below(CensusModel, ""))
    assert {name for name in texts if name.rsplit(".", 1)[-1] not in NO_FILES.split()} == set(CODEBOOK_FIELDS)


def _models_in(kind: object) -> list[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for inner in get_args(kind) for model in _models_in(inner)]


def _kinds_in(kind: object) -> set[object]:
    return {kind} | {one for inner in get_args(kind) for one in _kinds_in(inner)}


@pytest.mark.parametrize("field", CODEBOOK_FIELDS)
def test_a_codebook_reads_no_file_outside(field: str, own: BenchClient, outside: Path) -> None:
    bench = own.bench
    file = {"record.ddi": "plain.toml", "geography.shapes": "shapes.geojson"}.get(field, "codes.csv")
    for name in names_of(outside, file, bench.workspace.own_census):
        text = CODEBOOK_FIELDS[field](name)
        corrected = own.post("/data/codebook", {"text": text})
        assert corrected.status == 422, name
        uploaded = _upload(own, text)
        assert uploaded.status == 303
        page = own.get("/data")
        assert CLOSED in page.words or "cannot read the codes" in page.words, (name, page.words[-600:])
        assert SECRET not in (corrected.text + page.text).replace(text, "")
        for path in ("/promise", "/method", "/run"):
            assert SECRET not in own.get(path).text
        # a command that a job runs has the same folders, whatever the workbench looked at before
        with pytest.MonkeyPatch.context() as child:
            child.setenv(SETTING, str(bench.workspace.folder))
            with pytest.raises(StirredError):
                read(bench.workspace.own_census / "census.toml").require_valid()
        assert (outside / file).exists()


def _upload(own: BenchClient, text: str) -> object:
    csrf, head = own.bench.session.csrf, "--xx\r\ncontent-disposition: form-data; name="
    body = f'{head}"csrf"\r\n\r\n{csrf}\r\n{head}"files"; filename="census.toml"\r\n\r\n{text}\r\n--xx--\r\n'
    return own.send("POST", "/data/upload", body=[body.encode()], kind="multipart/form-data; boundary=xx")


SETTINGS = [
    (mechanism, name)
    for mechanism in sorted(list_mechanisms())
    for name, field in find_mechanism(mechanism).Config.model_fields.items()
    if read_extra(field).get("path")
]


def test_settings_that_name_files_are_found() -> None:
    assert {("cell-key", "ptable"), ("cell-key", "magnitude_ptable"), ("safetab-h", "totals")} <= set(
        SETTINGS
    )
    assert {("topdown", "workload"), ("gaussian-tables", "given"), ("safetab-p", "codes")} <= set(SETTINGS)


@pytest.mark.parametrize(("mechanism", "setting"), SETTINGS)
def test_a_plan_reads_no_file_outside(mechanism: str, setting: str, own: BenchClient, outside: Path) -> None:
    started = own.post("/promise/start", {"mechanism": mechanism})
    bench = own.bench
    if started.status != 303:  # the codebook of the town does not do for it: its settings alone
        config = find_mechanism(mechanism).Config.model_construct(**{setting: str(outside / "plain.toml")})
        with (
            reading_below(bench.workspace.readable_folders),
            pytest.raises(InputError, match="not open to the workbench"),
        ):
            config.resolve_paths(bench.workspace.plans)
        return
    text = bench.history.text()
    ours = "\n".join(line for line in text.splitlines() if not line.startswith(f"{setting} ="))
    number = len(bench.history.versions())
    for place in (outside / "plain.toml", Path("../../outside/plain.toml"), Path("../census/link.toml")):
        link = bench.workspace.own_census / "link.toml"
        link.unlink(missing_ok=True)
        link.symlink_to(outside / "plain.toml")
        stated = ours.replace("[[mechanism]]", f'[[mechanism]]\n{setting} = "{place}"', 1)
        assert f"{setting} = " in stated
        reply = own.post("/method/text", {"text": stated})
        assert reply.status == 422
        assert CLOSED in reply.words, reply.words[:900]
        assert SECRET not in reply.text
        form = {"shown": setting, f"s.{setting}": str(place)}
        for path in ("/promise", "/promise/answer", "/promise/universe"):
            assert SECRET not in own.post(path, form).text
    assert len(bench.history.versions()) == number


def test_a_plan_names_no_census_and_no_totals_outside(own: BenchClient, outside: Path) -> None:
    own.post("/promise/start", {"mechanism": "permutation-swapping"})
    text = own.bench.history.text()
    line = next(line for line in text.splitlines() if line.startswith("census = "))
    other = text.replace(line, f'census = "{outside}/census.toml"')
    totals = f'{text}\n[weights]\nrecalibrate_to = ["{outside}/codes.csv"]\n'
    preset = (
        f'title = "t"\n{line}\n[[mechanism]]\nname = "topdown"\nworkload = "{"../" * 20}{outside}/plain"\n'
    )
    own.post(
        "/method/text", {"text": preset}
    )  # a preset of no known name, which is told when the promise is stated
    assert "there is no workload" in own.get("/promise").words
    for changed in (other, totals):
        reply = own.post("/method/text", {"text": changed})
        assert reply.status == 422
        assert CLOSED in reply.words
    assert {"census", "weights"} <= set(PlanConfig.model_fields)


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "a\x00b",
        "x" * 300,
        "/".join(["y" * 200] * 30),
        "~nobody",
        "~no-such-user-here",
        "~",
        "\udc80",
        "",
        " ",
    ],
)
def test_a_path_that_no_file_has_is_told_as_one(text: str, own: BenchClient) -> None:
    reply = own.post("/data/folder", {"folder": text.encode("utf-8", "surrogateescape")})
    assert reply.status == 422
    assert "Traceback" not in reply.text
    if "\udc80" in text or "\x00" in text:
        return
    for stated in (f'"{text}"',):
        codebook = CENSUS.replace('"household.csv"', stated)
        assert own.post("/data/codebook", {"text": codebook}).status in (303, 422)
        assert own.get("/data").status in (200, 422)


def test_escapes_in_a_codebook_and_a_plan_are_told_as_well(own: BenchClient) -> None:
    own.post("/promise/start", {"mechanism": "permutation-swapping"})
    plan = own.bench.history.text()
    line = next(line for line in plan.splitlines() if line.startswith("census = "))
    for word in (r"\u0000", "x" * 300, "/".join(["y" * 200] * 30)):
        assert own.post("/data/codebook", {"text": CENSUS.replace("household.csv", word)}).status == 422
        reply = own.post("/method/text", {"text": plan.replace(line, f'census = "{word}"')})
        assert reply.status == 422
        assert "no file or folder can have this name" in reply.words


@pytest.mark.parametrize("number", ["9" * 9, "9" * 300, "9" * 5000, "²", "-1", "1.5", "%00", "٣"])
def test_numbers_that_are_none_are_no_pages(number: str, own: BenchClient) -> None:
    for path in (
        f"/look/{number}",
        f"/packet/{number}",
        f"/reports/{number}",
        f"/look/{number}/report/public",
    ):
        assert own.get(path).status in (404, 422)
    for path in (f"/run/{number}/cancel", f"/run/{number}/resume", f"/look/{number}/assess"):
        assert own.post(path).status in (404, 422)
    own.post("/promise/start", {"mechanism": "permutation-swapping"})
    assert own.get(f"/compare?side={number}&side={number}").status == 200
    assert own.get(f"/promise?part={number}").status == 200
    assert own.post("/history/restore", {"number": number}).status in (303, 422)
    assert own.post("/compare/report", {"packet": [number, number]}).status == 422
    assert own.post("/data/figures", {"households": number, "largest": number}).status in (303, 422)


def test_one_function_judges(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "loop").symlink_to(inside / "loop")
    with reading_below([inside]):
        assert require_readable(inside / "not there" / "yet").name == "yet"
        for path in (tmp_path, tmp_path / "in2", inside / ".." / "x", Path("/etc/passwd")):
            with pytest.raises(InputError, match="not open to the workbench"):
                require_readable(path)
        with pytest.raises(InputError):
            require_readable(inside / "loop")
        for name in ("s3a://office/x.parquet", "file:/etc/passwd", "../*", "/etc/*"):
            with pytest.raises(InputError):
                require_names([name], inside)
        require_names(["*.csv", "a/b.csv", ""], inside)
    require_names(["s3a://office/x.parquet", "/etc/passwd"], inside)  # a person's own command


def test_a_packet_that_links_out_is_not_continued(tmp_path: Path) -> None:
    packet = tmp_path / "in" / "packet" / "public"
    packet.mkdir(parents=True)
    (tmp_path / "secret.parquet").write_bytes(b"x")
    config = find_mechanism("gaussian-tables").Config.model_construct(given="packet")
    with reading_below([tmp_path / "in"]):
        config.resolve_paths(tmp_path / "in")
        (packet / "data").symlink_to(tmp_path / "secret.parquet")
        with pytest.raises(InputError, match="not open to the workbench"):
            config.resolve_paths(tmp_path / "in")


def test_what_a_process_makes_for_itself_is_read(own: BenchClient) -> None:
    """A mechanism that continues another one is stated on a folder of scratch, which lies elsewhere."""
    own.post("/promise/start", {"mechanism": "permutation-swapping"})
    text = own.bench.history.text().replace(
        'name = "permutation-swapping"', 'name = "permutation-swapping"\nlabel = "one"'
    )
    tables = (
        '[[mechanism]]\nname = "gaussian-tables"\ngiven = "one"\ntables = [["county"]]\nrho_squared = "1/2"\n'
    )
    assert own.post("/method/text", {"text": f"{text}\n{tables}"}).status == 303
    page = own.get("/promise")
    assert page.status == 200
    assert CLOSED not in page.words


def test_commands_of_jobs_get_the_same_folders(own: BenchClient) -> None:
    assert own.bench.line.roots == own.bench.workspace.readable_folders
    assert isinstance(own.bench.line, JobQueue)
    assert form_in(own.get("/data").text, "/data/folder")
