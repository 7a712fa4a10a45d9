"""Explain every public byte: which of them differ between two censuses of one universe, and by what.

A packet is a function of what the mechanism publishes (records, tables, files), of the invariants, and of what is public
anyway (plan, schema, versions). So the packet of one census is written a second time with all else that the mechanism
says of *another* census of the universe: its notes, guards, checks, account, parameters. A byte that differs then was
computed from confidential records and is neither the mechanism's output nor an invariant. One thing may differ: the
digest of the input, which is keyed, and the checksum of the receipt that holds it. One guard of swaps is measured on the
released records; that it follows from them is shown where the draw itself is replaced
(``tests/unit/hostile/test_public_mechanisms.py``).
"""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import stirred as st
from contract.registry import WITHOUT_NOISE
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.release import Guard, Release
from stirred.mechanisms.swap.guards import REVERSAL_GUARD

RECEIPT, CHECKSUMS = "receipt.json", "checksums.txt"
OUTPUT = {"microdata", "tables", "files", "input_digest", "internal", "schema", "folder"}  # of a release


def public_bytes(release: Release, folder: Path) -> dict[str, bytes]:
    """Save a release; return every byte of its public part, by file."""
    public = st.save(release, folder, internal=False).public
    return {
        p.relative_to(public).as_posix(): p.read_bytes() for p in sorted(public.rglob("*")) if p.is_file()
    }


def unexplained(mechanism: Mechanism, one: Census, other: Census, *, key: Key, folder: Path) -> list[str]:
    """Return what differs in public although neither output nor invariants do; the censuses are of one universe."""
    made = []
    for number, census in enumerate((one, other)):
        work = folder / f"work-{number}"
        work.mkdir(parents=True)
        made.append(mechanism.release(census, key=key, out=work))
    first, second = made
    try:
        here, there, told = _written(first, second, folder)
    except InputError:  # a mechanism that no plan can name: what a packet would be written from
        return _other_fields(first, second)
    found = [f"only in one of them: {name}" for name in sorted(here.keys() ^ there.keys())]
    digests = [[entry.pop("input_digest") for entry in part["mechanisms"]] for part in told]
    if told[0] != told[1]:
        found += [f"receipt: {name}" for name in _unlike(told[0], told[1])]
    if _inputs(first) == _inputs(second) and first.mechanism not in WITHOUT_NOISE:
        found.append("the digest of the input does not depend on the census: the pair is no pair")
    found += [
        name
        for name in sorted(here.keys() & there.keys())
        if name not in (RECEIPT, CHECKSUMS) and here[name] != there[name]
    ]
    lines = [set(part[CHECKSUMS].decode().splitlines()) for part in (here, there)]
    allowed = () if digests[0] == digests[1] else (RECEIPT,)
    found += [f"checksum of {line[66:]}" for line in sorted(lines[0] ^ lines[1]) if line[66:] not in allowed]
    return [*found, *_cuts(folder / "one" / "public")]


def _written(
    first: Release, second: Release, folder: Path
) -> tuple[dict[str, bytes], dict[str, bytes], list[Any]]:
    """Write the packet of the first release, and one with its output and all else of the second."""
    here = public_bytes(first, folder / "one")
    mixed = replace(second, microdata=first.microdata, tables=first.tables, files=first.files)
    mixed = replace(mixed, guards=_guards(first, second))
    there = public_bytes(mixed, folder / "mixed")
    return here, there, [json.loads(part[RECEIPT]) for part in (here, there)]


def _guards(first: Release, second: Release) -> tuple[Guard, ...]:
    """The guards of the second release; what one measures on the released records follows from the output of the first."""
    return tuple(
        of_output if of_output.name == REVERSAL_GUARD else other
        for of_output, other in zip(first.guards, second.guards, strict=True)
    )


def _other_fields(first: Release, second: Release) -> list[str]:
    """The fields in which two releases differ, beside their output and the keyed digest of their input."""
    names = [field.name for field in fields(Release) if field.name not in OUTPUT]
    return [name for name in names if getattr(first, name) != getattr(second, name)]


def _inputs(release: Release) -> list[Any]:
    return [
        release.input_digest,
        *(_rows(data) for data in (*release.microdata.values(), *release.tables.values())),
    ]


def _unlike(one: Any, other: Any, place: str = "") -> list[str]:
    """The places at which two documents differ; their values are not told."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for name in one for found in _unlike(one[name], other[name], f"{place}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for i, (a, b) in pairs for found in _unlike(a, b, f"{place}[{i}]")]
    return [] if one == other else [place]


def _cuts(public: Path) -> list[str]:
    """Files of records that are not cut into groups of one length: another cut would tell something."""
    found = []
    for path in sorted(public.glob("data*/*.parquet")):
        if path.is_file():
            told = pq.read_metadata(path)
            lengths = [told.row_group(i).num_rows for i in range(told.num_row_groups)]
            if len(set(lengths[:-1])) > 1 or (lengths and lengths[-1] > lengths[0]):
                found.append(f"the cut of {path.name}")
    return found


def _rows(data: Any) -> list[Any]:
    table: pa.Table = data.to_table() if isinstance(data, pads.Dataset) else data
    return [table.column_names, table.to_pylist()]
