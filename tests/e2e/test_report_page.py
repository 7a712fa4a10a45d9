"""The report in a real browser: offline, no console error, every chart drawn, sortable, readable on a phone."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("part", ["public", "internal"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_report_draws_offline(browser: Any, packet: Path, part: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    address = (packet / part / "report.html").as_uri()
    page.goto(address)
    page.wait_for_function("document.body.dataset.charts !== undefined", timeout=0)
    charts = page.locator(".chart").count()
    assert charts > 0
    # what is folded is drawn when it is opened
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    page.wait_for_function(
        """() => [...document.querySelectorAll('.chart')].every(chart => ['yes', 'no'].includes(chart.dataset.drawn))""",
        timeout=0,
    )
    assert page.locator('.chart[data-drawn="yes"] svg').count() == charts
    assert messages == []
    assert requests == [address]
    # nothing is wider than the screen
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert page.locator("figure figcaption").count() == charts
    # every chart has words, and at night nothing is drawn in black
    assert all(
        page.evaluate(
            "[...document.querySelectorAll('.chart')].map(c => c.getAttribute('aria-label').length > 20)"
        )
    )
    if scheme == "dark":
        black = """() => [...document.querySelectorAll('.chart svg *')].filter(mark => ['fill', 'stroke'].some(
            name => ['#000', '#000000', 'black', 'rgb(0, 0, 0)'].includes(mark.getAttribute(name)))).length"""
        assert page.evaluate(black) == 0
    # a table that is wider than its place says so
    wide = """() => [...document.querySelectorAll('.tablebox > .scroll')].filter(box => box.clientWidth > 0).map(
        box => [box.scrollWidth > box.clientWidth + 1, !box.nextElementSibling.hidden])"""
    assert all(scrolls == said for scrolls, said in page.evaluate(wide))
    page.close()


@pytest.mark.parametrize("part", ["public", "internal"])
def test_the_first_screen_answers_six_questions(browser: Any, packet: Path, part: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((packet / part / "report.html").as_uri())
    bottoms = page.evaluate(
        "[...document.querySelectorAll('.reply')].map(card => card.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) == 6
    assert max(bottoms) < 800
    headings = page.evaluate("[...document.querySelectorAll('.chapter')].map(chapter => chapter.id)")
    assert headings == ["promise", "accuracy", "exact", "risk", "method"]
    # tables fit a wide screen
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert page.locator(".scroll.wide").count() == 0
    # the heading of numbers stands above them, at the right
    gaps = """() => [...document.querySelectorAll('thead th.number button')].map(
        button => button.parentNode.clientWidth - button.offsetWidth)"""
    assert max(page.evaluate(gaps)) <= 1
    page.close()


def test_tables_sort_as_numbers(browser: Any, packet: Path) -> None:
    page = browser.new_page()
    page.goto((packet / "internal" / "report.html").as_uri())
    page.locator("th.number button >> visible=true").first.click()
    column = page.evaluate(
        """() => { const th = document.querySelector('th[aria-sort=ascending]');
        const i = [...th.parentNode.children].indexOf(th);
        return [...th.closest('table').tBodies[0].rows].map(r => Number(r.children[i].textContent.replace(/,/g, ''))); }"""
    )
    assert column == sorted(column)
    page.close()
