"""The workloads that come with Stirred, as TOML texts."""

from importlib import resources

PRESET_FOLDER = resources.files("stirred.mechanisms.topdown") / "presets"


def presets() -> tuple[str, ...]:
    """Return the names of the workloads that come with Stirred.

    >>> "pl94-persons" in presets()
    True
    """
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in PRESET_FOLDER.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def read_preset(name: str) -> str:
    """Return the text of a preset."""
    return (PRESET_FOLDER / f"{name}.toml").read_text("utf8")
