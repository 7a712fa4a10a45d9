"""A kernel on disk is compiled again when anything in it has changed, also in another file."""

import importlib
import sys
from pathlib import Path

import pytest

from stirred.kernels import list_dependencies

INNER = """
from stirred.kernels import compile_kernel

@compile_kernel
def inner(x):
    return x + {more}
"""
OUTER = """
from inner_of_test import inner
from numbers_of_test import TIMES

from stirred.kernels import compile_kernel

@compile_kernel
def outer(x):
    return inner(x) * TIMES
"""


def loaded(folder: Path, *, more: int = 1, times: int = 2) -> object:
    """The module of the outer kernel, from files with these numbers; unchanged files are not written again."""
    texts = {
        "inner_of_test": INNER.format(more=more),
        "numbers_of_test": f"TIMES = {times}\n",
        "outer_of_test": OUTER,
    }
    for name, text in texts.items():
        path = folder / f"{name}.py"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("outer_of_test")


def test_a_changed_callee_or_number_is_compiled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # Python's own caches tell files apart by the second
    assert loaded(tmp_path).outer(3) == 8  # type: ignore[attr-defined]
    again = loaded(tmp_path).outer  # type: ignore[attr-defined]
    assert again(3) == 8
    assert sum(again.stats.cache_hits.values()) == 1  # the cache is used
    assert loaded(tmp_path, more=10).outer(3) == 26  # type: ignore[attr-defined]
    assert loaded(tmp_path, more=10, times=30).outer(3) == 390  # type: ignore[attr-defined]


def test_a_cache_that_names_a_type_of_before_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = (
        "from typing import NamedTuple\n\nfrom stirred.kernels import compile_kernel\n\n"
        "class {name}(NamedTuple):\n    value: int\n\n@compile_kernel\ndef read(box):\n    return box.value\n"
    )
    for name in ("Box", "Chest"):  # an upgrade in place: the caches of before lie beside the new files
        (tmp_path / "boxes_of_test.py").write_text(text.format(name=name), encoding="utf-8")
        sys.modules.pop("boxes_of_test", None)
        importlib.invalidate_caches()
        boxes = importlib.import_module("boxes_of_test")
        assert boxes.read(getattr(boxes, name)(7)) == 7
    assert list(tmp_path.rglob("*.nbi"))  # there was a cache


def test_a_stamp_names_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    outer = loaded(tmp_path).outer.__wrapped__  # type: ignore[attr-defined]
    found = " ".join(list_dependencies(outer))
    assert all(name in found for name in ("inner_of_test.py", "outer_of_test.py", "kernels.py", "TIMES = 2"))
