"""The settings of a mechanism as one typed model: plan keys, flags, reference, JSON schema and forms come from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from inspect import Parameter, Signature
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializationInfo,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from stirred.errors import InputError, StirredError, did_you_mean
from stirred.roots import require_readable_below
from stirred.text_formats import write_toml

M = TypeVar("M", bound=BaseModel)


class StrictModel(BaseModel):
    """Unknown keys are errors; errors do not repeat what was typed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, strict=True, defer_build=True
    )


RESERVED_NAMES = frozenset(
    (
        "name",
        "label",
        "census",
        "out",
        "key",
        "promise",
        "check",
        "json",
        "engine",
        "master",
        "memory",
        "scratch",
        "help",
        "from",
        "accept_small_effect",
        "accept_open_network",
    )
)  # flags of every command


class MechanismConfig(StrictModel):
    """Base of the settings of a mechanism: each field has a sentence (``description``) and one of its ``examples``.

    The first line of the docstring is the help of the command. In ``json_schema_extra`` a field may say its ``flag``
    (where that is not its name), ``path`` (a text that names a file, relative to the plan; ``".toml"``: only a text with
    this ending does) and ``continues`` (a path of an earlier packet, or the label of an earlier [[mechanism]], whose
    promise is then part of the specification), ``reads`` (the same, of a release that is read as public data: its promise
    is stated apart), ``levels_of`` (the setting that names the variable whose levels it lists: a label of the codebook is
    then as good as a code), ``overrides`` (it accepts by name what a guard refuses: a form asks for the reason) and
    ``label`` (what forms call it, where its name does not say it). A setting that releases are compared by, such as a swap
    rate or a total budget, is marked in its type: ``Annotated[Share, Varied("rate")]``.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        for name, field in cls.model_fields.items():
            if not field.description or name in RESERVED_NAMES:
                raise TypeError(
                    f"{cls.__name__}.{name} needs a description and a name that no command uses itself"
                )

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = None  # what a new plan publishes
    listed_where_given: ClassVar[frozenset[str]] = (
        frozenset()
    )  # settings that ``parameters`` leaves out where they are empty: no draw changes when one is added to a Config

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, exact numbers in lowest terms."""
        return self.model_dump(mode="json")

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know: without paths, which name files of the office."""
        paths = {
            name for name, field in type(self).model_fields.items() if read_extra(field).get("path") is True
        }
        return {
            name: value
            for name, value in self.settings().items()
            if name not in paths and (value or name not in self.listed_where_given)
        }

    def resolve_paths(self, folder: Path) -> "MechanismConfig":
        """Return the same settings with paths relative to the plan's folder resolved."""
        paths = {
            name: str(require_readable_below(folder / str(getattr(self, name)))) for name in self.paths()
        }
        return self.model_copy(update=paths) if paths else self

    def paths(self) -> tuple[str, ...]:
        """Return the names of the settings that hold a file or a folder."""
        return tuple(
            name
            for name, field in type(self).model_fields.items()
            if (kind := read_extra(field).get("path"))
            and (value := getattr(self, name)) is not None
            and (kind is True or str(value).endswith(kind))
        )

    def names_levels(self) -> bool:
        """Return whether a setting that is given names levels of a variable."""
        return any(
            read_extra(field).get("levels_of") and getattr(self, name)
            for name, field in type(self).model_fields.items()
        )

    def encode_labels(self, code: Callable[[str, str], str]) -> "MechanismConfig":
        """Return the same settings with codes instead of labels; ``code`` maps a variable and a level."""
        found: dict[str, object] = {}
        for name, field in type(self).model_fields.items():
            by, value = read_extra(field).get("levels_of"), getattr(self, name)
            if by and isinstance(value, Mapping):
                found[name] = {code(str(getattr(self, by)), level): rest for level, rest in value.items()}
            elif by and isinstance(value, list | tuple):
                found[name] = [code(str(getattr(self, by)), level) for level in value]
        return self.model_copy(update=found) if found else self

    def continues_setting(self) -> str | None:
        """Return the setting that names an earlier release whose promise is included, if one is given."""
        return self._setting_with("continues")

    def earlier_release_setting(self) -> str | None:
        """Return the setting that names an earlier release, continued or only read, if one is given."""
        return self._setting_with("continues") or self._setting_with("reads")

    def _setting_with(self, kind: str) -> str | None:
        names = (name for name, field in type(self).model_fields.items() if read_extra(field).get(kind))
        return next((name for name in names if getattr(self, name) is not None), None)


