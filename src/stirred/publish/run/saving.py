"""A release made without a plan, as a packet: data, tables, specification, card, receipt, report, checksums."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.errors import InputError, PrivacyError
from stirred.mechanisms.base import Mechanism, Release
from stirred.publish.packet.checksums import PUBLIC, seal
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.receipt import receipt, versions, write_json
from stirred.report import Report, render, sections
from stirred.report.exhibits import exhibited
from stirred.spec.card import Card
from stirred.spec.files import save as save_specification


def save(
    release: Release,
    out: str | Path,
    *,
    title: str = "",
    engine: str = "local",
    mechanism: Mechanism | None = None,
    made: Path | None = None,
) -> Packet:
    """Write a packet at ``out``, whole or not at all; the key is never part of it.

    With the ``mechanism`` the report has its exhibits. ``made`` is the folder to which it released: what lies there
    beside the records, such as noisy measurements, goes into the packet too.
    """
    broken = [check.invariant for check in release.checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="nothing was released; report this"
        )
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
        for path in sorted(made.iterdir()) if made is not None else ():
            if path.stem not in release.microdata:
                (shutil.copytree if path.is_dir() else shutil.copy)(path, public / "data" / path.name)
        for name, table in release.tables.items():
            pq.write_table(table, public / "tables" / f"{_file_name(name)}.parquet")
        save_specification(release.specification, public / "spec.json")
        card = Card(release.specification, title=title)
        mark = "" if release.private else "**NOT PRIVATE: made with a test key**\n\n"
        (public / "card.md").write_text(mark + card.markdown(), encoding="utf-8")
        (public / "card.html").write_text(marked(card.html(), private=release.private), encoding="utf-8")
        document = receipt(title, [release], engine=engine)
        write_json(public / "receipt.json", document | {"mechanisms": [_with_ledger(document, release)]})
        shown = () if mechanism is None else mechanism.exhibits(release)
        report = Report(
            title=title,
            subtitle="What was promised and what is exact",
            audience="public",
            private=release.private,
            sections=(
                sections.promise(release.specification),
                sections.exact(release.specification, release.checks, ()),
                *(exhibited(exhibit) for exhibit in shown),
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


def _with_ledger(document: Mapping[str, object], release: Release) -> dict[str, object]:
    """The mechanism's entry of the receipt, with what was spent on what."""
    (entry,) = cast(list[dict[str, object]], document["mechanisms"])
    entries = () if release.ledger is None else release.ledger.entries
    return entry | {"ledger": [{"on": e.on, "budget": e.budget.exact} for e in entries]}


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
