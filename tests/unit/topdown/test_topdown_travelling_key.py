"""Keys that travel to workers: the one that digests the census is no parent of any noise."""

from dataclasses import dataclass
from typing import Any

import pytest

from contract.registry import WORKLOAD
from contract.test_contract import census
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.run import release as release_module
from stirred.mechanisms.topdown.run import release as running


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(Local):
    """An engine on which nothing fits."""

    def fits(self, size: int) -> bool:
        return False


def test_what_digests_cannot_make_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    survey, measured = running.SubtreeSurvey, release_module.BatchMeasurements

    def surveying(plan: Any, key: Key) -> Any:
        seen["reader"] = key
        return survey(plan, key)

    def measuring(**fields: Any) -> Any:
        seen["noise"] = fields["key"]
        return measured(**fields)

    monkeypatch.setattr(running, "SubtreeSurvey", surveying)
    monkeypatch.setattr(release_module, "BatchMeasurements", measuring)
    key = Key.for_tests(4)
    mechanism = TopDown(workload=Workload.parse(WORKLOAD), replicates=0)
    release = mechanism.release(census(120), key=key, engine=Narrow())
    parents: list[bytes] = []
    bind = Key.bind

    def bound(own: Key, *context: Any) -> Key:
        made = bind(own, *context)
        if made._secret == seen["noise"]._secret:
            parents.append(own._secret)
        return made

    monkeypatch.setattr(Key, "bind", bound)
    again = mechanism.release(census(120), key=key, engine=Narrow())
    assert again.tables.keys() == release.tables.keys()
    assert parents, "the noise has a parent"
    assert seen["reader"]._secret not in parents
    assert seen["reader"]._secret != seen["noise"]._secret
