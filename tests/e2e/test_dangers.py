"""Sixty kinds of faulty or dangerous input: refused, warned of or published, and none of them ends in a crash."""

from pathlib import Path

import pytest

from door.dangers import DANGERS, Danger, line, tried
from door.page import ADVERSARY, PAGE, PATHS, RENEW, TITLE

TEXT = PAGE.read_text(encoding="utf-8")
LINES = TEXT.splitlines()


def test_there_are_sixty_kinds_and_the_page_has_them() -> None:
    names = [danger.name for danger in DANGERS]
    assert len(set(names)) == len(names) == 60
    assert all(words in TEXT for words in (TITLE, PATHS, ADVERSARY)), RENEW
    start = LINES.index("| kind | outcome | what is said |") + 2
    assert [told.split(" | ")[0].removeprefix("| ") for told in LINES[start : start + 60]] == names, RENEW


@pytest.mark.parametrize("danger", DANGERS, ids=lambda danger: danger.name)
def test_what_becomes_of_it(danger: Danger, tmp_path: Path) -> None:
    result = tried(danger, tmp_path)
    assert result.outcome == danger.outcome, result.said
    assert danger.says in result.sentence
    assert "Traceback" not in result.said
    assert not danger.secret or danger.secret not in result.said.replace(str(tmp_path), "")
    if danger.outcome == "refused":
        assert result.code == 2
        assert not result.left
    else:
        assert "packet" in result.left
    assert line(danger, result) in LINES, RENEW