@dataclass(frozen=True, slots=True)
class Varied:
    """Mark a setting by which releases of one mechanism are compared: a ``rate`` of moves, a total ρ² or a largest ε.

    The mark is no part of the JSON schema. ``where`` is another setting with the value for which this one has that unit;
    ``instead_of`` are settings that are left out where this one is set.
    """

    unit: Literal["rate", "rho_squared", "epsilon"]
    where: tuple[str, str] | None = None
    instead_of: tuple[str, ...] = ()


def list_varied(config: type[MechanismConfig]) -> dict[str, tuple[Varied, ...]]:
    """Return the settings by which releases are compared, each with its marks.

    >>> from pydantic import Field
    >>> class Settings(MechanismConfig):
    ...     area: str = Field(description="the areas that are counted")
    ...     share: Annotated[Share, Varied("rate")] = Field(description="the share that moves")
    >>> [(name, mark.unit) for name, marks in list_varied(Settings).items() for mark in marks]
    [('share', 'rate')]
    """
    marks = {
        name: tuple(one for one in field.metadata if isinstance(one, Varied))
        for name, field in config.model_fields.items()
    }
    return {name: found for name, found in marks.items() if found}


def read_extra(field: FieldInfo) -> dict[str, Any]:
    """Return the extra entries of a field's JSON schema."""
    found = field.json_schema_extra
    return dict(found) if isinstance(found, dict) else {}


def read_kind(field: FieldInfo) -> tuple[Any, bool]:
    """Return the type of a setting without None and without its checks, and whether it may be None."""
    kind: Any = field.annotation
    optional = False
    if get_origin(kind) in (Union, UnionType):
        optional = type(None) in get_args(kind)
        kind = next(inner for inner in get_args(kind) if inner is not type(None))
    return (get_args(kind)[0] if hasattr(kind, "__metadata__") else kind), optional


def make_signature(config: type[MechanismConfig]) -> Signature:
    """Return the signature of a constructor whose keywords are the settings.

    >>> from pydantic import Field
    >>> class Settings(MechanismConfig):
    ...     area: str = Field(default="county", description="the areas that are counted")
    ...     rate: Share = Field(description="the swap rate")
    >>> print(make_signature(Settings))
    (*, area: str = 'county', rate: str)
    """
    return Signature(
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty
                if field.is_required()
                else field.get_default(call_default_factory=True),
                annotation=_strip_checks(field.annotation),
            )
            for name, field in config.model_fields.items()
        ]
    )


def _strip_checks(kind: Any) -> Any:
    """Return a type without the checks that are annotated on it or inside it."""
    if hasattr(kind, "__metadata__"):
        return _strip_checks(kind.__origin__)
    origin, inner = get_origin(kind), get_args(kind)
    if not inner or origin is Literal:
        return kind
    stripped = tuple(_strip_checks(one) for one in inner)
    return reduce(or_, stripped) if origin in (Union, UnionType) else origin[stripped]


