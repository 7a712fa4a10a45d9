"""A whole plan on Spark: release, tables with intervals, assessment and papers, as on this machine."""

from pathlib import Path

import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Engine, Local, Spark
from stirred.publish import Packet, load, run, verify

PLAN = """title = "both engines"
census = "census/census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/20"
[[table]]
name = "tenure"
record_type = "household"
by = ["tract", "tenure"]
[[table]]
name = "race"
record_type = "person"
by = ["county", "race", "tenure"]
[[table]]
name = "ages"
record_type = "person"
by = ["county", "tenure"]
weight = "elderly"
[[table]]
name = "calibrated"
record_type = "household"
by = ["county", "tenure"]
weight = "calibrated_weight"
[weights]
recalibrate_to = ["totals.csv"]
[assess]
relations = [["county", "tenure"]]
improbable = "tract"
"""


@pytest.mark.slow
@pytest.mark.spark("local")
def test_a_plan_on_both_engines(spark: Spark, tmp_path: Path) -> None:
    write_preset("demo", tmp_path / "census", households=3000)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "totals.csv").write_text("tenure,total\n0,500\n1,3000\n2,2000\n3,4000\n4,500\n")
    plan, key = load(tmp_path / "plan.toml"), Key.for_tests(8)
    made: dict[str, Packet] = {}
    engines: dict[str, Engine] = {"local": Local(), "spark": spark}
    for name, engine in engines.items():
        made[name] = run(plan, tmp_path / name, key=key, engine=engine)
        assert not verify(made[name].folder)
        assert made[name].receipt()["engine"] == name
    here, there = made["local"], made["spark"]
    assert here.contents() == there.contents()
    assert here.receipt()["mechanisms"] == there.receipt()["mechanisms"]
    for paper in ("public/spec.json", "public/card.md", "internal/metrics.csv"):
        assert (here.folder / paper).read_bytes() == (there.folder / paper).read_bytes()
