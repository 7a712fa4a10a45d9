"""Make the pictures of the docs from a finished demo: python docs/pictures.py demo docs/images.

The demo's report, the public report of its first release and that release's card: wide, on a phone, dark and printed.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

VIEWS = {
    "wide": (1280, 800, "light", "screen"),
    "phone": (390, 844, "light", "screen"),
    "dark": (1280, 800, "dark", "screen"),
    "print": (794, 1123, "light", "print"),
}
PARTS = {
    "demo-errors": ("demo", "#figure-error-by-size-hispanic-by-county"),
    "demo-areas": ("demo", "#figure-areas-1"),
    "public-cells": ("public", "#figure-table-race-by-tract-small"),
}


def main(demo: Path, images: Path) -> None:
    """Write one PNG a page and view, and the charts that the docs show alone."""
    pages = {
        "demo": demo / "report.html",
        "public": demo / "swap-5/public/report.html",
        "card": demo / "swap-5/public/card.html",
    }
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for name, path in pages.items():
            for view, (width, height, scheme, media) in VIEWS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.emulate_media(media=media, color_scheme=scheme)
                page.goto(path.resolve().as_uri())
                if name != "card":
                    page.wait_for_function("document.body.dataset.charts !== undefined", timeout=0)
                page.screenshot(path=images / f"{name}-{view}.png")
                if view == "wide":
                    # what is folded cannot be drawn
                    page.evaluate(
                        "document.querySelectorAll('details').forEach(fold => { fold.open = true })"
                    )
                    for part, (of, place) in PARTS.items():
                        if of == name:
                            page.locator(place).screenshot(path=images / f"{part}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