def _write_number(value: object) -> object:
    """Return an exact number of Python as a text; a float is refused, whatever it looks like."""
    if isinstance(value, float):
        raise PydanticCustomError("exact", "floats are not exact")
    return str(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else value


def _require_exact(text: str) -> str:
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise PydanticCustomError("exact", "it is not an exact number: neither p/q nor a decimal") from None
    return text


def _require_share(text: str) -> str:
    if not 0 <= Fraction(_require_exact(text)) <= 1:
        raise PydanticCustomError("share", "it lies outside 0 to 1")
    return text


def _require_budget(text: str) -> str:
    return text if text == "inf" else _require_exact(text)


def _write_lowest(text: str, info: SerializationInfo) -> str:
    """Return the number in lowest terms; in a plan's own settings (mode python) the text stays as it is."""
    # pydantic shows defaults in the JSON schema as such a function writes them, unless it asks for ``info``
    return str(Fraction(text)) if info.mode == "json" else text


_LOWEST_TERMS = PlainSerializer(_write_lowest, when_used="json")
ExactText = Annotated[
    str, BeforeValidator(_write_number), AfterValidator(_require_exact)
]  # an exact number that receipts repeat as it is written
Exact = Annotated[ExactText, _LOWEST_TERMS]  # a text such as "1/20" or "0.05"; never a float
Share = Annotated[
    str, BeforeValidator(_write_number), AfterValidator(_require_share), _LOWEST_TERMS
]  # an exact number from 0 to 1
ExactOrInfinite = Annotated[str, BeforeValidator(_write_number), AfterValidator(_require_budget)]


def to_plan_values(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings of Python as a plan has them: lists for tuples, texts for paths.

    >>> to_plan_values({"tables": (("county", "tenure"),), "given": Path("packet")})
    {'tables': [['county', 'tenure']], 'given': 'packet'}
    """
    return {name: _to_plan_value(value) for name, value in settings.items()}


def _to_plan_value(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _to_plan_value(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_to_plan_value(item) for item in value]
    return value


def parse_settings(
    model: type[M],
    values: Mapping[str, object],
    *,
    what: str = "the settings",
    where: str = "",
    kind: type[InputError] = InputError,
    inexact: type[StirredError] | None = None,
) -> M:
    """Return the model of these values, or raise an error that says what is wrong in ``what``, why, and the fix.

    A number that is not exact raises ``inexact``, where that is given, and all else ``kind``.

    >>> class Settings(StrictModel):
    ...     area: str
    >>> parse_settings(Settings, {"aera": "county"}, what="the plan")
    Traceback (most recent call last):
    ...
    stirred.errors.InputError: the plan has an unknown key: aera (and 1 more)
      why: no setting has this name
      fix: did you mean area?
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        message, why, fix = _describe_problem(error, model, what, where)
        found = {problem["type"] for problem in error.errors(include_input=False)}
        raised = inexact if inexact is not None and found == {"exact"} else kind
        raise raised(message, why=why, fix=fix) from None


def _describe_problem(
    error: ValidationError, model: type[BaseModel], what: str, where: str
) -> tuple[str, str, str]:
    """Return what, why and fix of the first problem, with the number of the others."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    # a misspelt key is also a missing one: the misspelling helps more
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in first["loc"] if not isinstance(part, int)]
    path = ".".join(part for part in (where, *place) if part)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    inner, key = _find_model(model, place[:-1]), place[-1] if place else ""
    if first["type"] == "extra_forbidden":
        why = "no setting has this name"
        return f"{what} has an unknown key: {path}{more}", why, did_you_mean(key, inner.model_fields)
    if first["type"] == "missing":
        return (
            f"{what} lacks {path}{more}",
            "it has no default",
            f"add it: {key} = {write_example(inner, key)}",
        )
    named = next(
        (part for part in reversed(place) if part in inner.model_fields), key
    )  # a pair of it may be wrong
    return f"{what}'s {path} is not as it should be{more}", first["msg"], write_hint(inner, named)


def _find_model(model: type[BaseModel], place: list[str]) -> type[BaseModel]:
    """Return the model at a place inside another model."""
    for part in place:
        field = model.model_fields.get(part)
        if field is not None:
            inner = [a for a in (field.annotation, *get_args(field.annotation)) if isinstance(a, type)]
            model = next((a for a in inner if issubclass(a, BaseModel)), model)
    return model


def write_example(model: type[BaseModel], key: str) -> str:
    """Return an example of a field as TOML, or … where it has none."""
    field = model.model_fields.get(key)
    return "…" if field is None or not field.examples else write_toml(field.examples[0])


def write_hint(model: type[BaseModel], key: str) -> str:
    """Return the sentence of a field and an example, as a fix."""
    field = model.model_fields.get(key)
    if field is None or not field.description:
        return "see docs/reference/plan-toml.md"
    return f"{field.description}: {key} = {write_example(model, key)}"
