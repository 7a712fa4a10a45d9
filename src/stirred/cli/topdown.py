"""TopDown without a plan: noisy measurements of a workload, then microdata that keep the invariants.

WORKLOAD is a preset (small, pl94-persons, pl94-units, dhc-persons, dhc-units), pl94 or dhc for persons and units
together (dhc needs --given a pl94 packet), or a TOML file of your own.

  stirred topdown census.toml --workload pl94 --out packet/
  stirred topdown census.toml --workload pl94-persons --rho-squared 1/2 --mode classic --out packet/
  stirred topdown census.toml --workload pl94 --check           what is promised and spent; nothing is released

Every level is kept when it is finished: a run that was interrupted is taken up by the same command and gives the same
packet, with the same noise. The key is the noise: keep it as you keep the census, or destroy it.
"""

import argparse
import shutil
from decimal import ROUND_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.engines import add_engine_arguments, chosen_engine
from stirred.cli.keys import key_for
from stirred.cli.output import console, print_json, table
from stirred.cli.progress import bars, logged
from stirred.errors import BudgetError, InputError, PrivacyError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.mechanisms.base import Release
    from stirred.mechanisms.topdown import TopDown
    from stirred.mechanisms.topdown.spine_options import SpineOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words of the command."""
    parser.add_argument("census", help="census.toml")
    parser.add_argument(
        "--workload", default="pl94-persons", metavar="NAME", help="a preset, pl94, dhc or a TOML file"
    )
    parser.add_argument("--out", metavar="DIR", help="the packet to write; must not exist")
    parser.add_argument(
        "--mode", choices=("classic", "gls"), help="the estimate (default: the workload's own)"
    )
    parser.add_argument(
        "--rho-squared", metavar="R", help="the total ρ² (the usual zCDP ρ), exact; inf adds no noise"
    )
    parser.add_argument("--keep-nmf", action="store_true", help="also write the noisy measurement file")
    parser.add_argument("--given", metavar="PACKET", help="a packet whose microdata this one must agree with")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key beside the packet)")
    parser.add_argument(
        "--names", choices=("own", "bureau"), default="own", help="the columns of the microdata"
    )
    parser.add_argument(
        "--emphasis", type=int, default=1, metavar="N",
        help="weigh the totals of the lowest level N times in the solve: less bias, more error (gls; 30 to 100)",
    )  # fmt: skip
    parser.add_argument(
        "--aian", metavar="GEOGRAPHY",
        help="split states into AIAN areas and the remainder: the off-spine geography that marks them",
    )  # fmt: skip
    parser.add_argument(
        "--optimized-block-groups", nargs="*", action="extend", metavar="GEOGRAPHY",
        help="block groups made anew: leaves in the same off-spine geographies, at most √n + 13 in a tract of n",
    )  # fmt: skip
    parser.add_argument(
        "--replicates", type=int, default=0, metavar="N",
        help="run N times more on the released records, for their uncertainty (no privacy cost; 20 is usual)",
    )  # fmt: skip
    parser.add_argument("--no-bypass", action="store_true", help="measure geounits with one child twice")
    parser.add_argument("--check", action="store_true", help="say what would be promised, and stop")
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """State the promise, run, and leave a sealed packet."""
    from stirred.census import read
    from stirred.mechanisms.topdown import TopDown

    out = None if arguments.out is None else Path(arguments.out)
    part = None if out is None else out.with_name(out.name + ".part")
    mechanism = TopDown(
        workload=arguments.workload,
        mode=arguments.mode,
        rho_squared=_budget(arguments.rho_squared),
        keep_nmf=arguments.keep_nmf,
        bypass=not arguments.no_bypass,
        given=None if arguments.given is None else Path(arguments.given),
        names=arguments.names,
        emphasis=arguments.emphasis,
        spine=_spine(arguments),
        replicates=arguments.replicates,
        resume=None if part is None else part / "state",
    )
    if arguments.check:
        return _check(mechanism, read(arguments.census), json=arguments.json)
    if out is None or part is None:
        raise InputError("a release needs a folder", fix="--out packet/, or --check to see the promise only")
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="a packet is never overwritten", fix="choose another --out"
        )
    mechanism.require_given()
    with chosen_engine(arguments) as engine:
        census = engine.read(arguments.census)
        mechanism.specification(census)  # all that can be refused is refused before a key is made
        key = key_for(out, arguments.key)
        data = part / "public" / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        with bars(quiet=arguments.json) as shown, logged(out.with_name(out.name + ".log"), shown) as progress:
            release = mechanism.release(census, key=key, engine=engine, out=data, progress=progress)
        _write(release, mechanism, part / "public", engine.name)
    shutil.rmtree(part / "state", ignore_errors=True)
    part.replace(out)
    if arguments.json:
        print_json(
            {"packet": str(out), "private": release.private, "specification": str(release.specification)}
        )
        return 0
    console().print(f"packet: {out}")
    console().print(str(release.specification))
    return 0


def _spine(arguments: argparse.Namespace) -> "SpineOptions | None":
    from stirred.mechanisms.topdown.spine_options import SpineOptions

    groups = arguments.optimized_block_groups
    if arguments.aian is None and groups is None:
        return None
    return SpineOptions(aian=arguments.aian, block_groups=None if groups is None else tuple(groups))


def _budget(text: str | None) -> Fraction | str | None:
    if text is None or text == "inf":
        return text
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise BudgetError(
            f"--rho-squared {text} is no exact number", fix="--rho-squared 2.63 or 293764/114921"
        ) from None


def _check(mechanism: "TopDown", census: "Census", *, json: bool) -> int:
    """The promise, the shares by level, and what one attribute or one geography sees of it."""
    from stirred.mechanisms.topdown import accounting

    promise = mechanism.specification(census)
    rows = []
    document: dict[str, object] = {
        "specification": str(promise),
        "notes": list(promise.notes),
        "workloads": {},
    }
    for workload in mechanism.workloads:
        lines = {} if mechanism.noiseless else accounting.semantics(workload)
        levels = {level: str(part) for level, part in accounting.by_level(workload).items()}
        document["workloads"][workload.name] = {  # type: ignore[index]
            "rho_squared": str(workload.rho_squared),
            "levels": levels,
            "semantics": {name: {"rho_squared": str(r), "epsilon": str(e)} for name, (r, e) in lines.items()},
        }
        rows += [
            (workload.name, name, f"{_up(rho)}", str(epsilon.quantize(Decimal("0.0001"), ROUND_UP)))
            for name, (rho, epsilon) in lines.items()
        ]
    if json:
        print_json(document)
        return 0
    shown = console()
    shown.print(str(promise))
    for note in promise.notes:
        shown.print(f"  {note}")
    shown.print(
        table("What a change costs (ρ², and ε at δ = 10⁻¹⁰)", ("workload", "seen by", "ρ²", "ε"), rows)
    )
    return 0


def _up(rho_squared: Fraction) -> str:
    """Four decimals, rounded up."""
    return f"{-((-rho_squared.numerator * 10_000) // rho_squared.denominator) / 10_000:.4f}"


def _write(release: "Release", mechanism: "TopDown", folder: Path, engine: str) -> None:
    """The documents of the public part: specification, card, tables, receipt, checksums."""
    import pyarrow.parquet as pq

    from stirred.publish.packet import seal
    from stirred.publish.receipt import versions, write_json
    from stirred.spec.card import Card
    from stirred.spec.files import save

    broken = [check.invariant for check in release.checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="nothing was released; report this"
        )
    (folder / "tables").mkdir(exist_ok=True)
    for name, content in release.tables.items():
        pq.write_table(content, folder / "tables" / f"{name}.parquet")
    save(release.specification, folder / "spec.json")
    card = Card(release.specification, title=f"TopDown, workload {mechanism.workload}")
    (folder / "card.md").write_text(card.markdown(), encoding="utf-8")
    assert release.ledger is not None
    write_json(
        folder / "receipt.json",
        {
            "format": 1,
            "private": release.private,
            "title": f"TopDown, workload {mechanism.workload}",
            "engine": engine,
            "versions": versions(),
            "mechanisms": [{
                "name": release.mechanism,
                "parameters": dict(release.parameters),
                "input_digest": release.input_digest,
                "invariants": [{"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers} for c in release.checks],
                "ledger": [{"on": e.on, "rho": e.budget.exact} for e in release.ledger.entries],
                "notes": list(release.notes),
            }],
        },
    )  # fmt: skip
    seal(folder)
