"""Refuse arguments of the wrong type before anything is read, with the words that would be right."""

from pathlib import Path

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import InputError, require_kind


def require_inputs(census: object, engine: object) -> None:
    """Refuse what is not a census (a path, a table), and what cannot run a mechanism (the name of an engine)."""
    path = isinstance(census, str | Path)
    fix = (
        'read it first: st.read("census.toml")'
        if path
        else "make one of tables: st.Census.of(schema, tables)"
    )
    require_kind("census", census, Census, wanted="a Census", fix=fix)
    if engine is not None and not all(
        hasattr(engine, name) for name in ("map", "fits", "census", "exchange")
    ):
        raise InputError(
            "engine is not an engine",
            why=f"it is of type {type(engine).__name__}",
            fix="engine=st.Local(), or st.Spark(session); nothing is this machine",
        )


def require_key(key: object) -> None:
    """Refuse what is not a key: a seed, a text, nothing."""
    require_kind(
        "key",
        key,
        Key,
        wanted="a Key",
        fix="key=st.Key.fresh(), or st.Key.for_tests(1) for what is not published",
    )


def check_inputs(census: Census, key: Key, engine: Engine | None) -> Census:
    """Check census, key and engine, and return the census with its records checked against the schema."""
    require_inputs(census, engine)
    require_key(key)
    return census.check()
