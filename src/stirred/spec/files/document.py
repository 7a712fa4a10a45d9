"""Write a specification as spec.json, a versioned file, and read it back without loss."""

import errno
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, TypeVar

from stirred.errors import InputError, StirredError, did_you_mean
from stirred.spec.budgets import Bound, Budget
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable
from stirred.spec.exact import parse_fraction, write_fraction
from stirred.spec.input_premetrics import (
    Exchanges,
    Hamming,
    InputPremetric,
    Neighbours,
    SymmetricDifference,
)
from stirred.spec.invariants import AtLeast, Custom, Invariant, Margin, Restriction
from stirred.spec.laws import LargestStratum, SizeLaw
from stirred.spec.multiverse import Multiverse
from stirred.spec.output_premetrics import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.specification import Specification
from stirred.spec.statement import BudgetFunction, Evidence, Part
from stirred.text_formats import parse_json, read_plain_text

# Write JSON with one value a line: Python's own writer takes a second for a domain of a hundred thousand codes.


def write_indented(value: Any, margin: str = "\n") -> str:
    """Write what ``json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)`` writes; keys are texts.

    >>> print(write_indented({"b": [1, "ü"], "a": []}))
    {
      "a": [],
      "b": [
        1,
        "ü"
      ]
    }
    """
    inner = margin + "  "
    if isinstance(value, dict) and value:
        pairs = [f"{encode_basestring(key)}: {write_indented(value[key], inner)}" for key in sorted(value)]
        return "{" + inner + f",{inner}".join(pairs) + margin + "}"
    if isinstance(value, list) and value:
        items = [encode_basestring(one) if type(one) is str else write_indented(one, inner) for one in value]
        return "[" + inner + f",{inner}".join(items) + margin + "]"
    return json.dumps(value, ensure_ascii=False)


# The parts of a specification as JSON and back: domains, invariants, premetrics, and registered classes from outside.
#
# A part of one's own (a frozen dataclass that subclasses `Invariant`, `InputPremetric` or `OutputPremetric`) is written
# by its registered kind with its fields; fields may be text, whole numbers, fractions, margins, and tuples of these.

Json = Any
T = TypeVar("T")

