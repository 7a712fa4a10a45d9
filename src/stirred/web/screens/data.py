"""Show the first page and the data: the codebook first; records stay unread until a person asks."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Thread

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.closed_files import make_closed_folder
from stirred.errors import InputError, StirredError
from stirred.text_formats import read_plain_text
from stirred.web import commands
from stirred.web.forms import Form, last_text
from stirred.web.pages import VISIT_HOUSEHOLDS, bench_of, can_visit, form_of, page, set_visit
from stirred.web.uploads import Upload
from stirred.web.workbench import Workbench
from stirred.web.workspace import CODEBOOK, ChosenData, FileParts

# The first page: what the workbench is for, and where to begin.


def start_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/", start),
        Route("/visit/start", start_visit, methods=["POST"]),
        Route("/visit/end", end_visit, methods=["POST"]),
    ]


def start_visit(request: Request) -> Response:
    """Begin the guided visit: make a small demo census, unless an earlier visit has made one."""
    bench = bench_of(request)
    if not can_visit(bench):
        return data(
            request,
            InputError(
                "this workbench has data already",
                why="the visit works on an invented census of its own",
                fix="start another workbench for it: stirred serve visit",
            ),
        )
    with bench.workspace.lock:
        made = bench.latest("synth")
        set_visit(bench, on=True)
        if bench.data.read_choice() is None and (made is None or made.ended):
            bench.line.add("synth", commands.synth(VISIT_HOUSEHOLDS).words, title="make the demo census")
    return RedirectResponse("/data", 303)


def end_visit(request: Request) -> Response:
    """End the guided visit; what it made stays."""
    set_visit(bench_of(request), on=False)
    return RedirectResponse("/", 303)


def start(request: Request) -> Response:
    """Show the steps, the demo and the calculators."""
    bench = bench_of(request)
    has_data = bench.data.read_choice() is not None
    shown = [commands.serve(".")] if has_data else [commands.serve("."), commands.synth()]
    return page(
        request,
        "start.html.j2",
        title="Workbench",
        shown=shown,
        has_data=has_data,
        can_visit=can_visit(bench),
    )


# Data: the codebook first; records stay unread until a person asks.

DEMO_HOUSEHOLDS = 60_000  # households of the demo census


def data_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/data", data),
        Route("/data/demo", make_demo, methods=["POST"]),
        Route("/data/upload", upload, methods=["POST"]),
        Route("/data/folder", name_folder, methods=["POST"]),
        Route("/data/describe", describe_files, methods=["POST"]),
        Route("/data/codebook", correct_codebook, methods=["POST"]),
        Route("/data/read", read_records, methods=["POST"]),
        Route("/data/figures", set_figures, methods=["POST"]),
    ]


def data(request: Request, refusal: StirredError | None = None, draft: str = "") -> Response:
    """Show what is chosen, its codebook, and the ways to choose something else."""
    bench = bench_of(request)
    chosen = bench.data.read_choice()
    schema, mistake = None, refusal
    if chosen is not None:
        try:
            schema = chosen.schema
        except StirredError as error:
            mistake = mistake or error
    files = [path.name for path in bench.data.files()]
    parts: list[FileParts] = []
    try:
        parts = bench.data.parts() if chosen is None else []
    except StirredError as error:
        mistake = mistake or error
    shown = _list_data_commands(bench, chosen)
    if files:
        shown = [commands.describe([f"census/{name}" for name in files]), *shown]
    text = draft
    if not text and chosen is not None and chosen.file.is_file():
        text = _text_of(chosen)
    return page(
        request,
        "data.html.j2",
        title="Data",
        step="data",
        shown=shown,
        chosen=chosen,
        schema=schema,
        refusal=mistake,
        files=files,
        parts=parts,
        text=text,
        own=bench.data.is_own,
        checked=bench.latest("check-data"),
        made=bench.latest("synth") or bench.latest("describe"),
        roots=[str(root) for root in bench.workspace.roots],
        demo=DEMO_HOUSEHOLDS,
        most_upload=bench.most_upload,
        status=422 if refusal else 200,
    )


def _list_data_commands(bench: Workbench, chosen: ChosenData | None) -> list[commands.ShownCommand]:
    """Return the command that made the data, as it was run, and the check of the records."""
    if chosen is None:
        return [commands.synth()]
    check = commands.check_data(bench.census_from_here())
    made = bench.latest("synth")
    if made is None or made.state != "done" or chosen.file != bench.workspace.own_census / CODEBOOK:
        return [check]
    words = made.words
    households = int(words[words.index("--households") + 1]) if "--households" in words else None
    return [
        replace(commands.synth(households), note="Made these data; in another folder it makes the same."),
        check,
    ]


def _text_of(chosen: ChosenData) -> str:
    """Return the text of a codebook for its form; empty where it cannot be shown."""
    try:
        return read_plain_text(chosen.file)
    except (StirredError, OSError, UnicodeDecodeError):
        return ""


def make_demo(request: Request) -> Response:
    """Let the demo census be made."""
    bench, form = bench_of(request), form_of(request)
    if (bench.workspace.own_census / CODEBOOK).exists():
        return data(
            request,
            InputError(
                "this workbench has data already",
                why="the folder census is not overwritten",
                fix="start another workbench: stirred serve OTHER_FOLDER",
            ),
        )
    households = _count(last_text(form, "households"), DEMO_HOUSEHOLDS, least=20)
    asked = commands.synth(None if households == DEMO_HOUSEHOLDS else households)
    bench.line.add("synth", asked.words, title="make the demo census")
    return RedirectResponse("/data", 303)


async def upload(request: Request) -> Response:
    """Take files as they come, within the limit."""
    bench = bench_of(request)
    make_closed_folder(bench.workspace.own_census)
    arriving = Upload(bench.workspace.own_census, bench.session, bench.most_upload)
    try:
        files = await arriving.read(request)
        await run_in_threadpool(bench.data.take, files)
    finally:
        arriving.undo()
    return RedirectResponse("/data", 303)


def name_folder(request: Request) -> Response:
    """Take a census that lies in a folder; its codebook is read, its records are not."""
    bench = bench_of(request)
    try:
        file = bench.data.resolve_place(last_text(form_of(request), "folder"))
    except StirredError as error:
        return data(request, error)
    bench.data.choose(ChosenData(file=file))
    Thread(target=bench.warm, daemon=True).start()
    return RedirectResponse("/data", 303)


def describe_files(request: Request) -> Response:
    """Guess a codebook from the uploaded files, which reads them: a person asked for it."""
    bench = bench_of(request)
    files = [f"census/{path.name}" for path in bench.data.files()]
    if not files or (bench.workspace.own_census / CODEBOOK).exists():
        return data(
            request,
            InputError(
                "there is nothing to describe",
                why="no file was uploaded, or there is a codebook already",
                fix="upload files, or correct the codebook below",
            ),
        )
    form = form_of(request)
    try:
        sheets, tables = (_parts(form, kind, bench.data.parts()) for kind in ("sheet", "table"))
    except StirredError as error:
        return data(request, error)
    asked = commands.describe(files, sheets=sheets, tables=tables)
    bench.line.add("describe", asked.words, title="guess a codebook")
    return RedirectResponse("/data", 303)


def correct_codebook(request: Request) -> Response:
    """Keep a codebook that was corrected by hand."""
    bench, text = bench_of(request), last_text(form_of(request), "text") + "\n"
    if not bench.data.is_own:
        return data(
            request,
            InputError(
                "this codebook is not changed here",
                why="it lies outside the folder of the workbench",
                fix="edit the file itself, then load this page again",
            ),
        )
    try:
        bench.data.correct(text)
    except StirredError as error:
        return data(request, error, text)
    return RedirectResponse("/data", 303)


def read_records(request: Request) -> Response:
    """Allow the records to be read for the promise, and check them against the codebook first."""
    bench = bench_of(request)
    allow = last_text(form_of(request), "read") == "yes"
    with bench.workspace.lock:
        bench.data.change(read=allow)
        if allow:
            words = commands.check_data(bench.census_from_here()).words
            bench.line.add("check-data", words, title="hold the records against the codebook")
    return RedirectResponse("/data", 303)


def set_figures(request: Request) -> Response:
    """Keep public figures that stand in for the records: households, and the largest stratum."""
    bench, form = bench_of(request), form_of(request)
    largest = last_text(form, "largest").replace(",", "")
    most = _count(largest, 0, least=0) if largest else None
    with bench.workspace.lock:
        households = _count(last_text(form, "households"), bench.require_data().households, least=2)
        bench.data.change(households=households, largest=most)
    return RedirectResponse(
        last_text(form, "back") if last_text(form, "back") in ("/data", "/promise") else "/data", 303
    )


def _parts(form: Form, kind: str, known: Sequence[FileParts]) -> list[str]:
    """Return the sheets or tables that a person chose, of those that the files have."""
    names = [name for found in known if found.kind == kind for name in found.names]
    chosen = [name for name in dict.fromkeys(form.get(kind, ())) if name in names]
    if names and not chosen:
        raise InputError(
            f"no {kind} is chosen",
            why=f"each {kind} is a record type, and some hold notes or totals",
            fix=f"tick the {kind}s that hold records, one record in a row",
        )
    return chosen


def _count(text: str, usual: int, *, least: int) -> int:
    """Parse a whole number within the limits of what can be made."""
    plain = text.replace(",", "").strip()
    if not plain:
        return usual
    if not plain.isdecimal() or len(plain) > 12 or int(plain) < least:
        raise InputError(
            "this number cannot be used",
            why=f"it is not a whole number of at least {least}",
            fix="write digits alone, such as 2000",
        )
    return int(plain)
