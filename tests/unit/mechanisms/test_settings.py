"""Settings are declared once: what the constructor, a plan, ``settings()`` and ``parameters()`` make of a Config."""

import inspect
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import Exact, ExactText, MechanismConfig, Share, make_signature
from stirred.mechanisms.registry import OWN_REGISTRATIONS
from stirred.spec import Specification


class CountsConfig(MechanismConfig):
    """Counts for these tests."""

    listed_where_given = frozenset(["accept"])

    tables: list[list[str]] = Field(description="the tables", examples=[[["county"]]])
    rate: Share = Field(default="0.05", description="the rate", examples=["1/20"])
    shares: list[Exact] = Field(default=[], description="the shares", examples=[["1/2"]])
    total: ExactText | None = Field(default=None, description="the total", examples=["8.9"])
    given: str | None = Field(default=None, description="a packet", json_schema_extra={"path": True})
    accept: list[str] = Field(default=[], description="what is accepted")
    record: str = Field(default="person", description="the record type")


class Counts(Mechanism):
    """A mechanism that only has settings."""

    name: ClassVar[str] = "counts-of-tests"
    config: CountsConfig

    def check_settings(self) -> None:
        if self.config.shares and len(self.config.shares) != len(self.config.tables):
            raise InputError("the shares do not fit", why="one for each table", fix="leave them out")

    def specification(self, census: Any, *, engine: Any = None) -> Specification:
        raise NotImplementedError

    def release(self, census: Any, **_: Any) -> Any:
        raise NotImplementedError


TABLES = [["county"], ["tenure"]]


def test_python_values_are_those_of_a_plan() -> None:
    """Tuples, paths, fractions and whole numbers make the mechanism that lists and texts make."""
    made = Counts(
        tables=(("county",), ("tenure",)), rate=Fraction(1, 4), shares=(Fraction(3, 4), "0.25"), total=2,
        given=Path("packet"),
    )  # fmt: skip
    plain = Counts(tables=TABLES, rate="1/4", shares=["0.75", "1/4"], total="2", given="packet")
    assert made == plain
    assert hash(made) == hash(plain)
    assert made == Counts.of(CountsConfig.model_validate(made.settings()))
    assert pickle.loads(pickle.dumps(made)) == made
    assert made != made.replace(rate="1/5")
    assert made.replace(rate="1/5").config.tables == TABLES


def test_settings_are_canonical_and_parameters_name_no_file() -> None:
    made = Counts(tables=TABLES, rate="0.50", total="8.90", given="packet")
    assert made.settings() == {
        "tables": TABLES, "rate": "1/2", "shares": [], "total": "8.90", "given": "packet", "accept": [],
        "record": "person",
    }  # fmt: skip
    assert made.parameters() == {
        "tables": TABLES, "rate": "1/2", "shares": [], "total": "8.90", "record": "person"
    }  # fmt: skip
    assert made.replace(accept=["weight"]).parameters()["accept"] == ["weight"]
    assert made.config.model_dump()["rate"] == "0.50"  # a plan's receipt repeats what the plan says
    assert (made.rate, made.record_type) == ("0.50", "person")


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (BudgetError, {"rate": 0.5}, "floats are not exact"),
        (BudgetError, {"shares": [0.5, 0.5]}, "floats are not exact"),
        (BudgetError, {"total": "many"}, "neither p/q nor a decimal"),
        (InputError, {"rate": "2"}, "outside 0 to 1"),
        (InputError, {"rate": True}, "rate"),
        (InputError, {"tables": "county"}, "valid list"),
        (InputError, {"tabels": TABLES}, "did you mean tables"),
        (InputError, {"record": 3}, "valid string"),
        (InputError, {"shares": ["1"]}, "one for each table"),
    ],
)
def test_what_is_wrong_is_refused_with_a_fix(
    kind: type[Exception], settings: dict[str, object], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        Counts(**{"tables": TABLES, **settings})
    assert "why: " in str(caught.value)
    assert "fix: " in str(caught.value)


def test_a_mechanism_cannot_be_changed() -> None:
    made = Counts(tables=TABLES)
    for name in ("config", "rate", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(made, name, "1/2")
    with pytest.raises(AttributeError, match="no attribute rated"):
        _ = made.rated


def test_the_signature_shows_every_setting() -> None:
    shown = inspect.signature(Counts).parameters
    assert list(shown) == list(CountsConfig.model_fields)
    assert str(shown["total"]) == "total: str | None = None"
    assert str(shown["tables"]) == "tables: list[list[str]]"


def test_no_mechanism_declares_a_setting_outside_its_config() -> None:
    """The keywords of every constructor are the fields of its Config, and come from there."""
    for item in OWN_REGISTRATIONS:
        kind = item.load()
        assert kind.__init__ is Mechanism.__init__, item.name
        assert inspect.signature(kind) == make_signature(item.Config), item.name
        for one in kind.__mro__:
            declared = set(inspect.get_annotations(one)) & set(item.Config.model_fields)
            assert not declared, f"{one.__name__} declares {declared}"
