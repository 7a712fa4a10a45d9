"""Make the golden packets: run every mechanism, preset and engine on a small census and record what comes out.

``golden.json`` has the SHA-256 of every file of every packet, of ``parameters()`` and ``settings()``, of the help of every
command, of the plan's JSON schema and of every specification of the catalog, one line each. It states what the code
gave when it was recorded, not what is right: the other tests of this folder do that. Whoever moves code compares with it;
whoever means to change a release records it anew and explains the lines that changed.

    python tests/golden/packets/make.py --check                  compare everything, name what differs
    python tests/golden/packets/make.py --check memory/topdown   compare some cases, by the beginning of their names
    python tests/golden/packets/make.py                          record everything anew

Only public names are used: ``import stirred`` and ``python -m stirred``. Four things vary and are left out:

- versions in receipt.json (Python, Stirred, libraries): their values are left out, their names stay;
- the last number of Python's version in reports;
- digests in checksums.txt, which contain that of receipt.json: they are verified instead, and left out;
- the folder of the plan, where ``settings()`` of a mechanism names a file beside the plan.

Bytes of Parquet files depend on the version of pyarrow, texts of help on that of Python. A Parquet file has a second
digest, of its schema and rows, which alone is compared where other versions are installed; help is not compared there.
No file of a packet has a time, a host, a path or an amount of memory.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import random
import re
import runpy
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pyarrow.parquet as pq

import stirred as st

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
FILE = HERE / "golden.json"
KEY = 5  # of st.Key.for_tests
HOUSEHOLDS = 120  # of the small census
HELP_COLUMNS = "100"
LIBRARIES = ("pyarrow", "polars", "numpy", "numba", "scipy")
RECORDED_PYTHON = (
    b"python 3.11.7, stirred"  # what reports stated when they were recorded; others are compared as this
)
Digests = dict[str, str]

CENSUS = """name = "golden"
label = "Invented households"
[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household.csv"]
id = "hid"
[record.household.variables]
size = {type = "integer", range = "1..3"}
tenure = {levels = ["own", "rent"], labels = {own = "owned", rent = "rented"}}
[record.person]
files = ["person.csv"]
household = "hid"
of = "household"
[record.person.variables]
age = {type = "integer", range = "0..99"}
sex = {levels = ["f", "m"]}
"""
WORKLOAD = (TESTS / "contract" / "workload.toml").read_text()

Settings = Mapping[str, Any]
SWAP: Settings = {"match": ["state", "size"], "swap": ["county", "tract"], "rate": "1/3"}
BY_COUNTY = (("household", ("county", "tenure")),)
REASON = {"without_guarantee": "a test"}
TARGETED: Settings = {
    "hierarchy": ["county", "tract"],
    "similar": [["state", "size", "tenure"], ["state", "size"]],
    "swaprate": "1/3",
    **REASON,
}
PAIRS_2010: Settings = {"swap": ["county", "tract"], "race": ["tenure"], "unique": ["tenure"], **REASON}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One packet: the mechanism with its settings, and the tables of its plan (record type, variables)."""

    mechanism: str
    settings: Settings
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    plan: str = ""  # more lines of the plan, before its mechanism
    only_memory: bool = False  # whether other engines would run the same code again


# a mark after + : the same mechanism with other settings
CASES: dict[str, Case] = {
    "permutation-swapping": Case(mechanism="permutation-swapping", settings={**SWAP, "drop": ["tenure"]}),
    "permutation-swapping+tables": Case(
        mechanism="permutation-swapping",
        settings={**SWAP, "microdata": False, "tables": [["county", "tenure"], ["size"]]},
    ),
    "permutation-swapping+both": Case(
        mechanism="permutation-swapping",
        settings={**SWAP, "tables": [["county", "tenure"]], "carry": False, "hold": ["tenure"]},
        tables=BY_COUNTY,
        plan='[publish]\nformats = ["parquet", "csv"]\n[budget]\nowner = "somebody"\nlimit = "30"\n',
    ),
    "permutation-swapping+german": Case(
        mechanism="permutation-swapping",
        settings=SWAP,
        tables=BY_COUNTY,
        plan='language = "de"\n',
        only_memory=True,
    ),
    "stirring": Case(mechanism="stirring", settings=SWAP, tables=BY_COUNTY),
    "stirring+both": Case(
        mechanism="stirring",
        settings={
            **SWAP,
            "loss": "6",
            "law": "auto",
            "carry": False,
            "shuffle_first": "tenure",
            "shuffle_levels": ["rent"],
        },
    ),
    "swapping-varying-rates": Case(
        mechanism="swapping-varying-rates", settings={**SWAP, "by": "tenure", "rates": {"rent": "1/2"}}
    ),
    "swapping-varying-rates+rarity": Case(
        mechanism="swapping-varying-rates",
        settings={**SWAP, "rarity": ["tract", "size"], "rare": "1/2", "counts_up_to": 250},
    ),
    "swapping-imputed-stay": Case(
        mechanism="swapping-imputed-stay",
        settings={**SWAP, "imputed": "tenure", "levels": ["rent"]},
        tables=BY_COUNTY,
    ),
    "swapping-no-vacuous": Case(mechanism="swapping-no-vacuous", settings={**SWAP, "carry": False}),
    "swapping-near-places": Case(mechanism="swapping-near-places", settings={**SWAP, "preference": "3"}),
    "swapping-unit-matching": Case(
        mechanism="swapping-unit-matching", settings={**SWAP, "loose": ["size"], "alpha": "1/2"}
    ),
    "swapping-noisy-key": Case(  # no finite bound is known: its packet is refused, its release is recorded
        mechanism="swapping-noisy-key", settings={**SWAP, "noisy": "size", "change": "1/4"}
    ),
    "swapping-noisy-tables": Case(
        mechanism="swapping-noisy-tables",
        settings={**SWAP, "tables": [["tract", "tenure"]], "sigma_squared": "4"},
    ),
    "targeted-swapping": Case(
        mechanism="targeted-swapping",
        settings={**TARGETED, "risk_variables": ["size", "tenure"]},
        tables=BY_COUNTY,
    ),
    "targeted-swapping+persons": Case(  # persons are counted in memory alone
        mechanism="targeted-swapping",
        settings={**TARGETED, "risk_variables": ["age", "sex"]},
        only_memory=True,
    ),
    "swapping-2010": Case(
        mechanism="swapping-2010",
        settings={**PAIRS_2010, "rate": "1/3", "equal": ["size"], "prefer": ["near", "selected"]},
    ),
    "swapping-2010+2010": Case(
        mechanism="swapping-2010",
        settings={**PAIRS_2010, "preset": "2010", "equal": ["size", "tenure"], "rate": "1/5"},
        only_memory=True,
    ),
    "swapping-2010+study-5": Case(
        mechanism="swapping-2010", settings={**PAIRS_2010, "preset": "study-5"}, only_memory=True
    ),
    "swapping-2010+study-50": Case(
        mechanism="swapping-2010", settings={**PAIRS_2010, "preset": "study-50"}, only_memory=True
    ),
    "topdown": Case(
        mechanism="topdown",
        settings={
            "workload": "workload.toml",
            "mode": "gls",
            "replicates": 3,
            "emphasis": 2,
            "bypass": False,
        },
        tables=(("person", ("county", "votingage")),),
    ),
    "topdown+classic": Case(
        mechanism="topdown",
        settings={"workload": "workload.toml", "mode": "classic", "replicates": 0, "keep_nmf": True},
    ),
    "gaussian-tables": Case(
        mechanism="gaussian-tables",
        settings={"tables": [["county"], ["tract"]], "rho_squared": "1/2", "shares": ["3/4", "1/4"]},
    ),
    "special-tabulations": Case(
        mechanism="special-tabulations",
        settings={"tables": [["county", "tenure"]], "rounding": "fives", **REASON},
    ),
    "exact-margins": Case(
        mechanism="exact-margins", settings={"rows": "county", "columns": "tenure", "rho_squared": "1/2"}
    ),
    "cell-key": Case(
        mechanism="cell-key",
        settings={"tables": [["county", "tenure"]], "D": 3, "V": "2", **REASON},
    ),
    "safetab-p": Case(
        mechanism="safetab-p",
        settings={
            "preset": "",
            "codes": "lists",
            "races": ["tenure"],
            "ethnicity": "",
            "sexes": ["f", "m"],
            "suppression": "9/10",
            "budget": {"STATE-1": "1", "COUNTY-1": "1"},
            "thresholds": {"STATE-1": "20,40,10000", "COUNTY-1": "20,40,10000"},
        },
    ),
    "safetab-h": Case(
        mechanism="safetab-h",
        settings={
            "totals": "totals/t1.txt",
            "codes": "totals/codes",
            "preset": "",
            "races": ["sex"],
            "ethnicity": "",
            "householder": "sex",
            "householders": ["f"],
            "household_type": "size",
            "types": {"1": "4", "2": "1", "3": "5"},
            "tenures": {"own": "2", "rent": "3"},
            "budget": {"STATE-1": "1", "COUNTY-1": "1"},
            "thresholds": {"STATE-1": "10,20,30", "COUNTY-1": "10,20,30"},
        },
    ),
    "phsafe": Case(mechanism="phsafe", settings={"tau": {"PH1_num": 2}, "rho_squared": "1", "states": ["0"]}),
}
REFUSED = "swapping-noisy-key"
ENGINES = ("memory", "parts", "spark")

# presets need the variables of the 2020 census: a synthetic one, whose files are recorded too
HOUSEHOLDS_SYNTHETIC = 20
TOPDOWN = ("small", "pl94-persons", "pl94-units", "pl94", "pl94-stirred", "pl94-pr")
CONTINUED = {
    "dhc-light": "pl94",
    "dhc": "pl94",
    "dhc-pr": "pl94-pr",
}  # workload → the one that it agrees with
PRESETS: dict[str, tuple[tuple[str, Settings], ...]] = {
    **{f"topdown-{name}": (("topdown", {"workload": name, "replicates": 0}),) for name in TOPDOWN},
    **{
        f"topdown-{name}": (
            ("topdown", {"label": "first", "workload": first, "replicates": 0}),
            ("topdown", {"label": "second", "workload": name, "given": "first", "replicates": 0}),
        )
        for name, first in CONTINUED.items()
    },
    "safetab-p-ddhc-a-2020": (("safetab-p", {"preset": "ddhc-a-2020"}),),
    "safetab-h-ddhc-b-2020": (  # its promise is per household: PL fixes their number, so that both can be added
        ("topdown", {"workload": "pl94", "replicates": 0}),
        ("safetab-p", {"label": "groups", "preset": "ddhc-a-2020"}),
        ("safetab-h", {"preset": "ddhc-b-2020", "totals": "groups"}),
    ),
    "phsafe-sdhc-2020": (("phsafe", {"preset": "sdhc-2020"}),),
}
# command → households of its census and its flags; a swap of fewer households moves nobody, and is refused
NAMED: dict[str, tuple[int, list[str]]] = {
    "das2020-light": (20, ["--light"]),
    "das2020-light-swapped": (100, ["--light", "--swapped"]),
}


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as hexadecimal text."""
    return hashlib.sha256(data).hexdigest()


def digest_value(value: object) -> str:
    """Return the SHA-256 of a value as JSON with sorted keys; what JSON lacks stands as text."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return digest(text.encode())


def digest_rows(path: Path) -> str:
    """Return the SHA-256 of the schema and the rows of a Parquet file, whoever wrote it."""
    table = pq.read_table(path)
    fields = [[field.name, str(field.type)] for field in table.schema]
    return digest_value([fields, table.to_pylist()])


def pin(name: str, data: bytes) -> bytes:
    """Return the bytes of a file of a packet without what varies with the installation."""
    if name == "receipt.json":
        found = re.search(rb'"versions": \{[^}]*\}', data)
        assert found, "receipt.json states no versions"
        return data.replace(found[0], re.sub(rb': "[^"]*"', b": -", found[0]))
    if name == "checksums.txt":
        return re.sub(rb"(?m)^[0-9a-f]{64}", b"-", data)
    if name.endswith(".html"):
        return re.sub(rb"\bpython 3\.\d+\.\d+, stirred", RECORDED_PYTHON, data)
    return data


def digest_packet(folder: Path) -> Digests:
    """Return the digest of every file of a packet by its path; checksums that are wrong are an error."""
    made: Digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, data = path.relative_to(folder).as_posix(), path.read_bytes()
        made[name] = digest(pin(path.name, data))
        if path.suffix == ".parquet":
            made[name] += f" rows {digest_rows(path)}"
        if path.name == "checksums.txt":
            for line in data.decode().splitlines():
                stated, file = line.split(maxsplit=1)
                assert digest((path.parent / file).read_bytes()) == stated, f"{name} is wrong about {file}"
    return made


def digest_plan(plan: Any, folder: Path) -> Digests:
    """Return the digests of what the mechanisms of a plan in ``folder`` say of themselves."""
    made: Digests = {}
    for number, mechanism in enumerate(plan.mechanisms, start=1):
        stated = json.dumps(mechanism.settings(), sort_keys=True, ensure_ascii=False, default=str)
        made[f"parameters() of {number} {mechanism.name}"] = digest_value(mechanism.parameters())
        made[f"settings() of {number} {mechanism.name}"] = digest(stated.replace(str(folder), "").encode())
    return made


def write_toml(value: object) -> str:
    """Return a setting as TOML: JSON, except for tables and truth values."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {write_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def write_plan(steps: tuple[tuple[str, Settings], ...], *, more: str = "", tables: Any = ()) -> str:
    """Return the text of a plan with these mechanisms and tables."""
    top = "" if more.startswith("[") else more
    lines = ['title = "Golden"', 'census = "census.toml"', top]
    for name, settings in steps:
        lines += ["[[mechanism]]", f"name = {json.dumps(name)}"]
        lines += [f"{key} = {write_toml(value)}" for key, value in settings.items()]
    for number, (record_type, by) in enumerate(tables):
        lines += ["[[table]]", f'name = "table-{number}"', f'record_type = "{record_type}"']
        lines += [f"by = {json.dumps(by)}"]
    lines += ["[assess]", "utility = false", "" if top else more]
    return "\n".join(lines) + "\n"


def write_census(folder: Path) -> None:
    """Write the small census: answers tell nothing of the place, and every stratum has several households."""
    rng = random.Random(2020)
    homes, people = ["hid,state,county,tract,size,tenure"], ["hid,age,sex"]
    for i in range(HOUSEHOLDS):
        tract, size, hid = i % 6, 1 + i // 6 % 3, 7 * i + 3
        tenure = "own" if rng.random() < 0.5 else "rent"
        homes.append(f"{hid},{tract // 4},{tract // 2:02d},{tract:03d},{size},{tenure}")
        people += [f"{hid},{2 * int(20 * rng.random())},{'mf'[(i + n) % 2]}" for n in range(size)]
    folder.mkdir(parents=True)
    (folder / "household.csv").write_text("\n".join(homes) + "\n")
    (folder / "person.csv").write_text("\n".join(people) + "\n")
    (folder / "census.toml").write_text(CENSUS)
    (folder / "workload.toml").write_text(WORKLOAD)
    shutil.copytree(TESTS / "contract" / "code_lists", folder / "lists")
    shutil.copytree(TESTS / "data" / "safetab_h", folder / "totals")


@dataclass(frozen=True, slots=True, kw_only=True)
class InParts(st.Local):
    """This machine, as if nothing fitted its memory; counts how often it was asked."""

    asked: ClassVar[list[int]] = []

    def fits(self, size: int) -> bool:
        """Say that nothing fits."""
        self.asked.append(size)
        return False

    def parts_for(self, size: int) -> int:
        """Return three, whatever the size."""
        return 3


def engine_of(name: str) -> Any:
    """Return the engine of that name on this machine, with one worker and a fixed bound of memory."""
    kinds = {"memory": st.Local, "parts": InParts}
    return kinds[name](workers=1, memory="4 GB")


def make_packet(name: str, engine: Any, folder: Path) -> Digests:
    """Run one case of the small census and return its digests; ``folder`` is made."""
    case = CASES[name]
    write_census(folder)
    text = write_plan(((case.mechanism, case.settings),), more=case.plan, tables=case.tables)
    (folder / "plan.toml").write_text(text)
    plan = st.load(folder / "plan.toml")
    made = digest_plan(plan, folder)
    key = st.Key.for_tests(KEY)
    if name == REFUSED:
        return made | _digest_refused(plan, key, engine, folder)
    InParts.asked.clear()
    st.run(plan, folder / "packet", key=key, engine=engine)
    if isinstance(engine, InParts):  # where a new name unhooks its methods, bytes might stay the same
        made["asked whether the census fits"] = "yes" if InParts.asked else "no"
    return made | digest_packet(folder / "packet")


def _digest_refused(plan: Any, key: Any, engine: Any, folder: Path) -> Digests:
    """Return the digests of a release that no packet is made of, and of the words of the refusal."""
    try:
        st.run(plan, folder / "packet", key=key, engine=engine)
    except Exception as refused:
        made = {"refusal": digest(str(refused).encode())}
    else:
        raise AssertionError("a release without a finite bound was published")
    (folder / "out").mkdir()
    census = engine.census(engine.read(folder / "census.toml"))
    release = plan.mechanisms[0].release(census, key=key, engine=engine, out=folder / "out")
    made["specification"] = digest(str(release.specification).encode())
    made["notes, checks"] = digest_value([release.notes, [str(check) for check in release.checks]])
    for record_type in release.microdata:
        made[f"records of {record_type}"] = digest_value(release.to_arrow(record_type).to_pylist())
    return made


def synthesise(folder: Path, households: int = HOUSEHOLDS_SYNTHETIC) -> None:
    """Write the synthetic census of the presets; ``folder`` is made."""
    call("data", "synth", "demo", "--households", str(households), "--seed", "1", "--out", str(folder))


def make_preset(name: str, engine: Any, folder: Path) -> Digests:
    """Run one preset on the synthetic census and return its digests; ``folder`` is made."""
    synthesise(folder)
    (folder / "plan.toml").write_text(write_plan(PRESETS[name]))
    plan = st.load(folder / "plan.toml")
    st.run(plan, folder / "packet", key=st.Key.for_tests(KEY), engine=engine)
    return digest_plan(plan, folder) | digest_packet(folder / "packet")


def make_named(name: str, engine: Any, folder: Path) -> Digests:
    """Run a plan that has a name on the synthetic census and return its digests; ``folder`` is made."""
    households, flags = NAMED[name]
    synthesise(folder, households)
    st.Key.for_tests(KEY).save(folder / "test.key")
    words = [str(folder / "census.toml"), "--out", str(folder / "packet"), "--key", str(folder / "test.key")]
    call(name.partition("-")[0], *words, *flags, "--memory", "4 GB", "--json")
    return digest_packet(folder / "packet")


def call(*words: str) -> str:
    """Run a command in this process as ``python -m stirred`` does and return what it prints; a failure is an error."""
    said = io.StringIO()
    with (
        patch.object(sys, "argv", ["stirred", *words]),
        patch.dict(os.environ, {"COLUMNS": HELP_COLUMNS, "NO_COLOR": "1", "TERM": "dumb"}),
        contextlib.redirect_stdout(said),
    ):
        code: object = None
        try:
            runpy.run_module("stirred", run_name="__main__")
        except SystemExit as end:
            code = end.code
    assert not code, f"stirred {' '.join(words)} ended with {code}"
    return said.getvalue()


def list_commands(text: str) -> list[str]:
    """Return the verbs or actions that a help text lists, those of other packages too.

    >>> list_commands("commands:\\n  release\\n    run   a plan\\n          to a packet\\n  check\\n    packet  verify\\n")
    ['run', 'packet']
    """
    below = re.search(r"(?m)^(?:positional arguments|commands):\n((?: {2}.*\n)+)", text)
    return re.findall(r"(?m)^ {4}([a-z][\w-]*)", below[1]) if below else []


def make_help() -> Digests:
    """Return the digest of the help of the program, of every verb and of every action or method of a verb."""
    from stirred.mechanisms.registry import list_methods

    texts = {"stirred": call("--help")}
    for verb in list_commands(texts["stirred"]):
        texts[f"stirred {verb}"] = call(verb, "--help")
        for method in list_methods(verb):
            texts[f"stirred {verb} --method {method}"] = call(verb, "--method", method, "--help")
        for action in list_commands(texts[f"stirred {verb}"]):
            texts[f"stirred {verb} {action}"] = call(verb, action, "--help")
    return {f"{name} --help": digest(text.encode()) for name, text in texts.items()}


def make_schema() -> Digests:
    """Return the digest of the plan's schema as a whole, of each of its tables and of each mechanism."""
    whole = json.loads(call("plan", "schema"))
    made = {"whole": digest_value(whole)}
    for name, part in whole["$defs"].items():
        made[f"definition {name}"] = digest_value(part)
    for name, part in whole["properties"].items():
        if name == "mechanism":
            for one in part["items"]["oneOf"]:
                made[f"mechanism {one['title']}"] = digest_value(one)
        else:
            made[name] = digest_value(part)
    return made


def make_catalog() -> Digests:
    """Return the digest of the specification of every entry of the catalog, and of the table of all."""
    made = {"catalog": digest(call("catalog", "--json").encode())}
    for name in st.catalog:
        made[f"{name} spec.json"] = digest(call("spec", "export", name, "--spec").encode())
    return made


def make_synthetic(folder: Path) -> Digests:
    """Return the digest of every file of the synthetic census; ``folder`` is made."""
    synthesise(folder)
    return digest_packet(folder)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """How one entry of golden.json is made in an empty place."""

    make: Callable[[Path], Digests]
    slow: bool = False
    engine: str = field(default="memory")


def plan_of_all(spark: Callable[[], Any] | None = None) -> dict[str, Maker]:
    """Return everything that is recorded, by name; ``spark`` gives the engine of those that run there."""

    def on(engine: str, make: Callable[[str, Any, Path], Digests], name: str) -> Callable[[Path], Digests]:
        def run(place: Path) -> Digests:
            if engine == "spark":
                assert spark is not None, "no Spark was given"
                return make(name, spark(), place)
            return make(name, engine_of(engine), place)

        return run

    found: dict[str, Maker] = {
        "help": Maker(make=lambda _: make_help()),
        "schema": Maker(make=lambda _: make_schema()),
        "catalog": Maker(make=lambda _: make_catalog()),
        "synthetic": Maker(make=make_synthetic),
    }
    for engine in ENGINES:
        for name, case in CASES.items():
            if engine == "memory" or not case.only_memory:
                found[f"{engine}/{name}"] = Maker(make=on(engine, make_packet, name), engine=engine)
    for name in PRESETS:
        found[f"preset/{name}"] = Maker(make=on("memory", make_preset, name), slow=True)
    for name in NAMED:
        found[f"preset/{name}"] = Maker(make=on("memory", make_named, name), slow=True)
    return found


def versions() -> dict[str, str]:
    """Return the versions that bytes of Parquet files and texts of help depend on."""
    minor = ".".join(platform.python_version_tuple()[:2])
    return {"python": minor, **{name: version(name) for name in LIBRARIES}}


def describe_machines(golden: Mapping[str, Any]) -> str:
    """Return where the packets were made and where they were recorded: what differs may be the machine's.

    >>> describe_machines({"machine": "x86_64"}).startswith("made on ")
    True
    """
    return f"made on {platform.machine()} ({platform.system()}), recorded on {golden.get('machine', 'an unknown machine')}"


def load_golden() -> dict[str, Any]:
    """Return what was recorded."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def find_twin(name: str) -> str:
    """Return the entry of the same packet made in memory, of which another engine records only what differs; or "".

    >>> find_twin("spark/topdown"), find_twin("memory/topdown")
    ('memory/topdown', '')
    """
    engine, _, case = name.partition("/")
    return f"memory/{case}" if engine in ENGINES[1:] else ""


def drop_names(name: str, made: Mapping[str, str]) -> Digests:
    """Return what is compared: of another engine without the names of the files, which are compared themselves."""
    return {file: value for file, value in made.items() if not find_twin(name) or "checksums.txt" not in file}


def expect_digests(name: str, golden: Mapping[str, Any]) -> Digests:
    """Return what a packet must be: what is recorded, and of another engine else what memory makes."""
    own, twin = golden["digests"].get(name, {}), golden["digests"].get(find_twin(name), {})
    return drop_names(name, {file: value for file, value in {**twin, **own}.items() if value is not None})


def keep_differences(name: str, made: Mapping[str, str], golden: Mapping[str, Any]) -> dict[str, str | None]:
    """Return what is recorded of a packet: of another engine what differs from memory, None for a file it lacks."""
    twin, own = drop_names(name, golden["digests"].get(find_twin(name), {})), drop_names(name, made)
    if not find_twin(name):
        return {**made}
    return {file: own.get(file) for file in (*own, *twin) if own.get(file) != twin.get(file)}


def compare(name: str, made: Mapping[str, str], golden: Mapping[str, Any]) -> list[str]:
    """Return one line for every file that is missing, new or different; none where all is equal."""
    recorded, made = expect_digests(name, golden), drop_names(name, made)
    here, there = versions(), golden["versions"]
    if name == "help" and here["python"] != there["python"]:
        return []
    rows_alone = here != there
    lines = [f"{name}: {file} is missing" for file in recorded if file not in made]
    for file, value in made.items():
        if file not in recorded:
            lines.append(f"{name}: {file} is new")
        elif value != recorded[file]:
            bytes_and_rows, before = value.split(" rows "), recorded[file].split(" rows ")
            same_rows = len(before) == 2 and bytes_and_rows[-1] == before[-1]
            if not (same_rows and rows_alone):
                lines.append(f"{name}: {file} differs" + (" (its rows are equal)" if same_rows else ""))
    return lines


@contextlib.contextmanager
def start_spark() -> Iterator[Callable[[], Any]]:
    """Give a function that returns an engine on Spark; the session of the tests starts when it is first called."""
    sys.path.insert(0, str(TESTS))
    from spark_sessions import SESSIONS

    def engine() -> Any:
        SESSIONS.use("local")
        return SESSIONS.engine()

    try:
        yield engine
    finally:
        SESSIONS.clean()


def main() -> int:
    """Record everything, or compare it; return 1 where something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of the names of entries (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with golden.json and write nothing")
    asked = parser.parse_args()
    golden = load_golden() if FILE.exists() else {"digests": {}}
    lines: list[str] = []
    files = 0
    with start_spark() as spark, tempfile.TemporaryDirectory() as place:
        for name, maker in plan_of_all(spark).items():
            if asked.names and not name.startswith(tuple(asked.names)):
                continue
            begun = time.perf_counter()
            made = maker.make(Path(place) / name.replace("/", "-"))
            files += len(made)
            print(f"{name}: {len(made)} in {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
            if asked.check:
                lines += compare(name, made, golden)
            else:
                golden["digests"][name] = keep_differences(name, made, golden)
                write_golden(golden["digests"])
    print("\n".join(lines) or f"{files} digests are {'equal' if asked.check else 'recorded'}")
    print(describe_machines(golden) if asked.check else f"recorded on {platform.machine()}")
    return 1 if lines else 0


def write_golden(digests: Mapping[str, Digests]) -> None:
    """Write golden.json, one line for every digest, entries in the order in which they are made."""
    kept = {name: digests[name] for name in plan_of_all() if name in digests}
    document = {"key": KEY, "machine": platform.machine(), "versions": versions(), "digests": kept}
    FILE.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
