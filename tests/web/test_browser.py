"""The workbench in a real browser: design, run, compare, download; slider, keyboard, and no serious fault for anyone."""

import re
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from stirred.spec import SizeLaw
from stirred.web.jobs import JobQueue

pytestmark = pytest.mark.browser
LONG = 120_000  # milliseconds
CALCULATORS = ("", "/curve", "/zcdp", "/products", "/strata")


def opened(browser: Browser, address: str, **how: object) -> Page:
    page = browser.new_page(**how)  # type: ignore[arg-type]
    page.set_default_timeout(LONG)
    page.errors = []  # type: ignore[attr-defined]
    page.on("console", lambda told: page.errors.append(told.text) if told.type == "error" else None)  # type: ignore[attr-defined]
    page.goto(address)
    return page


def designed(page: Page, origin: str, folder: Path, rate: str) -> None:
    """Choose data, a method and a rate, and go on to the run."""
    page.goto(f"{origin}/data")
    page.get_by_label("Folder with census.toml").fill(str(folder))
    page.get_by_role("button", name="Use this folder").click()
    page.goto(f"{origin}/promise")
    page.get_by_role("button", name="Propose a plan").click()
    page.locator('[name="s.rate"]').fill(rate)
    page.get_by_role("button", name="Keep and go on").click()
    page.get_by_label("Who answers for the budget").fill("Chief methodologist")
    page.get_by_role("button", name="Keep and go on").click()


def ran(page: Page, number: int) -> None:
    page.get_by_role("button", name=re.compile("^Run plan")).click()
    expect(page.locator(f"#job-{number}")).to_have_attribute("data-state", "done", timeout=LONG)


def axe(page: Page, name: str) -> None:
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    told = [(name, one["id"], [node["target"] for node in one["nodes"]][:3]) for one in grave]
    assert not told


@pytest.mark.slow
def test_from_design_to_download(browser: Browser, server: object, tmp_path: Path) -> None:
    page = opened(browser, server.address)  # type: ignore[attr-defined]
    origin = server.origin  # type: ignore[attr-defined]
    assert page.url == f"{origin}/"
    expect(page.get_by_text("choose data first").first).to_be_visible()
    designed(page, origin, tmp_path / "town", "1/5")
    ran(page, 1)
    page.goto(f"{origin}/promise")
    page.locator('[name="s.rate"]').fill("1/2")
    page.get_by_role("button", name="Keep this choice").click()
    page.goto(f"{origin}/run")
    ran(page, 2)
    page.goto(f"{origin}/compare")
    for number in (1, 2):
        page.locator(f'[name="side"][value="{number}"]').check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="The promises beside each other")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Write the report on packets")).click()
    expect(page.get_by_role("link", name="its report")).to_be_visible(timeout=LONG)
    page.goto(f"{origin}/packet/2")
    with page.expect_download() as got:
        page.get_by_role("link", name="Download the public part").click()
    names = zipfile.ZipFile(got.value.path()).namelist()
    assert "public/receipt.json" in names
    assert not [name for name in names if "internal" in name or name.endswith(".key")]
    screens = ("/", "/data", "/promise", "/method", "/run", "/compare?side=1&side=2", "/packet/2", "/history")
    for path in (*screens, *(f"/calculators{one}" for one in CALCULATORS)):
        page.goto(origin + path)
        axe(page, path)
    page.goto(f"{origin}/look/2")
    page.wait_for_load_state("networkidle")
    axe(page, "/look/2")
    assert page.errors == []  # type: ignore[attr-defined]
    page.close()


def test_the_slider_moves_the_budget_as_the_formula_says(
    browser: Browser, server: object, tmp_path: Path
) -> None:
    page = opened(browser, server.address, viewport={"width": 390, "height": 844}, color_scheme="dark")  # type: ignore[attr-defined]
    origin = server.origin  # type: ignore[attr-defined]
    designed(page, origin, tmp_path / "town", "1/20")
    page.goto(f"{origin}/data")
    page.get_by_label("Largest stratum b, from published counts").fill("264331")
    page.get_by_role("button", name="Use these figures").click()
    page.goto(f"{origin}/promise")
    slider = page.locator("#slider")
    values = (slider.get_attribute("data-values") or "").split()
    slider.focus()
    for key in ("ArrowRight", "End", "Home"):
        before = page.locator("#answer").get_attribute("data-answers") or "0"
        page.keyboard.press(key)
        expect(page.locator("#answer")).not_to_have_attribute("data-answers", before)
        rate = values[int(slider.input_value())]
        assert page.locator('[name="s.rate"]').input_value() == rate
        expected = SizeLaw("by-size", Fraction(rate)).at(264331)
        expect(page.locator("#budget")).to_have_text(f"ε = {expected}")
    page.locator('input[name="s.match"]').first.click()  # other invariants: the universe is counted again
    expect(page.locator("#universe")).to_have_attribute("data-answers", "1")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    axe(page, "/promise on a phone, dark")
    page.close()


