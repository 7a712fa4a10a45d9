"""The steps of a run after the census was counted: measure every set, and hold the tables against each other."""

from collections.abc import Mapping as Table
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Progress
from stirred.languages import Phrase
from stirred.mechanisms.release import Check
from stirred.mechanisms.safetab.codes import CodeLists
from stirred.mechanisms.safetab.groups import GroupCounts, GroupSet, Tally
from stirred.mechanisms.safetab.persons import output
from stirred.mechanisms.safetab.persons.apportionment import Apportionment
from stirred.mechanisms.safetab.persons.measure import MeasuredGroups, Stages, measure_groups


def encode_counts(tally: Tally, counts: Sequence[GroupCounts]) -> list[bytes]:
    """Return everything a run read of the census as bytes: the regions of every set, and its counts."""
    found = []
    for item, some in zip(tally.sets, counts, strict=True):
        named = repr((item.kind, item.level, item.regions)).encode()
        found += [named, some.keys.tobytes(), some.counts.tobytes()]
    return found


def measure_sets(
    sets: Sequence[GroupSet],
    counts: Sequence[GroupCounts],
    here: Apportionment,
    lists: CodeLists,
    key: Key,
    say: Progress,
) -> list[tuple[GroupSet, Stages, MeasuredGroups]]:
    """Return every set with its noise and what is published of it."""
    lines = {(line.kind, line.level): line for line in here.lines}
    found = []
    for place, (item, some) in enumerate(zip(sets, counts, strict=True)):
        say("measure", place, len(sets))
        stages = here.stages(lines[item.kind, item.level])
        shown = lists.list_iterations(item.level, fine=item.kind.fine)
        detailed = np.array([number for number, one in enumerate(shown) if one.detailed_only], np.int64)
        found.append((item, stages, measure_groups(item, some, detailed, stages, key)))
    say("measure", len(sets), len(sets))
    return found


def check_agreement(tables: Table[str, pa.Table]) -> Check:
    """Check that T1 has the sum of all cells of every group in T2."""
    sums = output.sum_groups(output.to_frame(tables["t2"]))
    totals = output.to_frame(tables["t1"]).select(*output.T1, "count")
    joined = sums.join(totals, on=list(output.T1), how="left")
    kept = bool((joined["count"] == joined["sum"]).fill_null(False).all())
    return Check(invariant=Phrase("safetab.check"), kept=kept, numbers=sums.height)
