"""The key of a run: read from a file, or drawn and kept beside the packet."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import ClusterError, InputError, PrivacyError, StirredError

if TYPE_CHECKING:
    from stirred.chance import Key


def key_file(out: Path, given: str | None) -> Path:
    """Return the path of a run's key: as given, or OUT.key beside the packet."""
    return Path(given) if given else out.with_name(out.name + ".key")


@contextmanager
def clean_after_refusal(*paths: Path) -> Iterator[None]:
    """Delete the files made in the block after a refusal; keep them after an interruption."""
    made = [path for path in paths if not path.exists()]
    try:
        yield
    except ClusterError:
        raise
    except StirredError:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def is_rehearsal(out: Path, given: str | None) -> bool:
    """Return whether the key file holds a key for tests, whose packets are marked as not private."""
    from stirred.chance import Key

    path = key_file(out, given)
    return path.is_file() and path.stat().st_size > 0 and not Key.load(path).private


def rehearsal_key() -> "Key":
    """Return a key for tests for a run without any noise; it marks the packet as not private."""
    from stirred.chance import Key

    print(
        "a rehearsal without noise: the packet is marked as NOT PRIVATE and must not be published",
        file=sys.stderr,
    )
    return Key.for_tests(1)


def load_key(out: Path, given: str | None) -> "Key":
    """Load the key from its file, or create the file; refuse a file inside the packet."""
    from stirred.chance import Key

    path = key_file(out, given)
    part = out.with_name(out.name + ".part")
    # the packet's folder, and the one it is made in
    for folder in (out, part):
        if path.resolve().is_relative_to(folder.resolve()):
            raise PrivacyError(
                "the key would lie in the packet",
                why="whoever gets the packet could undo the noise",
                fix="choose another place for --key",
            )
    if path.is_file() and not path.stat().st_size and not part.exists():
        path.unlink()  # of a run that was killed before it had drawn a key
    if path.exists():
        return Key.load(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write the key {path.name}",
            why="its folder does not exist",
            fix="make the folder first, or choose another --key",
        )
    if part.exists():
        raise PrivacyError(
            f"{part.name} was begun with a key that is not there",
            why=f"an interrupted run is taken up with its own key, and there is no {path.name}",
            fix=f"give the key with --key, or delete the folder {part.name}",
        )
    key = Key.fresh()
    key.save(path)
    print(
        f"the key of this run is in {path}: whoever has it can undo the noise. Keep it as you keep the census, or destroy "
        "it once the packet is final.",
        file=sys.stderr,
    )
    return key
