"""Make the pictures of the workbench: python docs/workbench_pictures.py FOLDER docs/images.

FOLDER is new, or that of an earlier call. A workbench is served there with a demo census of 3,000 households; every screen
is drawn wide and on a phone, light and dark.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

VIEWS = {
    "wide": (1200, 800, "light"),
    "wide-dark": (1200, 800, "dark"),
    "phone": (390, 760, "light"),
    "phone-dark": (390, 760, "dark"),
}
SCREENS = {
    "start": "/",
    "data": "/data",
    "promise": "/promise",
    "method": "/method",
    "run": "/run",
    "look": "/look/{first}",
    "compare": "/compare?side={first}&side={second}",
    "packet": "/packet/{second}",
    "history": "/history",
    "curve": "/calculators/curve",
    "zcdp": "/calculators/zcdp",
    "products": "/calculators/products",
    "strata": "/calculators/strata",
}
LONG = 240_000


def designed(page: Page, origin: str) -> None:
    """Make the demo census, read it, and run a swap at two rates."""
    page.goto(f"{origin}/data")
    page.get_by_label("Households", exact=True).fill("3000")
    page.get_by_role("button", name="Make the demo census").click()
    expect(page.get_by_role("heading", name="Synthetic demo census")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Read the records", exact=True).click()
    page.goto(f"{origin}/promise")
    page.get_by_role("button", name="Propose a plan").click()
    for rate in ("1/20", "1/2"):
        page.goto(f"{origin}/promise")
        page.locator('[name="s.rate"]').fill(rate)
        page.get_by_role("button", name="Keep and go on").click()
        page.get_by_label("Who answers for the budget").fill("Chief methodologist")
        page.get_by_role("button", name="Keep and go on").click()
        page.get_by_role("button", name="Check the plan on the records").click()
        page.get_by_role("button", name=re.compile("^Run plan")).click()
        done = page.locator("#jobs article").first
        expect(done).to_have_attribute("data-state", "done", timeout=LONG)


def main(folder: Path, images: Path) -> None:
    """Draw every screen."""
    words = [sys.executable, "-m", "stirred", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = [server.stdout.readline() for _ in range(2)][1].split()[1]
    origin = address.split("/?")[0]
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        page = browser.new_page()
        page.set_default_timeout(LONG)
        page.goto(address)
        if not any((folder / "packets").glob("*/public")):
            designed(page, origin)
        numbers = sorted(int(path.parent.name) for path in (folder / "packets").glob("*/public"))
        page.close()
        for view, (width, height, scheme) in VIEWS.items():
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            shown = context.new_page()
            shown.set_default_timeout(LONG)
            shown.goto(address)
            for name, path in SCREENS.items():
                shown.goto(origin + path.format(first=numbers[0], second=numbers[-1]))
                shown.wait_for_load_state("networkidle")
                shown.screenshot(path=images / f"workbench-{name}-{view}.png")
            context.close()
        browser.close()
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
