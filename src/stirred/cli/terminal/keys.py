"""Where a run's key comes from: a file, or a fresh one kept beside the packet."""

import sys
from pathlib import Path

from stirred.chance import Key
from stirred.errors import PrivacyError


def key_for(out: Path, given: str | None) -> Key:
    """The key in ``given`` (made there if absent), or in OUT.key beside the packet; never inside it."""
    path = Path(given) if given else out.with_name(out.name + ".key")
    # the packet's folder, and the one it is made in
    for folder in (out, out.with_name(out.name + ".part")):
        if path.resolve().is_relative_to(folder.resolve()):
            raise PrivacyError(
                "the key would lie in the packet",
                why="whoever gets the packet could undo the noise",
                fix="choose another place for --key",
            )
    if path.exists():
        return Key.load(path)
    key = Key.fresh()
    key.save(path)
    print(
        f"the key of this run is in {path}: whoever has it can undo the noise. Keep it as you keep the census, or destroy "
        "it once the packet is final.",
        file=sys.stderr,
    )
    return key
