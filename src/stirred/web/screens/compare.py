"""Compare: packets and published specifications side by side, part by part; a frontier of risk against error."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.catalog import catalog
from stirred.errors import InputError
from stirred.publish.side_by_side import comparison_sections, tables_of
from stirred.report.accuracy import compare_intervals
from stirred.report.document import Section
from stirred.spec import Specification
from stirred.spec.files import load
from stirred.web import commands
from stirred.web.forms import AttackerForm, last_text
from stirred.web.pages import bench_of, form_of, page
from stirred.web.workbench import Workbench

MAX_SIDES = 6  # sides of a comparison
DEFAULT_RATES = "1/100 1/20 1/2"


def compare_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/compare", compare),
        Route("/compare/report", write_report, methods=["POST"]),
        Route("/compare/frontier", draw_frontier, methods=["POST"]),
    ]


def compare(request: Request) -> Response:
    """Compare the chosen specifications part by part: which promises more, and why."""
    bench = bench_of(request)
    packets = bench.packets()
    sides = _sides(bench, request.query_params.getlist("side"), packets)
    sections = comparison_sections(list(sides), list(sides.values())) if len(sides) > 1 else []
    accuracy = _compare_accuracy(bench, sides)
    current, data = bench.history.current, bench.data.read_choice()
    attacker = AttackerForm() if data is None else AttackerForm.propose(data.schema)
    report = f"reports/{bench.next_number():04}"
    own = [number for number in packets if f"packet {number}" in " ".join(sides)]
    shown = []
    if len(own) > 1:
        shown.append(commands.compare([f"packets/{n:04}" for n in own], f"{report}.html"))
    if current:
        plan = f"plans/{current:04}.toml"
        shown.append(commands.frontier(plan, f"{report}-frontier", DEFAULT_RATES.split(), [], attacker))
    return page(
        request,
        "compare.html.j2",
        title="Compare",
        step="compare",
        shown=shown,
        packets=[{"number": n, "title": str(bench.packet(n).receipt().get("title", ""))} for n in packets],
        published=list(catalog),
        chosen=request.query_params.getlist("side"),
        sections=[*sections[:1], *accuracy, *sections[1:]],
        own=own,
        rates=DEFAULT_RATES,
        attacker=attacker,
        record_types=[] if data is None else list(data.schema.record_types),
        reports=[job for job in reversed(bench.line.all()) if job.kind in ("compare", "frontier")],
        read=data is not None and data.read,
    )


def _compare_accuracy(bench: Workbench, sides: Mapping[str, Specification]) -> list[Section]:
    """Return how far the numbers of the packets may be off, table by table, over cells that none keeps exact."""
    packets = {label: bench.packet(int(label.split()[1])) for label in sides if label.startswith("packet ")}
    if len(packets) < 2:
        return []
    shown = compare_intervals({label: tables_of(packet) for label, packet in packets.items()})
    lead = (
        "How far the 95% interval of the middle cell reaches, table by table. Only cells that none of the packets keeps "
        "exact are compared: “exact” says that a packet keeps the whole table, and what each keeps exact is listed below."
        if shown is not None
        else "The packets publish no table in common that states its errors."
    )
    return [
        Section(title="How far are their numbers off?", lead=lead, blocks=() if shown is None else (shown,))
    ]


def write_report(request: Request) -> Response:
    """Let the report on several packets be written, from their public parts."""
    bench = bench_of(request)
    numbers = [int(text) for text in form_of(request).get("packet", ()) if text.isdecimal() and len(text) < 8]
    if len(set(numbers)) < 2:
        raise InputError(
            "one packet cannot be compared", why="a comparison needs two", fix="tick two packets or more"
        )
    for number in numbers:
        bench.packet(number)
    title = f"compare {', '.join(map(str, numbers))}"
    with bench.line.lock:
        mine = bench.next_number()
        asked = commands.compare([f"packets/{n:04}" for n in numbers], f"reports/{mine:04}.html")
        bench.line.add("compare", asked.words, title=title, number=mine)
    return RedirectResponse("/compare", 303)


def draw_frontier(request: Request) -> Response:
    """Let the current plan be released at several rates and budgets and held against the truth."""
    bench, form = bench_of(request), form_of(request)
    bench.document()
    rates, rho = _exact(last_text(form, "rates")), _exact(last_text(form, "rho"))
    if not bench.require_data().read or not (rates or rho):
        raise InputError(
            "this frontier cannot be drawn",
            why="it holds releases against the records, which must be open, and needs rates or budgets to try",
            fix="let the records be read in the step Data, and write rates such as 1/100 1/20 1/2",
        )
    attacker = AttackerForm.of(form, bench.require_data().schema)
    with bench.line.lock:
        mine, current = bench.next_number(), bench.history.current
        plan, out = f"plans/{current:04}.toml", f"reports/{mine:04}-frontier"
        asked = commands.frontier(plan, out, rates, rho, attacker)
        bench.line.add("frontier", asked.words, plan=current, title="risk against error", number=mine)
    return RedirectResponse("/compare", 303)


def _sides(bench: Workbench, asked: list[str], packets: list[int]) -> dict[str, Specification]:
    """Return the specifications to compare by name: packets by number, published ones by catalog name."""
    found: dict[str, Specification] = {}
    for word in asked[:MAX_SIDES]:
        if word.isdecimal() and len(word) < 9 and int(word) in packets:
            packet = bench.packet(int(word))
            title = str(packet.receipt().get("title", ""))
            found[f"packet {word} ({title})"] = load(packet.public / "spec.json")
        elif word in catalog:
            found[word] = catalog[word]
    return found


def _exact(text: str) -> list[str]:
    """Return the words that look like exact numbers; refuse others."""
    words = text.replace(",", " ").split()
    if any(not all(c in "0123456789./" for c in word) for word in words) or len(words) > 20:
        raise InputError(
            "these numbers cannot be read",
            why="they are neither fractions nor decimals",
            fix="1/100 1/20 1/2",
        )
    return words
