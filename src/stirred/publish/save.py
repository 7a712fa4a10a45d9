"""A release made without a plan, as a packet: data, tables, specification, card, receipt, report, checksums."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.errors import InputError
from stirred.mechanisms.base import Release
from stirred.publish.packet import PUBLIC, Packet, seal
from stirred.publish.receipt import receipt, versions, write_json
from stirred.report import Report, render, sections
from stirred.spec.card import Card
from stirred.spec.files import save as save_specification


def save(release: Release, out: str | Path, *, title: str = "", engine: str = "local") -> Packet:
    """Write a packet at ``out``, whole or not at all; the key is never part of it."""
    out = Path(out)
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="a packet is never overwritten", fix="choose another folder"
        )
    title = title or f"Released by {release.mechanism}"
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    public = part / PUBLIC
    try:
        (public / "data").mkdir(parents=True)
        (public / "tables").mkdir()
        for name, data in release.microdata.items():
            _copy(data, public / "data" / f"{name}.parquet")
        for name, table in release.tables.items():
            pq.write_table(table, public / "tables" / f"{_file_name(name)}.parquet")
        save_specification(release.specification, public / "spec.json")
        card = Card(release.specification, title=title)
        mark = "" if release.private else "**NOT PRIVATE: made with a test key**\n\n"
        (public / "card.md").write_text(mark + card.markdown(), encoding="utf-8")
        (public / "card.html").write_text(marked(card.html(), private=release.private), encoding="utf-8")
        write_json(public / "receipt.json", receipt(title, [release], engine=engine))
        report = Report(
            title=title,
            subtitle="What was promised and what is exact",
            audience="public",
            private=release.private,
            sections=(
                sections.promise(release.specification),
                sections.exact(release.specification, release.checks, ()),
                sections.method(
                    [
                        ("mechanism", release.mechanism),
                        ("versions", ", ".join(f"{name} {number}" for name, number in versions().items())),
                    ]
                ),
            ),
        )
        (public / "report.html").write_text(render(report), encoding="utf-8")
        seal(public)
        part.replace(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Packet(out)


def marked(html: str, *, private: bool) -> str:
    """A card of a release made with a test key says so."""
    if private:
        return html
    style = "border:3px solid #b00;color:#b00;padding:.5rem;font:700 1rem sans-serif"
    mark = f'<p style="{style}">NOT PRIVATE: made with a test key</p>'
    return html.replace("<body>", f"<body>{mark}", 1) if "<body>" in html else mark + html


def _copy(data: "pa.Table | pads.Dataset", path: Path) -> None:
    if isinstance(data, pads.Dataset):
        files = [Path(name) for name in data.files]
        if len(files) == 1:
            shutil.copyfile(files[0], path)
            return
        path.mkdir()
        for index, file in enumerate(files):
            shutil.copyfile(file, path / f"part-{index:05d}.parquet")
        return
    pq.write_table(data, path)


def _file_name(name: str) -> str:
    """A table's name as a file name.

    >>> _file_name("county × tenure")
    'county-tenure'
    """
    return "-".join("".join(c if c.isalnum() or c == "_" else " " for c in name).split())
