"""What a fresh machine installs: every package, uv itself too, with a hash."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_is_installed_without_a_hash() -> None:
    lines = [
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if re.search(r"pip install|\(INSTALL\)", line)
    ]
    installing = [line for line in lines if not line.startswith("INSTALL :=")]
    assert len(installing) >= 3
    for line in installing:
        # the package itself is this folder, without what it depends on
        assert "--require-hashes -r " in line or line.endswith("--no-deps -e .")


def test_every_version_is_pinned_with_a_hash() -> None:
    for name in ("constraints.txt", "tools/demo.txt", "tools/uv.txt"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        versions = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
        assert versions
        assert all(re.match(r"\S+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in versions), name


def test_actions_and_images_do_not_float() -> None:
    """An action is one commit; an image is one full version, or a digest."""
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    actions = re.findall(r"uses: (\S+)", workflow)
    assert len(actions) >= 5
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in actions), actions
    images = re.findall(r"container: (\S+)", workflow)
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert len(images) == 2
    full = r"\w+:\d+\.\d+(\.\d+)?-slim(-\w+)?(@sha256:[0-9a-f]{64})?"
    assert all(re.fullmatch(full, image) for image in images), images
