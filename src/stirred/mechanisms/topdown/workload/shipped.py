"""The workloads that come with Stirred, as TOML texts."""

from importlib import resources

PRESETS = resources.files("stirred.mechanisms.topdown") / "presets"


def presets() -> tuple[str, ...]:
    """The names of the workloads that come with Stirred.

    >>> "pl94-persons" in presets()
    True
    """
    return tuple(
        sorted(
            entry.name.removesuffix(".toml") for entry in PRESETS.iterdir() if entry.name.endswith(".toml")
        )
    )


def preset_text(name: str) -> str:
    """The text of a preset."""
    return (PRESETS / f"{name}.toml").read_text("utf8")
