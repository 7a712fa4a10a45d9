"""The mechanism that made a release, from what the release says of it."""

from stirred.errors import InputError, StirredError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import parsed
from stirred.mechanisms.registry import find
from stirred.mechanisms.release import Release


def mechanism_of(release: Release) -> Mechanism:
    """The mechanism with the settings of a release; refused where settings made in Python cannot be stated again."""
    kind = find(release.mechanism)
    settings = release.settings or {
        name: value for name, value in release.parameters.items() if name in kind.Config.model_fields
    }
    try:
        return kind.of(parsed(kind.Config, settings))
    except StirredError:
        raise InputError(
            f"the {release.mechanism} of this release cannot be made again",
            why="a setting was made in Python, or a file that a setting names is not here",
            fix="give the mechanism beside the release",
        ) from None
