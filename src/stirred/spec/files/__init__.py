"""spec.json: a specification as a versioned file that is read back without loss."""

from stirred.spec.files.document import (
    FORMAT,
    VERSION,
    Json,
    digest,
    dumps,
    from_json,
    load,
    register,
    save,
    schema,
    to_json,
)

__all__ = [
    "FORMAT",
    "VERSION",
    "Json",
    "digest",
    "dumps",
    "from_json",
    "load",
    "register",
    "save",
    "schema",
    "to_json",
]