@pytest.mark.slow
def test_a_killed_server_comes_back_with_the_run(browser: Browser, server: object, tmp_path: Path) -> None:
    page = opened(browser, server.address)  # type: ignore[attr-defined]
    origin = server.origin  # type: ignore[attr-defined]
    designed(page, origin, tmp_path / "town", "1/5")
    page.get_by_role("button", name=re.compile("^Run plan")).click()
    expect(page.locator("#job-1")).to_have_attribute("data-state", re.compile("running|done"), timeout=LONG)
    server.kill()  # type: ignore[attr-defined]
    server.start()  # type: ignore[attr-defined]
    page.goto(f"{origin}/run")
    expect(
        page.get_by_text("This browser has no session of this start")
    ).to_be_visible()  # the cookie is of the other one
    page.goto(server.address)  # type: ignore[attr-defined]
    page.goto(f"{origin}/run")
    expect(page.locator("#job-1")).to_have_attribute("data-state", "done", timeout=LONG)
    page.goto(f"{origin}/look/1")
    expect(page.frame_locator("iframe.report").get_by_text("Who is protected?").first).to_be_visible()
    page.close()


@pytest.mark.slow
def test_the_demo_census_cancelled_and_resumed(browser: Browser, server: object, tmp_path: Path) -> None:
    page = opened(browser, server.address)  # type: ignore[attr-defined]
    origin = server.origin  # type: ignore[attr-defined]
    page.get_by_role("button", name="Make the demo census").click()
    expect(page.get_by_role("heading", name="Synthetic demo census")).to_be_visible(timeout=LONG)
    page.goto(f"{origin}/promise")
    page.get_by_role("button", name="Propose a plan").click()
    page.get_by_role("button", name="Keep and go on").click()
    page.get_by_role("button", name="Keep and go on").click()
    page.get_by_role("button", name=re.compile("^Run plan")).click()
    page.get_by_role("button", name="Cancel run 2").click()
    expect(page.locator("#job-2")).to_have_attribute("data-state", "cancelled", timeout=LONG)
    page.get_by_role("button", name="Resume run 2").click()
    expect(page.locator("#job-2")).to_have_attribute("data-state", "done", timeout=LONG)
    assert [job.state for job in JobQueue(server.folder / "jobs").all()] == ["done", "done"]  # type: ignore[attr-defined]
    page.goto(f"{origin}/compare?side=2&side=whatif-state")
    expect(page.get_by_role("heading", name="The promises beside each other")).to_be_visible()
    page.goto(f"{origin}/packet/2")
    with page.expect_download() as got:
        page.get_by_role("link", name="Download the internal part").click()
    assert "internal/metrics.csv" in zipfile.ZipFile(got.value.path()).namelist()
    page.close()


@pytest.mark.slow
def test_a_visit_is_five_buttons(browser: Browser, server: object) -> None:
    page = opened(browser, server.address, viewport={"width": 390, "height": 844})  # type: ignore[attr-defined]
    page.get_by_role("button", name="Start the visit").click()
    for step, label in enumerate(
        ("choose a method", "propose a plan", "keep this promise", "run plan", "look at the packet", ""),
        start=1,
    ):
        button = page.locator("#visit-next", has_text=label or "End the visit")
        expect(button).to_be_visible(timeout=LONG)
        expect(page.locator("#visit")).to_contain_text(f"step {min(step, 4) if step < 6 else 5} of 5")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        axe(page, f"visit, {label}")
        button.click()
    expect(page.get_by_role("button", name="Start the visit")).to_be_visible()
    assert page.errors == []  # type: ignore[attr-defined]
    page.close()
