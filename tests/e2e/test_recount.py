"""The numbers of the first screen, counted again from the packet's files by code that shares nothing with the report."""

import re
from html import unescape
from math import ceil, floor, log10
from pathlib import Path
from statistics import median

import polars as pl

CLASSES = {
    "0": (0, 1),
    "1–9": (1, 10),
    "10–99": (10, 100),
    "100–999": (100, 1000),
    "1,000+": (1000, float("inf")),
}


def first_screen(page: str, question: str) -> str:
    """The card of a question."""
    cards = re.findall(r'<article class="reply".*?</article>', page, re.DOTALL)
    return next(card for card in cards if question in card)


def rows_of(card: str) -> dict[str, dict[str, str]]:
    """The card's table: name of the table → class → what is said of it."""
    clean = [
        [unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>.*?</tr>", card, re.DOTALL)
    ]
    head, *rows = clean
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def digits(value: float) -> str:
    """Two significant digits, whole numbers from 10 on."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:#.2g}"


def up(value: float) -> str:
    """Two significant digits, never below the value."""
    step = 10.0 ** (floor(log10(value)) - 1) if value < 9.95 else 1.0
    near = round(value / step) * step
    return digits(near if near >= value - 1e-12 else ceil(value / step) * step)


def recount(table: Path) -> tuple[dict[str, str], int, int]:
    """Middle interval by published count, counts outside their interval, and uncertain cells, row by row."""
    halves: dict[str, list[tuple[float, float]]] = {name: [] for name in CLASSES}
    exact = dict.fromkeys(CLASSES, 0)
    outside = 0
    for row in pl.read_parquet(table).iter_rows(named=True):
        name = next(name for name, (low, high) in CLASSES.items() if low <= max(row["count"], 0) < high)
        if row["standard_error"] == 0:
            exact[name] += 1
            continue
        half = max(row["estimate"] - row["low"], row["high"] - row["estimate"])
        halves[name].append((half, half / max(row["estimate"], 1.0)))
        outside += not row["low"] <= max(row["count"], 0) <= row["high"]
    told = {}
    for name, found in halves.items():
        if not found:
            told[name] = "exact" if exact[name] else "–"
            continue
        sizes = [100 * share if name in ("100–999", "1,000+") else half for half, share in found]
        sign = "%" if name in ("100–999", "1,000+") else ""
        told[name] = f"±\u00a0{digits(median(sizes))}{sign}"
        if max(sizes) >= 1.5 * median(sizes):
            told[name] += f" (≤\u00a0{up(max(sizes))}{sign})"
    return told, outside, sum(map(len, halves.values()))


def test_each_interval_of_the_first_screen_is_counted_again(packet: Path) -> None:
    page = (packet / "public" / "report.html").read_text(encoding="utf-8")
    told = rows_of(first_screen(page, "How far did the numbers move?"))
    tables = {path.stem: path for path in sorted((packet / "public" / "tables").glob("*.parquet"))}
    assert set(told) == set(tables)
    counted = {name: recount(path)[0] for name, path in tables.items()}
    filled = [name for name in CLASSES if any(one[name] != "–" for one in counted.values())]
    for name in tables:
        assert told[name] == {size: counted[name][size] for size in filled}


def test_counts_outside_their_interval_are_told_table_by_table_worst_first(packet: Path) -> None:
    page = (packet / "public" / "report.html").read_text(encoding="utf-8")
    said = unescape(first_screen(page, "Which number do I quote?"))
    counted = {path.stem: recount(path)[1:] for path in (packet / "public" / "tables").glob("*.parquet")}
    some = sorted((item for item in counted.items() if item[1][0]), key=lambda item: -item[1][0] / item[1][1])
    told = [(name, int(a), int(b)) for name, a, b in re.findall(r"([\w-]+) (\d+) of (\d+)", said)]
    assert told == [(name, *numbers) for name, numbers in some[:6]]
