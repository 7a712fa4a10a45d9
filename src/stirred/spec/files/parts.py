"""The parts of a specification as JSON and back: domains, invariants, premetrics, and registered classes from outside.

A part of one's own (a frozen dataclass that subclasses `Invariant`, `InputPremetric` or `OutputPremetric`) is written by
its registered kind with its fields; fields may be text, whole numbers, fractions, margins, and tuples of these.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, TypeVar

from stirred.errors import InputError, did_you_mean
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable
from stirred.spec.multiverse import AtLeast, Custom, Margin, Restriction
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.numerals import parse_fraction, write_fraction
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi
from stirred.spec.premetrics import Hamming, SymmetricDifference

Json = Any
T = TypeVar("T")

CLASS_BY_KIND: dict[str, type[Any]] = {
    "margin": Margin,
    "at-least": AtLeast,
    "declared": Custom,
    "hamming": Hamming,
    "symmetric-difference": SymmetricDifference,
    "neighbours": Neighbours,
    "multiplicative": Multiplicative,
    "normalized-renyi": NormalizedRenyi,
    "approximate": Approximate,
}
_INNER_CLASSES: tuple[type[Any], ...] = (Variable, RecordType, Dependency, Constraint)


def register(kind: str, part: type[T]) -> type[T]:
    """Register a class of your own, so that spec.json can hold it under this kind."""
    if not is_dataclass(part):
        raise InputError(
            f"cannot write {part.__name__} into spec.json",
            why="it is not a dataclass, so its fields are not known",
            fix="decorate it with @dataclass(frozen=True)",
        )
    if (
        CLASS_BY_KIND.get(kind, part).__qualname__ != part.__qualname__
    ):  # the same class, loaded again, may come back
        raise InputError(
            f"cannot register {part.__name__} as {kind!r}",
            why=f"{kind!r} already stands for {CLASS_BY_KIND[kind].__name__}",
            fix="choose another kind",
        )
    CLASS_BY_KIND[kind] = part
    return part


def part_to_json(part: object) -> Json:
    """Return a part as JSON, with its kind and its fields.

    >>> part_to_json(Hamming("household"))
    {'kind': 'hamming', 'record_type': 'household', 'link': 'kept', 'copies': 1}
    """
    for kind, known in CLASS_BY_KIND.items():
        if type(part) is known:
            return {
                "kind": kind,
                **_fields_to_json(part),
            }
    raise InputError(
        f"cannot write {type(part).__name__} into spec.json",
        why="its kind is not known",
        fix=f'stirred.spec.files.register("{type(part).__name__.lower()}", {type(part).__name__})',
    )


def part_from_json(document: Json, expected: type[T]) -> T:
    """Read a part of the expected class from its JSON document."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in CLASS_BY_KIND:
        raise InputError(
            f"spec.json holds a part of unknown kind {kind!r}",
            why="no class is registered for it",
            fix=did_you_mean(str(kind), CLASS_BY_KIND)
            + "; register a class of your own before you read the file",
        )
    part = CLASS_BY_KIND[kind]
    if not issubclass(part, expected):
        raise InputError(
            f"spec.json has a {kind} where it needs a {expected.__name__}",
            why=f"{part.__name__} is not a kind of {expected.__name__}",
            fix="write the file anew with stirred.spec.files.save",
        )
    return _build(part, {key: value for key, value in document.items() if key != "kind"})


def value_to_json(value: object) -> Json:
    """Return the value of a field as JSON."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Fraction):
        return {"fraction": write_fraction(value)}
    if isinstance(value, tuple):
        return [item if type(item) is str else value_to_json(item) for item in value]
    if isinstance(value, Restriction):
        return {"where": {name: list(values) for name, values in value.conditions}}
    if type(value) in CLASS_BY_KIND.values():
        return part_to_json(value)
    for known in _INNER_CLASSES:
        if type(value) is known:
            return _fields_to_json(value)
    raise InputError(
        f"cannot write a {type(value).__name__} into spec.json",
        why="spec.json has no exact form for it",
        fix="use text, whole numbers, fractions, margins and tuples of these",
    )


def _fields_to_json(part: Any) -> dict[str, Json]:
    return {field.name: value_to_json(getattr(part, field.name)) for field in fields(part)}


def _value_from_json(value: Json) -> object:
    if isinstance(value, list):
        return tuple(_value_from_json(item) for item in value)
    if isinstance(value, dict):
        if set(value) == {"fraction"}:
            return parse_fraction(value["fraction"], "number")
        if set(value) == {"where"}:
            return Restriction.of(value["where"])
        return part_from_json(value, object)
    return value


def _build(part: type[T], values: Mapping[str, Json]) -> T:
    known = {field.name for field in fields(part)}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise InputError(
                f"spec.json gives {part.__name__} a field {key!r} it does not have",
                why=f"its fields are {', '.join(sorted(known))}",
                fix=did_you_mean(key, known),
            )
    return part(**{key: _value_from_json(value) for key, value in values.items()})


def domain_to_json(domain: Domain) -> dict[str, Json]:
    """Return a complete domain as JSON."""
    return _fields_to_json(domain)


def domain_from_json(document: Mapping[str, Json]) -> Domain:
    """Read a domain from its JSON document."""
    values = dict(document)
    record_types = tuple(
        RecordType(
            name=kind["name"], variables=tuple(_build(Variable, variable) for variable in kind["variables"])
        )
        for kind in values.pop("record_types", ())
    )
    dependencies = tuple(_build(Dependency, rule) for rule in values.pop("dependencies", ()))
    constraints = tuple(_build(Constraint, rule) for rule in values.pop("constraints", ()))
    rest = {key: _value_from_json(value) for key, value in values.items()}
    return Domain(record_types=record_types, dependencies=dependencies, constraints=constraints, **rest)  # type: ignore[arg-type]
