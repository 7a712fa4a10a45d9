"""What the models say is what the reference, the schema and the commands say."""

import argparse
from pathlib import Path

import jsonschema
import pytest

from stirred.cli.mechanism import DEST_PREFIX, add_flags, settings
from stirred.errors import InputError
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_mechanism
from stirred.publish import parse
from stirred.publish.plan.models import build_schema, new_plan, questions, write_pages

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "plan-toml.md"
NAMES = [item.name for item in OWN_REGISTRATIONS]


def test_the_reference_page_is_written_from_the_models() -> None:
    assert write_pages() in REFERENCE.read_text(encoding="utf-8"), (
        "paste stirred.publish.plan.models.pages() into the page"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_new_plan_is_a_plan(name: str) -> None:
    kind = find_mechanism(name)
    answers = {key: usual for key, (_, usual) in questions(kind).items()}
    text = new_plan(kind, answers)
    if name == "swapping-varying-rates":
        with pytest.raises(InputError, match="one source"):  # by and rates, or rarity and rare: a choice
            parse(text, folder=Path())
        return
    assert parse(text, folder=Path()).mechanisms[0].name == name


def test_the_schema_knows_every_mechanism() -> None:
    whole = build_schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    plan = {"title": "t", "census": "c.toml", "mechanism": [{"name": "topdown", "workload": "small"}]}
    jsonschema.validate(plan, whole)
    plan["mechanism"] = [{"name": "topdown", "wrokload": "small"}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plan, whole)
    assert [item["title"] for item in whole["properties"]["mechanism"]["items"]["oneOf"]][
        : len(NAMES)
    ] == NAMES


FLAGS = {
    "permutation-swapping": "--match state size --swap county --rate 1/20 --table county tenure --table size "
    "--tables-only --no-persons --untouched drop --hold tenure --drop age --resolution household",
    "stirring": "--match size --swap county --rate 1/20 --loss 7 --law auto --shuffle-first tenure --shuffle-levels rent",
    "topdown": "--workload small --mode classic --rho-squared 1/2 --keep-nmf --given p --names bureau --emphasis 30 "
    "--aian aiannh --optimized-block-groups place --replicates 4 --no-bypass",
    "cell-key": "--table county tenure --table size --record household --D 3 --V 2 --js 1 --pstay 1/2 --no-mono --digits 6 "
    "--ties up-to --record-key key --threshold 10 --period 5 --without-guarantee why --weight w --magnitudes income "
    "--epsilon 1 1/2 --p-large 1/20 --p-small 1/5 --fp 1000 --q 3 --mu-c 1 --sensitive-below 5 --magnitude-V 2",
    "special-tabulations": "--table county tenure --record household --rounding fives --least-count 3 --least-area 100 "
    "--without-guarantee why --base 0",
    "gaussian-tables": "--table county tenure --table size --rho-squared 1/2 --shares 1/4 3/4 --record household "
    "--stability 1 --without-guarantee why",
    "exact-margins": "--rows county --columns tenure --rho-squared 1/2 --record household --rows-only",
    "swapping-varying-rates": "--swap county --rate 1/20 --by tenure --rates rent=1/10 own=1/5",
    "swapping-imputed-stay": "--swap county --rate 1/20 --imputed allocated --levels 1",
    "swapping-no-vacuous": "--swap county --rate 1/20 --no-persons",
    "safetab-p": "--preset ddhc-a-2020 --budget STATE-2=2",
    "swapping-near-places": "--swap county --rate 1/20 --preference 3",
    "swapping-unit-matching": "--match size --swap county --rate 1/20 --loose size --alpha 1/2",
    "swapping-noisy-key": "--match size --swap county --rate 1/20 --noisy size --change 1/4",
    "swapping-2010": "--swap county --rate 1/20 --equal size",
    "targeted-swapping": "--hierarchy county --similar size --risk-variables tenure",
    "swapping-noisy-tables": "--swap county --rate 1/20 --table county tenure --sigma-squared 4",
    "safetab-h": "--totals t1 --codes lists --budget T3-STATE-2=2 --thresholds T3-STATE-2=1,2,3 --total 3 --clamp "
    "--definition puredp --types couple=1 --races a b --epsilon inf",
    "phsafe": "--preset sdhc-2020 --definition puredp --epsilon 2 --budget PH2=0 PH3.state_A-G=1/4 --tau PH3=5 "
    "--states 06 44 --state state --columns person.age=years --neighbours household",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_flag(name: str) -> None:
    kind = find_mechanism(name)
    parser = argparse.ArgumentParser()
    add_flags(parser, kind.Config)
    found = settings(parser.parse_args(FLAGS[name].split()), kind.Config)
    assert kind.of(found).name == name
    flags = {action.dest.removeprefix(DEST_PREFIX) for action in parser._actions}
    fixed = {"microdata"} if name == "swapping-noisy-tables" else set()  # it never has records
    assert flags >= set(kind.Config.model_fields) - fixed


def test_a_command_and_a_plan_with_the_same_settings_are_the_same_mechanism() -> None:
    kind = find_mechanism("permutation-swapping")
    parser = argparse.ArgumentParser()
    add_flags(parser, kind.Config)
    typed = settings(
        parser.parse_args(["--match", "state", "size", "--swap", "county", "--rate", "1/20"]), kind.Config
    )
    text = (
        'title = "t"\ncensus = "c"\n[[mechanism]]\nname = "permutation-swapping"\n'
        'match = ["state", "size"]\nswap = ["county"]\nrate = "1/20"\n'
    )
    assert kind.of(typed) == parse(text, folder=Path()).mechanisms[0]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "topdown"])
def test_the_receipt_holds_the_settings(name: str) -> None:
    """A mechanism can be made again from the parameters of its receipt."""
    kind = find_mechanism(name)
    parser = argparse.ArgumentParser()
    add_flags(parser, kind.Config)
    mechanism = kind.of(settings(parser.parse_args(FLAGS[name].split()), kind.Config))
    parameters = {key: value for key, value in mechanism.parameters().items() if value is not None}
    if parameters.get("rates") == {}:
        del parameters["rates"]
    assert kind.of(kind.Config.model_validate(parameters)) == mechanism
