"""The main job on an embedded default: a synthetic census released three ways, compared in one report."""

from dataclasses import replace
from pathlib import Path

from stirred.assess.assessment import Assessment
from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Progress, silent
from stirred.publish.compare.answers import assessment
from stirred.publish.compare.side_by_side import comparison_report
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.released import release_of
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import load
from stirred.publish.run.execute import run
from stirred.report import render
from stirred.spec import Specification
from stirred.spec.files import load as load_specification

SWAP = """# Households swap within the state among households of the same size; their persons travel along.
title = "{title}"
census = "../census/census.toml"

[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "{rate}"
"""

TOPDOWN = """# Noisy counts at every level with the budget shares of the 2020 redistricting file, then consistent records.
title = "{title}"
census = "../census/census.toml"

[[mechanism]]
name = "topdown"
workload = "pl94-persons"
replicates = 8
"""

QUESTIONS = """
[assess]
relations = [["county", "tenure"], ["race", "tenure"], ["size", "county"]]
segregation = [["tract", "hispanic"], ["tract", "race"]]
propensity = ["county", "tenure", "hispanic"]
improbable = "block"

[[assess.regression]]
outcome = "size"
on = ["tenure", "county"]
"""

PERSON_QUESTIONS = """
[assess]
segregation = [["tract", "hispanic"], ["tract", "race"]]
"""

TABLES = """
[[table]]
name = "hispanic-by-county"
record_type = "person"
by = ["county", "hispanic"]

[[table]]
name = "race-by-tract"
record_type = "person"
by = ["tract", "race"]

[[table]]
name = "persons-by-block"
record_type = "person"
by = ["block"]
"""

PLANS = {
    "swap-5": SWAP.format(title="PSA at 5 %", rate="1/20") + TABLES + QUESTIONS,
    "swap-50": SWAP.format(title="PSA at 50 %", rate="1/2") + TABLES + QUESTIONS,
    "topdown": TOPDOWN.format(title="TopDown (PL)") + TABLES + PERSON_QUESTIONS,
}


def demo(out: Path, *, seed: int = 1, progress: Progress | None = None) -> Path:
    """Synthesise, plan, run and compare; returns the report. What is already there is taken up."""
    say = progress or silent
    census = out / "census"
    if not (census / "census.toml").exists():
        say("census", 0, 1)
        write_preset("demo", census, seed=seed)
        say("census", 1, 1)
    plans = out / "plans"
    plans.mkdir(exist_ok=True)
    key = _key(out / "demo.key")
    assessments: list[Assessment] = []
    specifications: list[Specification] = []
    packets: list[Packet] = []
    for index, (name, text) in enumerate(PLANS.items()):
        say("releases", index, len(PLANS))
        (plans / f"{name}.toml").write_text(text, encoding="utf-8")
        plan = load(plans / f"{name}.toml")
        packet = Packet(out / name)
        if not packet.folder.exists():
            packet = run(plan, out / name, key=key, progress=progress)
        packets.append(packet)
        specifications.append(load_specification(packet.public / "spec.json"))
        assessments.append(_assessed(plan, packet))
    say("releases", len(PLANS), len(PLANS))
    report = comparison_report(
        [load(plans / f"{name}.toml").title for name in PLANS],
        specifications,
        assessments,
        title="One census, released three ways",
        subtitle="A synthetic census of 60,000 households, so that even the comparison with the truth may be shown",
    )
    target = out / "report.html"
    temporary = target.with_suffix(".part")
    temporary.write_text(render(report), encoding="utf-8")
    temporary.replace(target)
    return target


def _key(path: Path) -> Key:
    if not path.exists():
        Key.fresh().save(path)
    return Key.load(path)


def _assessed(plan: Plan, packet: Packet) -> Assessment:
    census = read(plan.folder / plan.census_file)
    found = assessment(plan, census, [release_of(packet, plan)], packet.read_tables())
    return replace(found, name=plan.title)
