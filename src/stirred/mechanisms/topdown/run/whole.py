"""Count a census that fits in memory: the whole tree is held by this process, and nothing lies below it."""

import numpy as np

from stirred.chance import Key
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.rules.agreement import agreement
from stirred.mechanisms.topdown.rules.checks import compiled_rules, equalities
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.run import digest
from stirred.mechanisms.topdown.run.above import Above
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import Sparse, histograms
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.tree.leaves import leaf_table
from stirred.mechanisms.topdown.tree.splits import split, with_entities


def whole(task: Task) -> Above:
    """The tree of a census with its histograms and constraints; raises an error if a constraint cannot hold."""
    census, workload, settings = task.census, task.workload, task.settings
    geography = leaf_table(census, workload)
    spine = published = Tree.of(geography, census.schema.spine, root=workload.levels[0])
    if settings.spine:
        beside = [name for name in settings.spine.entities if name not in census.schema.spine]
        geography = with_entities(census, geography, beside)
        geography, levels, workload = split(settings.spine, geography, census.schema.spine, workload)
        spine = Tree.of(geography, levels, root=workload.levels[0])
    truth = histograms(census, workload, spine)
    allotment = Allotment.of(spine, workload, bypass=settings.bypass)
    earlier = None
    if workload.given and task.given is not None:
        earlier = agreement(census, workload, spine, task.given)
    constraints = compiled_rules(census, workload, spine, truth, earlier)
    return Above(
        depth=len(spine.levels) - 1,
        height=len(published.levels),
        spine=spine,
        published=published,
        truth=truth,
        allotment=allotment,
        constraints=constraints,
        equal=equalities(constraints, len(spine.levels), range(len(spine.levels))),
        offsets=np.zeros((0, len(spine.levels)), np.int64),
        input_digest=input_digest(digest.reader(task.key), spine, truth[-1], constraints),
    )


def input_digest(reader: Key, spine: Tree, leaves: Sparse, constraints: Constraints) -> bytes:
    """A keyed digest of all that is read: records by leaf, the tree above them with its codes, the bounds that hold."""
    names = [held.name for held in constraints.held]
    return digest.whole(reader, spine.levels, names, digest.climbed(reader, spine, constraints, leaves))