CLASS_BY_KIND: dict[str, type[Any]] = {
    "margin": Margin,
    "at-least": AtLeast,
    "declared": Custom,
    "hamming": Hamming,
    "symmetric-difference": SymmetricDifference,
    "exchanges": Exchanges,
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


OPTIONAL_FIELDS = frozenset({"keeps_with"})  # written only where they say something: older files lack them


def _fields_to_json(part: Any) -> dict[str, Json]:
    written = [
        field.name
        for field in fields(part)
        if field.name not in OPTIONAL_FIELDS or getattr(part, field.name) != field.default
    ]
    return {name: value_to_json(getattr(part, name)) for name in written}


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


# Budget functions as JSON and back: the law of b with exact rates, and the statistic b.


def function_to_json(function: BudgetFunction | None) -> Json:
    """Return a budget function as JSON; absent fields are left out.

    >>> function = BudgetFunction(law=SizeLaw("by-size", "1/20"), b=9)
    >>> function_to_json(function)["law"], function_from_json(function_to_json(function)) == function
    ({'kind': 'by-size', 'rate': '1/20', 'highest': '1/20'}, True)
    """
    if function is None:
        return None
    found: dict[str, Json] = {
        "words": function.words,
        "universe": function.universe,
        "least": function.least.to_json(),
        "most": function.most.to_json(),
    }
    if function.law is not None:
        law = function.law
        found["law"] = {
            "kind": law.kind,
            "rate": write_fraction(law.rate),
            "highest": write_fraction(law.highest),
        }
    if function.statistic is not None:
        found["statistic"] = _statistic(function.statistic)
    if function.b is not None:
        found["b"] = function.b
    if function.realised:
        found["realised"] = function.realised
    return found


def function_from_json(document: Json) -> BudgetFunction | None:
    """Read a budget function from its JSON document; older files have words and no law."""
    if document is None:
        return None
    law, statistic = document.get("law"), document.get("statistic")
    return BudgetFunction(
        words=document["words"],
        universe=document["universe"],
        least=Budget.from_json(document["least"]),
        most=Budget.from_json(document["most"]),
        law=None if law is None else SizeLaw(law["kind"], law["rate"], law["highest"]),
        statistic=None if statistic is None else _statistic_from(statistic),
        b=document.get("b"),
        realised=document.get("realised", ""),
    )


def _statistic(statistic: LargestStratum) -> Json:
    return {
        "kind": "largest-stratum",
        "record_type": statistic.record_type,
        "match": list(statistic.match),
        "hold": list(statistic.hold),
        "swap": list(statistic.swap),
        "where": None if statistic.where is None else _restriction(statistic.where),
        "without": [_restriction(restriction) for restriction in statistic.without],
    }


def _restriction(restriction: Restriction) -> Json:
    return {name: list(values) for name, values in restriction.conditions}


def _statistic_from(document: Json) -> LargestStratum:
    return LargestStratum(
        document["record_type"],
        document["match"],
        document["hold"],
        document["swap"],
        document["where"],
        document["without"],
    )


# spec.json: a specification as a versioned file that is read back without loss.
#
# Budgets are exact strings ({"kind": "log", "of": "5022308"}), never floats. A file of another version is refused, and
# a file that cannot be read gives one error that says where. The JSON Schema is shipped beside this module.

FORMAT = "stirred-specification"
VERSION = 1
_EXPORT_HINT = "write one with: stirred spec export NAME --spec --out spec.json"


@cache
def schema() -> Mapping[str, Json]:
    """Return the JSON Schema of spec.json, version 1."""
    text = (files("stirred.spec.files") / "spec.schema.json").read_text(encoding="utf-8")
    document: dict[str, Json] = json.loads(text)
    return document


def to_json(specification: Specification) -> dict[str, Json]:
    """Return the complete specification as a JSON document.

    >>> from stirred.spec import Domain, Hamming, Multiplicative
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.log(3))
    >>> to_json(spec)["budget"], from_json(to_json(spec)) == spec
    ({'kind': 'log', 'of': '3'}, True)
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "domain": domain_to_json(specification.domain),
        "invariants": [part_to_json(invariant) for invariant in specification.multiverse],
        "input_premetric": part_to_json(specification.input_premetric),
        "output_premetric": part_to_json(specification.output_premetric),
        "budget": specification.budget.to_json(),
        "evidence": {"status": specification.evidence.status, "source": specification.evidence.source},
        "bounds": [
            {
                "name": bound.name,
                "budget": bound.budget.to_json(),
                "status": bound.status,
                "source": bound.source,
                "tight": bound.tight,
            }
            for bound in specification.bounds
        ],
        "untouched": list(specification.untouched),
        "notes": list(specification.notes),
        "parts": [_part(part) for part in specification.parts],
        "varies": function_to_json(specification.varies),
        **_measures(specification.measures),
        **_measures(specification.released, "released"),
    }


def from_json(document: Json) -> Specification:
    """Read a specification from its JSON document; an error names the place that cannot be read."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError("this is no spec.json", why=f'it lacks "format": "{FORMAT}"', fix=_EXPORT_HINT)
    if document.get("version") != VERSION:
        raise InputError(
            f"cannot read version {str(document.get('version'))[:20]} of spec.json",
            why=f"this program reads version {VERSION}",
            fix="use the release of stirred that wrote the file, or export it again",
        )
    try:
        json.dumps(document, ensure_ascii=False).encode()  # half a character cannot be written again
        _validate(document)
        return _specification(document)
    except StirredError:
        raise
    except RecursionError:
        raise InputError(
            "cannot read this spec.json", why="it is nested too deeply", fix=_EXPORT_HINT
        ) from None
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(
            "cannot read this spec.json",
            why=f"its parts do not fit together: {error}",
            fix=_EXPORT_HINT,
        ) from None


def _specification(document: Mapping[str, Json]) -> Specification:
    return Specification(
        domain=domain_from_json(document["domain"]),
        multiverse=Multiverse.of(
            *(part_from_json(invariant, Invariant) for invariant in document["invariants"])
        ),
        input_premetric=part_from_json(document["input_premetric"], InputPremetric),
        output_premetric=part_from_json(document["output_premetric"], OutputPremetric),
        budget=Budget.from_json(document["budget"]),
        evidence=Evidence(**document["evidence"]),
        bounds=tuple(
            Bound(**{**bound, "budget": Budget.from_json(bound["budget"])}) for bound in document["bounds"]
        ),
        untouched=tuple(document["untouched"]),
        notes=tuple(document["notes"]),
        parts=tuple(
            Part(
                input_premetric=part_from_json(part["input_premetric"], InputPremetric),
                output_premetric=part_from_json(part["output_premetric"], OutputPremetric),
                budget=Budget.from_json(part["budget"]),
                source=part["source"],
                varies=function_from_json(part["varies"]),
                multiverse=_multiverse_from(part.get("invariants")),
                measures=_measures_from(part),
            )
            for part in document["parts"]
        ),
        varies=function_from_json(document["varies"]),
        measures=_measures_from(document),
        released=_measures_from(document, "released"),
    )


def _part(part: Part) -> Json:
    return {
        "input_premetric": part_to_json(part.input_premetric),
        "output_premetric": part_to_json(part.output_premetric),
        "budget": part.budget.to_json(),
        "source": part.source,
        "varies": function_to_json(part.varies),
        "invariants": None
        if part.multiverse is None
        else [part_to_json(invariant) for invariant in part.multiverse],
        **_measures(part.measures),
    }


def _measures(tables: tuple[Margin, ...], name: str = "measures") -> dict[str, Json]:
    return {name: [part_to_json(table) for table in tables]} if tables else {}


def _measures_from(document: Json, name: str = "measures") -> tuple[Margin, ...]:
    return tuple(part_from_json(table, Margin) for table in document.get(name, ()))


def _multiverse_from(document: Json) -> Multiverse | None:
    if document is None:
        return None
    return Multiverse.of(*(part_from_json(invariant, Invariant) for invariant in document))


@cache
def _validator() -> Any:
    """Return the validator of spec.json; it checks a long list of texts in one step, because trees are large."""
    from jsonschema import Draft202012Validator, validators

    each = Draft202012Validator.VALIDATORS["items"]

    def items(validator: Any, wanted: Any, found: Any, rules: Any) -> Iterator[Any]:
        texts = wanted == {"type": "string"} and "prefixItems" not in rules and isinstance(found, list)
        if not (texts and all(type(one) is str for one in found)):
            yield from each(validator, wanted, found, rules)

    return validators.extend(Draft202012Validator, {"items": items})(schema())


def _validate(document: Json) -> None:
    problems = sorted(_validator().iter_errors(document), key=lambda problem: list(map(str, problem.path)))
    if problems:
        first = problems[0]
        place = "/".join(map(str, first.absolute_path)) or "the top"
        raise InputError(
            "cannot read this spec.json",
            why=f"at {place}: {first.message[:200]}"
            + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""),
            fix="see docs/reference/spec-json.md, or export the specification again",
        )


