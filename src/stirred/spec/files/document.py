"""spec.json: a specification as a versioned file that is read back without loss.

Budgets are exact strings ({"kind": "log", "of": "5022308"}), never floats. A file of another version is refused, and a
file that cannot be read gives one error that says where. The JSON Schema is shipped beside this module.
"""

import errno
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from stirred.errors import InputError, StirredError
from stirred.spec.algebra.statement import Evidence, Part
from stirred.spec.files.functions import function_from_json, function_to_json
from stirred.spec.files.parts import (
    domain_from_json,
    domain_to_json,
    part_from_json,
    part_to_json,
    register,
)
from stirred.spec.files.text import write_indented
from stirred.spec.multiverse import Invariant, Margin, Multiverse
from stirred.spec.numbers.budget import Bound, Budget
from stirred.spec.outputs.divergences import OutputPremetric
from stirred.spec.premetrics import InputPremetric
from stirred.spec.specification import Specification
from stirred.toml_text import parse_json, read_plain_text

FORMAT = "stirred-specification"
VERSION = 1
Json = Any
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


__all__ = ["VERSION", "digest", "dumps", "from_json", "load", "register", "save", "schema", "to_json"]
