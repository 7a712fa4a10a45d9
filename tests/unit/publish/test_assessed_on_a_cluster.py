"""A packet held against the truth on a cluster that fails: that fault is raised, and no measure is unknown for it."""

from pathlib import Path

import pytest

from small_town import write_town
from stirred import Key, Packet, load, read, run
from stirred.errors import ClusterError, StirredError
from stirred.publish.assessment import assess_packet

PLAN = """title = "Town"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["size"]
swap = ["block"]
rate = "1/10"
"""
STEPS = [
    ("stirred.publish.assessment.attack", "attack"),
    ("stirred.publish.assessment.rebuild_from_tables", "attack"),
    ("stirred.publish.assessment.invert_swap", "attack"),
    ("stirred.assess.universe.measure_universe", "universe"),
    ("stirred.assess.universe.measures.build_shape", "universe"),
]


@pytest.fixture(scope="module")
def packet(tmp_path_factory: pytest.TempPathFactory) -> Packet:
    home = tmp_path_factory.mktemp("assessed")
    write_town(home, households=60)
    (home / "plan.toml").write_text(PLAN)
    return run(load(home / "plan.toml"), home / "packet", key=Key.for_tests(3))


@pytest.mark.parametrize(("step", "doubt"), STEPS)
def test_a_cluster_that_fails_leaves_no_unknown_measure(
    packet: Packet, step: str, doubt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = read(Path(packet.folder).parent)
    said: list[type[StirredError]] = [StirredError]

    def lose(*_: object, **__: object) -> None:
        raise said[0]("lost", why="a test", fix="none")

    monkeypatch.setattr(step, lose)
    assess_packet(packet, truth, only=[doubt])  # type: ignore[list-item]  # any other error is a measure that is unknown
    said[0] = ClusterError
    with pytest.raises(ClusterError, match="lost"):
        assess_packet(packet, truth, only=[doubt])  # type: ignore[list-item]