def dumps(specification: Specification) -> str:
    """Return the text of spec.json; equal specifications give the same bytes."""
    return write_indented(to_json(specification)) + "\n"


def digest(specification: Specification) -> str:
    """Return the SHA-256 of the bytes of spec.json, which other documents cite."""
    return hashlib.sha256(dumps(specification).encode()).hexdigest()


_FILE_ERRORS = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.EINVAL,
)


def save(specification: Specification, path: Path | str) -> Path:
    """Write spec.json."""
    target = Path(path)
    try:
        target.write_text(dumps(specification), encoding="utf-8")
    except OSError as error:
        if error.errno not in _FILE_ERRORS:
            raise  # a full disk or a limit of the system says nothing about the file that was named
        raise InputError(
            f"cannot write {target.name}",
            why=error.strerror or "unknown reason",
            fix="name a file that can be written",
        ) from None
    return target


def load(path: Path | str) -> Specification:
    """Read spec.json; an unreadable file gives one error."""
    source = Path(path)
    try:
        text = read_plain_text(source)
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            "it is not text"
            if isinstance(error, UnicodeDecodeError)
            else (error.strerror or "unknown reason")
        )
        raise InputError(f"cannot read {source.name}", why=reason, fix=_EXPORT_HINT) from None
    try:
        document = parse_json(text)
    except ValueError as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"cannot read {source.name}", why=f"it is no JSON: {place}", fix=_EXPORT_HINT
        ) from None
    return from_json(document)
