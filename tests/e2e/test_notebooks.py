"""The notebooks of examples/notebooks run on small censuses and write their pictures."""

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples/notebooks").glob("*.py"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STIRRED_HOUSEHOLDS", "150")
    runpy.run_path(str(notebook), run_name="__main__")
    (picture,) = (tmp_path / "pictures").glob("*.svg")
    assert picture.read_text().startswith("<svg")
    assert capsys.readouterr().out


def test_there_are_five_with_cells_and_words() -> None:
    assert len(NOTEBOOKS) == 5
    for notebook in NOTEBOOKS:
        text = notebook.read_text()
        assert text.startswith("# %% [markdown]\n# # ")
        assert text.count("# %%") >= 5
