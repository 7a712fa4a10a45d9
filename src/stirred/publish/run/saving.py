"""A release that was made in Python, as the packet that its plan would give."""

from dataclasses import replace
from pathlib import Path

from stirred.engine import Engine, Local, silent
from stirred.errors import require_kind, require_path
from stirred.mechanisms.base import Release
from stirred.mechanisms.released import require_schema
from stirred.publish.before.promise import join_promises
from stirred.publish.before.refusals import require_effects, require_finite, require_kept, require_room
from stirred.publish.packet.checksums import PUBLIC
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.writing import CENSUS, plan_of_release
from stirred.publish.run.files import locate_release, store
from stirred.publish.run.lock import hold_lock
from stirred.publish.run.part import write_whole
from stirred.publish.run.writer import PacketContent, data_folder, write_packet


def save(
    release: Release,
    out: str | Path,
    *,
    title: str = "",
    census: str = CENSUS,
    engine: Engine | None = None,
    internal: bool = True,
    accept_small_effect: str = "",
) -> Packet:
    """Write a packet at ``out``, whole or not at all; the key is never part of it.

    The packet has the plan that the release's settings describe; ``census`` is the file name that the plan gives to the
    census. ``accept_small_effect`` is the reason for publishing a release that is expected to be nearly the truth; without
    one it is refused. With ``internal`` what the mechanism tells the office alone lies in the internal part, where it
    tells anything.
    """
    require_kind(
        "what is saved",
        release,
        Release,
        wanted="a Release",
        fix="st.save(mechanism.release(census, key=key), out)",
    )
    require_path("out", out, fix='st.save(release, "packet")')
    out = Path(out)
    require_room(out)
    require_kept([release])
    require_finite(release.specification, str(release.settings.get("without_guarantee", "")))
    schema = require_schema(release)
    plan = plan_of_release(
        release, release.folder or Path(), census=census, title=title, accept_small_effect=accept_small_effect
    )
    promise = replace(join_promises(plan, [release.specification]), effects=(release.effect,))
    promise = require_effects(plan, promise, rehearsal=not release.private)
    with hold_lock(out), write_whole(out, "save", closed=False) as part:
        place = part / PUBLIC / data_folder(plan, 0)
        place.parent.mkdir()
        store(release, place)
        content = PacketContent(
            plan=plan,
            schema=schema,
            specification=promise.whole,
            releases=(locate_release(release, place),),
            engine=engine or Local(),
            promise=promise,
        )
        write_packet(content, part, progress=silent, internal=internal)
    return Packet(out)
