"""Every language says everything: the same keys, the same values, nothing missing and nothing left over."""

import ast
import copy
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import stirred
from stirred.errors import InputError
from stirred.languages import CODES, Language, Phrase, recognise, unit
from stirred.languages.phrase import catalog
from stirred.publish.plan.models import PlanConfig
from stirred.spec.invariants import describe_condition
from syntax import nodes_of

ROOT = Path(stirred.__file__).parent
OTHERS = [code for code in CODES if code != "en"]
SAYING = {"Phrase", "say"}  # what takes a key as its first argument
ALWAYS = {"about", "numbers", "lists", "unit"}  # read by the package itself


def placeholders(entry: str | dict[str, str]) -> list[set[str]]:
    texts = [entry] if isinstance(entry, str) else [entry["one"], entry["other"]]
    return [{name for _, name, _, _ in Formatter().parse(text) if name is not None} for text in texts]


@cache
def used() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Keys that the source says, all its texts, and the beginnings of keys that it makes."""
    said, texts, starts = set(), set(), set()
    for path in ROOT.rglob("*.py"):
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                starts.add(str(node.values[0].value))
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if name in SAYING and "." in str(node.args[0].value):
                    said.add(str(node.args[0].value))
    for path in ROOT.rglob("*.j2"):
        said |= set(re.findall(r"""\bsay\(\s*['"]([a-z0-9_.]+)['"]""", path.read_text()))
    return frozenset(said), frozenset(texts), frozenset(starts)


@pytest.mark.parametrize("code", OTHERS)
def test_same_keys_in_every_language(code: str) -> None:
    assert set(catalog(code)) == set(catalog("en"))


@pytest.mark.parametrize("code", OTHERS)
def test_same_values_in_every_text(code: str) -> None:
    english, other = catalog("en"), catalog(code)
    differing = [
        key
        for key in english
        if key in other and placeholders(english[key])[-1] != placeholders(other[key])[-1]
    ]
    assert differing == []
    assert [key for key in english if key in other and type(english[key]) is not type(other[key])] == []


def test_every_key_that_is_said_is_there() -> None:
    said, _, _ = used()
    assert sorted(said - set(catalog("en"))) == []
    assert said


def test_every_key_that_is_there_is_said() -> None:
    said, texts, starts = used()
    made = tuple(start for start in starts if re.fullmatch(r"[a-z_]+(\.[a-z0-9_]*)+", start))
    unused = [
        key
        for key in catalog("en")
        if key not in said | texts and not key.startswith(made) and key.split(".")[0] not in ALWAYS
    ]
    assert unused == []


@pytest.mark.parametrize("code", OTHERS)
def test_no_text_is_english(code: str) -> None:
    """A sentence that is the same as the English one was not translated."""
    same = [
        key
        for key, text in catalog("en").items()
        if text == catalog(code).get(key)
        and isinstance(text, str)
        and len(re.findall(r"[a-z]{4,}", re.sub(r"{.*?}", "", text))) > 2
    ]
    assert same == []


def test_catalogs_show_no_stray_spaces() -> None:
    """Values stand alone; only separators begin or end with a space."""
    for code in CODES:
        for key, entry in catalog(code).items():
            for text in [entry] if isinstance(entry, str) else entry.values():
                if not key.startswith(("numbers.", "lists.")):
                    assert text == text.strip(), (code, key)
                    assert "  " not in text, (code, key)


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean de"):
        Language.of("dee")
    assert Language.of(Language.of("fr")).code == "fr"
    assert [Language.of(code).name for code in CODES] == ["English", "Deutsch", "Français", "Español"]


def test_plans_know_every_language() -> None:
    assert get_args(PlanConfig.model_fields["language"].annotation) == CODES


def test_a_missing_key_is_never_said_in_english() -> None:
    with pytest.raises(KeyError):
        Language.of("de").say("no.such.key")


def test_a_phrase_is_its_english_text() -> None:
    phrase = Phrase("card.status.published")
    assert phrase == "published by others"
    assert f"{phrase}" == "published by others"
    german = Language.of("de")
    assert german.translate(phrase) == german.say("card.status.published")
    assert german.translate("plain words") == "plain words"
    assert german.knows(phrase)
    assert not german.knows("plain words")
    assert Language.of("en").knows("plain words")
    for twin in (pickle.loads(pickle.dumps(phrase)), copy.deepcopy(phrase), copy.copy(phrase)):
        assert (twin.key, twin.values, str(twin)) == (phrase.key, phrase.values, str(phrase))


def test_a_text_takes_no_float() -> None:
    with pytest.raises(TypeError, match="exact numbers"):
        Phrase("card.status.proved", share=0.5)  # type: ignore[arg-type]
    assert Phrase("card.status.proved", share=Decimal("0.5")) == "proved"


KEPT_IN_FILES = [
    Phrase("swap.check.table", records=unit("household", "records"), variables="state × size"),
    Phrase("swap.check.held", records=unit("household", "records")),
    Phrase("swap.check.members", records=unit("person", "records"), of_their=unit("household", "of_their")),
    Phrase(
        "swap.stay.kind",
        subject=unit("household", "records"),
        condition=describe_condition("kind", ("2", "3")),
    ),
    Phrase("swap.note.weak", strata=1234, number=5678, below=Fraction(1, 2), lowest=Decimal("0.0028")),
    Phrase("topdown.check.adds_up", name="persons"),
    Phrase("topdown.note.noiseless"),
    Phrase("topdown.kept.population", name="pl94-persons"),
    Phrase("guard.identifying"),
    Phrase("guard.none_identifies"),
    Phrase("guard.fixed", number=2, all=1500, strata=2, all_strata=11, told=Phrase("guard.alone", number=2)),
    Phrase(
        "guard.guesses",
        columns="race",
        place="county",
        guessed=Phrase("guard.share", number=57),
        chance=Phrase("guard.share", number=44),
    ),
    Phrase("numbers.span", low=1000, high=9999),
    Phrase("numbers.above", number=10_000),
    Phrase("guard.all_move", strata=1100),
    Phrase("invariant.table", ones=unit("person", "ones"), variables="county × sex"),
    Phrase("card.varies", words=Phrase("law.rate", rate="1/20"), universe=Phrase("law.realised", b=1525)),
]


@pytest.mark.parametrize("code", OTHERS)
def test_texts_of_files_are_recognised(code: str) -> None:
    """A text that an interrupted run or a spec.json kept is said as the phrase that it was."""
    language = Language.of(code)
    for phrase in KEPT_IN_FILES:
        assert language.translate(str(phrase)) == language.translate(phrase)
        assert language.translate(phrase) != str(phrase)


def test_labels_of_the_census_are_not_recognised() -> None:
    for label in ("owned", "household", "none", "persons", "3", "91001 · renter", "a by b", "never married"):
        assert type(recognise(label)) is str
