"""Make the pictures of the workbench: python docs/workbench_pictures.py FOLDER docs/images.

FOLDER is new, or that of an earlier call. A workbench is served there with a demo census of 3,000 households; every screen
is drawn wide and on a phone, light and dark.
"""

import base64
import re
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

VIEWS = {
    "wide": (1280, 860, "light"),
    "wide-dark": (1280, 860, "dark"),
    "phone": (390, 1100, "light"),
    "phone-dark": (390, 1100, "dark"),
}
SCREENS = {
    "start": "/",
    "data": "/data",
    "promise": "/promise",
    "method": "/method",
    "run": "/run",
    "look": "/look/{first}",
    "compare": "/compare?side={first}&side={second}",
    "frontier": "/compare#report-title",
    "packet": "/packet/{second}",
    "history": "/history",
    "curve": "/calculators/curve",
    "zcdp": "/calculators/zcdp",
    "products": "/calculators/products",
    "strata": "/calculators/strata",
}
LONG = 240_000
# the 256 most frequent colours of a picture, and the nearest of them for each point
PALETTE = """async (text) => {
  const image = new Image();
  image.src = "data:image/png;base64," + text;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), place = canvas.getContext("2d");
  place.drawImage(image, 0, 0);
  const points = new Uint32Array(place.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const point of points) counts.set(point, (counts.get(point) || 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map((one) => one[0]);
  const parts = (c) => [c & 255, (c >> 8) & 255, (c >> 16) & 255], colours = kept.map(parts);
  const nearest = new Map(kept.map((colour, at) => [colour, at]));
  for (const colour of counts.keys()) if (!nearest.has(colour)) {
    const own = parts(colour);
    let best = 0, least = Infinity;
    colours.forEach((other, at) => {
      const far = other.reduce((sum, value, n) => sum + (value - own[n]) ** 2, 0);
      if (far < least) { least = far; best = at; }
    });
    nearest.set(colour, best);
  }
  let found = "";
  for (const point of points) found += String.fromCharCode(nearest.get(point));
  return [image.width, image.height, colours.flat(), btoa(found)];
}"""


def smaller(page: Page, picture: bytes) -> bytes:
    """The picture with at most 256 colours: a third of the bytes."""
    width, height, colours, points = page.evaluate(PALETTE, base64.b64encode(picture).decode())
    rows = base64.b64decode(points)
    lines = b"".join(b"\0" + rows[width * row : width * (row + 1)] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = {b"IHDR": head, b"PLTE": bytes(colours), b"IDAT": zlib.compress(lines, 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks.items()
    )


def designed(page: Page, origin: str) -> None:
    """Make the demo census, read it, run a swap at two rates, and draw risk against error."""
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
    page.goto(f"{origin}/compare")
    page.get_by_text("Draw risk against error over several rates").click()
    page.get_by_role("button", name="Draw risk against error").click()
    expect(page.get_by_role("link", name="its report")).to_be_visible(timeout=LONG)


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
        known = page.context.storage_state()  # the address opens the workbench once: the cookie is kept
        page.close()
        blank = browser.new_page()
        for view, (width, height, scheme) in VIEWS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
                storage_state=known,
            )
            shown = context.new_page()
            shown.set_default_timeout(LONG)
            for name, path in SCREENS.items():
                shown.goto(origin + path.format(first=numbers[0], second=numbers[-1]))
                shown.wait_for_load_state("networkidle")
                shown.wait_for_timeout(300)  # charts in frames
                picture = smaller(blank, shown.screenshot())
                (images / f"workbench-{name}-{view}.png").write_bytes(picture)
            context.close()
        browser.close()
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
