"""The 2020 census on Spark: all products, noisy and from one swapped file, with the contents that they have here."""

from pathlib import Path

import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Engine, Local, Spark
from stirred.publish import parse, run
from stirred.publish.named_plans import Choices, find_named_plan
from stirred.publish.plan.proposal import read_schema


@pytest.mark.slow
@pytest.mark.spark("local")
@pytest.mark.parametrize("swapped", [False, True], ids=["noisy", "swapped"])
def test_das2020_on_both_engines(spark: Spark, tmp_path: Path, swapped: bool) -> None:
    write_preset("demo", tmp_path / "census", households=20)
    file = tmp_path / "census" / "census.toml"
    choices = Choices(
        census=file.name, schema=read_schema(file) if swapped else None, swapped=swapped, light=True
    )
    # of twenty households nearly nobody moves, which a plan must accept with a reason
    text = f'accept_small_effect = "twenty made-up households"\n{find_named_plan("das2020").text(choices)}'
    plan = parse(text, folder=file.parent)
    engines: dict[str, Engine] = {"local": Local(), "spark": spark}
    made = {
        name: run(plan, tmp_path / name, key=Key.for_tests(9), engine=engine, internal=False).contents()
        for name, engine in engines.items()
    }
    assert len(made["local"]) > 20
    assert made["local"] == made["spark"]
