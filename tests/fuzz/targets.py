"""What is fed with mutated files, and what must hold: one clear error, or the same content; never a forgery."""

import contextlib
import io
import json
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz import seeds
from fuzz.guard import ForbiddenError, HangError, guarded
from fuzz.mutation import mutated
from slow.kills.jobs import Job
from small_census import CENSUS
from stirred import Packet, Workload
from stirred.census import check, read
from stirred.census import toml as schemas
from stirred.census.describe import describe
from stirred.cli.main import main
from stirred.errors import ForgedStateError, StirredError
from stirred.mechanisms.census2020.safetab.groups import CodeLists
from stirred.mechanisms.census2020.safetab.households.tables import read_totals
from stirred.mechanisms.tables.cell_key import read_table
from stirred.mechanisms.topdown.workload import read_preset
from stirred.publish import load, parse, run, verify
from stirred.publish.composition import state_promise
from stirred.publish.packet import seal
from stirred.publish.packet.checksums import new_signer, sign, unsigned_parts
from stirred.publish.packet.lookup import look_up
from stirred.publish.run.part import PartFolder
from stirred.publish.run.state import UnfinishedRun
from stirred.spec.files import dumps
from stirred.spec.files import load as load_specification

CODES = (0, 1, 2, 74)  # done, findings, refused, the system refused; 70 is a fault of Stirred


class AcceptedForgeryError(AssertionError):
    """A changed file was taken for the office's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A case that went wrong; the same target, seed and number make it again."""

    target: str
    seed: int
    number: int
    what: str


