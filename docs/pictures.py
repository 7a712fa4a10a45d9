"""Make the pictures of the docs from a finished demo: python docs/pictures.py demo docs/images.

The demo's report, the public report of its first release and that release's card: wide, on a phone, dark and printed.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

VIEWS = {
    "wide": (1280, 800, "light", "screen"),
    "phone": (390, 844, "light", "screen"),
    "dark": (1280, 800, "dark", "screen"),
    "print": (794, 1123, "light", "print"),
}
PARTS = {
    "demo-errors": ("demo", "#figure-error-by-size-hispanic-by-county"),
    "demo-areas": ("demo", "figure[id^=figure-areas]"),
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
                            picture_of(page, place, images / f"{part}.png")
                page.close()
        browser.close()


def picture_of(page: Page, place: str, out: Path) -> None:
    """Draw the place of a page, or several that stand beside each other, without their tables of numbers."""
    found = page.locator(place)
    if found.count() > 1:
        found.locator("details").evaluate_all("folds => folds.forEach(fold => { fold.open = false })")
    boxes = [one.bounding_box() for one in found.all()]
    left, top = min(box["x"] for box in boxes if box), min(box["y"] for box in boxes if box)
    right = max(box["x"] + box["width"] for box in boxes if box)
    foot = max(box["y"] + box["height"] for box in boxes if box)
    page.screenshot(
        path=out, full_page=True, clip={"x": left, "y": top, "width": right - left, "height": foot - top}
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
