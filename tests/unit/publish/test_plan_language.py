"""A plan's language: card and public report follow it; released data and files for programs do not."""

import re
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import PlanError
from stirred.publish import load, parse, run
from stirred.publish.plan.description import with_language
from stirred.publish.run import execute

PLAN = """title = "Umzüge"
census = "census/census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county", "tract", "block_group", "block"]
hold = ["tenure"]
rate = "1/5"
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
[assess]
utility = false
"""
PAGES = {"START-HERE.html", "card.html", "report.html"}
WRITTEN = PAGES | {"START-HERE.txt", "tables/README.txt", "card.md"}  # in the language of the plan
NAMED = {"plan.toml", "receipt.json", "checksums.txt"}  # hold the plan's text or digests of it


def words(html: str) -> set[str]:
    """The texts of a page without its scripts and styles."""
    bare = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    return {unescape(text).strip() for text in re.findall(r">([^<]+)<", bare)} - {""}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_command_writes_its_language_into_the_plan() -> None:
    english = parse(PLAN, folder=Path())
    german = with_language(english, "de")
    assert (german.language, german.text.splitlines()[0]) == ("de", 'language = "de"')
    assert with_language(german, "de") is german
    assert with_language(english, None) is english
    assert german.mechanisms[0].parameters() == english.mechanisms[0].parameters()
    with pytest.raises(PlanError, match="disagree about language"):
        with_language(german, "fr")


@pytest.mark.slow
def test_only_words_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released bytes are those of the English run; a run that was interrupted writes the same German pages."""
    write_preset("demo", tmp_path / "census", households=120)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    english, key = load(tmp_path / "plan.toml"), Key.for_tests(5)
    german = with_language(english, "de")
    first = files(run(english, tmp_path / "en", key=key).public)
    second = files(run(german, tmp_path / "de", key=key).public)
    assert {name for name in first if first[name] != second.get(name)} <= WRITTEN | NAMED
    assert first.keys() == second.keys()
    for name in PAGES:
        assert '<html lang="de">' in second[name].decode()
    left = words(first["report.html"].decode()) & words(second["report.html"].decode())
    # labels of cells, settings of the mechanism and versions are names, which stay
    left = {text for text in left if " · " not in text and not text.startswith(("permutation-", "python"))}
    sentences = [text for text in left if len(re.findall(r"\b[a-z]{2,}\b", text)) > 3]
    assert sentences == []

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(german, tmp_path / "again", key=key)
    assert files(run(german, tmp_path / "again", key=key).public) == second


def test_an_internal_report_is_english_throughout_and_says_so(tmp_path: Path) -> None:
    write_preset("demo", tmp_path / "census", households=60)
    (tmp_path / "plan.toml").write_text(PLAN.replace("utility = false", "utility = true"), encoding="utf-8")
    english = load(tmp_path / "plan.toml")
    made = [
        run(plan, tmp_path / plan.language, key=Key.for_tests(5))
        for plan in (english, with_language(english, "de"))
    ]
    first, second = ((packet.folder / "internal" / "report.html").read_text("utf-8") for packet in made)
    assert '<html lang="en">' in second
    assert "Internal reports are in English" in second
    assert "Internal reports are in English" not in first
    german = words(second) - words(first)
    assert not {text for text in german if re.search(r"\b(der|die|das|und|ist|werden|Zellen)\b", text)}
    assert '<html lang="de">' in (made[1].public / "report.html").read_text("utf-8")


ABOUT = """
[about]
data_curators = ["Office of Examples", "Office of Samples"]
contact = "ask@example.org"
publication_date = "2026-12-01"
"""


@pytest.mark.parametrize("code", ["en", "de", "fr", "es"])
def test_who_answers_for_a_release_reaches_its_card_and_labels_stand_for_columns(
    tmp_path: Path, code: str
) -> None:
    """Office, contact and date of [about] are on the card in words; START-HERE links each table and says how to verify."""
    write_preset("demo", tmp_path / "census", households=60)
    (tmp_path / "plan.toml").write_text(f'language = "{code}"\n{PLAN}{ABOUT}', encoding="utf-8")
    plan = load(tmp_path / "plan.toml")
    public = run(plan, tmp_path / "out", key=Key.for_tests(5)).public
    for card in ("card.html", "card.md"):
        text = unescape((public / card).read_text(encoding="utf-8"))
        for told in ("Office of Examples, Office of Samples", "ask@example.org", "2026-12-01", plan.digest):
            assert told in text
        assert "kind = " not in text
        assert " × all" not in text
    shown = (public / "card.html").read_text(encoding="utf-8").partition('<details class="proofs">')[0]
    assert "d_Ham" not in shown
    assert "D_mult" not in shown
    guide = (public / "START-HERE.html").read_text(encoding="utf-8")
    assert '<a href="tables/tenure-by-county.csv">' in guide
    assert '<a href="tables/tenure-by-county.parquet">' in guide
    for line in (public / "checksums.txt").read_text(encoding="utf-8").splitlines():
        digest, name = line.split(maxsplit=1)
        assert sha256((public / name).read_bytes()).hexdigest() == digest  # as sha256sum reads it
    assert "sha256sum -c checksums.txt" in (public / "START-HERE.txt").read_text(encoding="utf-8")