class Targets:
    """Everything that reads files, in one folder with valid files to start from."""

    def __init__(self, folder: Path) -> None:
        self.outer = folder
        self.work = folder / "work"
        (self.work / "tmp").mkdir(parents=True)
        tempfile.tempdir = str(self.work / "tmp")
        seeds.town(self.work)
        self.plan = load(self.work / "plan.toml")
        self.census = read(self.work)
        self.packet = seeds.packet(self.work)
        self.public = new_signer(self.work / "office.pem")
        sign(self.packet, self.work / "office.pem")
        self.sealed = seeds.files(self.packet)
        self.part = seeds.interrupted(self.work)
        self.left = seeds.files(self.part)
        self.specification = state_promise(self.plan, self.census).parts[0]
        spec = self.sealed["public/spec.json"]
        self.specs = [spec, json.dumps(json.loads(spec)).encode()]
        self.csv = (self.work / "household.csv").read_bytes()
        self.parquet = seeds.parquet(self.work)
        self.small = read_preset("small").encode()
        self.names = sorted(path.name for path in self.outer.iterdir())
        self.all: dict[str, Callable[[random.Random], None]] = {
            "schema": self.schema,
            "plan": self.planned,
            "workload": self.workload,
            "specification": self.spec,
            "packet": self.packets,
            "state": self.state,
            "resumed": self.resumed,
            "text": self.text,
            "parquet": self.columns,
            "command": self.command,
            "bureau": self.bureau,
            "lists": self.lists,
            "measured": self.measured,
        }
        self._measured: dict[str, bytes] = {}
        self._whole: dict[str, bytes] = {}

    def explore(self, target: str, seed: int, cases: int, *, first: int = 0) -> list[Finding]:
        """The findings of many cases; each case has a stream of its own."""
        found = []
        for number in range(first, first + cases):
            chance = random.Random(f"{seed}/{target}/{number}")
            what = self._one(self.all[target], chance)
            if what:
                found.append(Finding(target=target, seed=seed, number=number, what=what))
        return found

    def _one(self, case: Callable[[random.Random], None], chance: random.Random) -> str:
        told = io.StringIO()
        try:
            with guarded(self.work), contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                case(chance)
        except StirredError as error:
            if not (error.what and error.why and error.fix):
                return f"an error without what, why and fix: {error.what}"
        except (HangError, ForbiddenError, AcceptedForgeryError) as error:
            return f"{type(error).__name__}: {error} at {_place(error)}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{type(error).__name__}: {str(error)[:200]} at {_place(error)}"
        if sorted(path.name for path in self.outer.iterdir()) != self.names:
            return "a file outside the folder"
        return ""

    def schema(self, chance: random.Random) -> None:
        """A census.toml."""
        texts = [text.encode() for text in seeds.SCHEMAS]
        place = self.work / "mutated.toml"
        place.write_bytes(mutated(chance.choice(texts), chance, texts))
        schemas.load_schema(place)

    def planned(self, chance: random.Random) -> None:
        """A plan.toml, as text."""
        texts = [text.encode() for text in seeds.PLANS]
        changed = mutated(chance.choice(texts), chance, texts)
        parse(changed.decode("utf-8", "replace"), folder=self.work)

    def workload(self, chance: random.Random) -> None:
        """The workload of a plan, as a file."""
        place = self.work / "workload.toml"
        place.write_bytes(mutated(self.small, chance, [self.small]))
        Workload.load(place)

    def spec(self, chance: random.Random) -> None:
        """A spec.json: what is read is written and read again as the same."""
        place = self.work / "mutated.json"
        place.write_bytes(mutated(chance.choice(self.specs), chance, self.specs))
        found = load_specification(place)
        place.write_text(dumps(found), encoding="utf-8")
        if load_specification(place) != found:
            raise AssertionError("a specification that is not read back as itself")

    def packets(self, chance: random.Random) -> None:
        """A packet with one file changed; then sealed again by somebody else, and read."""
        name = chance.choice([n for n in self.sealed if chance.random() < 0.2 or not n.endswith(".html")])
        place = self.packet / name
        try:
            self._disturb(self.packet, name, chance, self.sealed)
            self._refused()
            self._unsigned()
            seal(self.packet / "public")
            self._unsigned()
            self._read_packet(chance)
        finally:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            seeds_left = {n: c for n, c in self.sealed.items() if n in (name, "public/checksums.txt")}
            for path in self.packet.rglob("*"):
                if path.is_symlink() or (
                    path.is_file() and path.relative_to(self.packet).as_posix() not in self.sealed
                ):
                    path.unlink()
            for one, content in {**seeds_left, **self._touched}.items():
                (self.packet / one).write_bytes(content)

    def _refused(self) -> None:
        """A packet that is not as it was is found by its checksums."""
        with contextlib.suppress(StirredError):
            sums = ("public/checksums.txt", "public/checksums.sig")
            if not verify(self.packet) and _unlike(self.packet, self.sealed, *sums):
                raise AcceptedForgeryError("a changed packet verifies")

    def _unsigned(self) -> None:
        """A packet that somebody else sealed is found by its signature."""
        with contextlib.suppress(StirredError):
            signed = not unsigned_parts(self.packet, self.public) and not verify(self.packet)
            if signed and _unlike(self.packet, self.sealed):
                raise AcceptedForgeryError("a changed packet is signed")

    def _read_packet(self, chance: random.Random) -> None:
        packet = Packet(self.packet)
        steps: list[Callable[[], object]] = [
            packet.receipt,
            packet.tables,
            packet.checks,
            packet.notes,
            packet.read_tables,
            packet.contents,
            lambda: look_up(self.packet, {"county": "1", "tenure": "o"}),
            lambda: load_specification(packet.public / "spec.json"),
            lambda: load(packet.public / "plan.toml"),
            lambda: _coded(["packet", "verify", str(self.packet)]),
            lambda: _coded(["lookup", str(self.packet), "county=1", "tenure=o"]),
        ]
        for step in chance.sample(steps, 4):
            with contextlib.suppress(StirredError):
                step()

    def _disturb(self, folder: Path, name: str, chance: random.Random, files: dict[str, bytes]) -> None:
        """Change one file below a folder: mostly its bytes, sometimes what it is."""
        place = folder / name
        self._touched: dict[str, bytes] = {}
        what = chance.random()
        if what < 0.8:
            place.write_bytes(mutated(files[name], chance, list(files.values())[:4]))
        elif what < 0.85:
            place.unlink()
        elif what < 0.9:
            other = chance.choice(list(files))
            self._touched = {other: files[other]}
            place.write_bytes(files[other])
            (folder / other).write_bytes(files[name])
        elif what < 0.92:
            (place.parent / chance.choice(("run.new", "data.json.new", "more"))).symlink_to(
                self.outer / "evil"
            )
        elif what < 0.95:
            (place.parent / chance.choice(("more", "more.parquet", "x.json", "x.json.seal"))).write_bytes(
                files[name]
            )
        else:
            place.unlink()
            place.symlink_to(chance.choice((self.work / "household.csv", Path("/dev/zero"), self.work)))

    def state(self, chance: random.Random) -> None:
        """A file of an interrupted run: refused, done again, or the same release."""
        name = chance.choice(list(self.left))
        try:
            self._disturb(self.part, name, chance, self.left)
            unfinished = UnfinishedRun(PartFolder(self.work / "again"))
            unfinished.begin(self.plan, seeds.KEY, self.census)
            unfinished.clear_except(["data"])
            place = self.part / "public" / "data"
            step = self.plan.steps[0]
            found = unfinished.load_finished(
                place, step.mechanism, self.census, self.specification, seeds.KEY
            )
            if found is not None and _unlike(place, _below(self.left, "public/data/")):
                raise AcceptedForgeryError("changed records are taken up")
            told = json.loads(self.left["state/data.json"])
            if found is not None and [c.numbers for c in found.checks] != [
                c["numbers"] for c in told["checks"]
            ]:
                raise AcceptedForgeryError("changed counts are taken up")
        finally:
            seeds.restore(self.part, self.left)

    def resumed(self, chance: random.Random) -> None:
        """The same, through the whole run: the packet has the bytes of an undisturbed one."""
        name = chance.choice(list(self.left))
        out = self.work / "again"
        try:
            self._disturb(self.part, name, chance, self.left)
            run(self.plan, out, key=seeds.KEY, internal=False)
            if _unlike(out, self.sealed, "public/checksums.sig"):
                raise AcceptedForgeryError("another packet")
        except ForgedStateError:
            if out.exists():
                raise AcceptedForgeryError("refused, but written") from None
            raise
        finally:
            shutil.rmtree(out, ignore_errors=True)
            seeds.restore(self.part, self.left)

    def text(self, chance: random.Random) -> None:
        """The records as text: described, and held against the schema."""
        self._records("household.csv", mutated(self.csv, chance, [self.csv]), chance)

    def columns(self, chance: random.Random) -> None:
        """The records as Parquet."""
        self._records("household.parquet", mutated(self.parquet, chance), chance)

    def _records(self, name: str, content: bytes, chance: random.Random) -> None:
        folder = self.work / "records"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / "census.toml").write_text(CENSUS.replace("household.csv", name))
        if chance.random() < 0.5:
            describe([name], folder=folder)
        else:
            check(folder)

    def bureau(self, chance: random.Random) -> None:
        """A folder in a format of the Bureau (SafeTab with GRF-C, PHSafe, the microdata of DHC), read and checked."""
        kind = chance.choice(list(seeds.BUREAU))
        files = {name: text.encode() for name, text in seeds.BUREAU[kind].items()}
        folder = self.work / "bureau"
        seeds.restore(folder, files)
        for name in chance.sample(list(files), chance.choice((1, 1, 2))):
            content = mutated(files[name], chance, list(files.values()))
            (folder / name).write_bytes(content)
        if chance.random() < 0.03:
            (folder / chance.choice(list(files))).unlink()
        if chance.random() < 0.5:
            check(folder)
        else:
            read(folder).check(invalid=chance.choice(("refuse", "drop")))

    def lists(self, chance: random.Random) -> None:
        """The Bureau's lists of codes, the totals of SafeTab-P, and a table of noise of another program."""
        data = Path(__file__).resolve().parents[1] / "data" / "safetab_h"
        folder = self.work / "lists"
        files = {path.name: path.read_bytes() for path in (data / "codes").iterdir()}
        seeds.restore(folder, files)
        what = chance.random()
        if what < 0.6:
            name = chance.choice(list(files))
            (folder / name).write_bytes(mutated(files[name], chance, list(files.values())))
            lists = CodeLists.read(folder)
            lists.sensitivity(1, fine=True, most_codes=8)
        elif what < 0.8:
            (folder / "t1.txt").write_bytes(mutated((data / "t1.txt").read_bytes(), chance))
            read_totals(folder / "t1.txt")
        else:
            table = b"i,j,p,v,p_int_lb,p_int_ub,type\n0,0,1,0,0,1,all\n1,0,0.5,-1,0,0.5,all\n1,2,0.5,1,0.5,1,all\n"
            (folder / "ptable.csv").write_bytes(mutated(table, chance))
            read_table(folder / "ptable.csv")

    def measured(self, chance: random.Random) -> None:
        """A noisy measurement file of an interrupted run: refused, or the same bytes as an undisturbed run."""
        folder, key = self.work / "measured", seeds.KEY
        if not self._measured:
            Job(name="measured", plan=seeds.MEASURED).write(folder, 40)
            whole = run(load(folder / "plan.toml"), folder / "whole", key=key, internal=False)
            self._whole = seeds.files(whole.folder)
            self._measured = seeds.files(seeds.interrupted(folder))
        part, out = folder / "again.part", folder / "again"
        seeds.restore(part, self._measured)
        part.chmod(0o700)
        nmf = [name for name in self._measured if "nmf" in name]
        try:
            self._disturb(part, chance.choice(nmf or list(self._measured)), chance, self._measured)
            made = run(load(folder / "plan.toml"), out, key=key, internal=False)
            if seeds.files(made.folder) != self._whole:
                raise AcceptedForgeryError("another packet")
        finally:
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(part, ignore_errors=True)

    def command(self, chance: random.Random) -> None:
        """Whole commands with a mutated schema, plan or table of codes."""
        folder = self.work / "command"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        seeds.town(folder)
        name = chance.choice(
            ("census.toml", "census.toml", "plan.toml", "plan.toml", "household.csv", "codes.csv")
        )
        texts = [text.encode() for text in seeds.SCHEMAS]
        if chance.random() < 0.5:
            (folder / "census.toml").write_bytes(texts[1])
        place = folder / name
        place.write_bytes(mutated(place.read_bytes(), chance, texts))
        out = folder / "out"
        words = chance.choice(
            (
                ["data", "check", str(folder)],
                ["plan", "check", str(folder / "plan.toml")],
                ["run", str(folder / "plan.toml"), "--out", str(out), "--public-only"],
                [
                    "swap",
                    str(folder),
                    "--swap",
                    "county",
                    "--match",
                    "state",
                    "--rate",
                    "1/3",
                    "--out",
                    str(out),
                ],
            )
        )
        code = _coded(words)
        left = {path.name for path in folder.iterdir()}
        allowed = {"census.toml", "household.csv", "codes.csv", "places.csv", "plan.toml"}
        allowed |= {"out", "out.key", "out.log"} if code == 0 else set()
        if left - allowed:
            raise AssertionError(f"code {code}, and left behind: {sorted(left - allowed)}")


def _coded(words: list[str]) -> int:
    """The exit code of a command that is documented; its messages show no traceback."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            code = main(words)
        except SystemExit as error:
            code = int(error.code or 0)
    text = told.getvalue()
    if code not in CODES or "Traceback" in text or "unexpected" in text:
        raise AssertionError(f"code {code}: {text[-300:]}")
    return code


def _below(content: dict[str, bytes], start: str) -> dict[str, bytes]:
    return {name.removeprefix(start): data for name, data in content.items() if name.startswith(start)}


def _unlike(folder: Path, content: dict[str, bytes], *but: str) -> bool:
    """Whether a folder holds anything else than these files."""
    if any(path.is_symlink() for path in folder.rglob("*")):
        return True
    now = seeds.files(folder)
    return {n: c for n, c in now.items() if n not in but} != {
        n: c for n, c in content.items() if n not in but
    }


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}stirred{os.sep}" in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
