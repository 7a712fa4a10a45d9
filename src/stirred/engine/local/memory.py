"""Read amounts of memory, and find how much memory is free."""

import os
import re
from pathlib import Path

from stirred.errors import InputError

LIBRARY_BYTES = 600_000_000  # bytes that the libraries use before the first record is read
BYTES_BY_UNIT = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


def parse_bytes(words: str | int) -> int:
    """Read a number of bytes such as "8 GB".

    >>> parse_bytes("8 GB"), parse_bytes("512MiB")
    (8000000000, 536870912)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(words))
    if found is None or found[2].lower() not in BYTES_BY_UNIT:
        raise InputError(
            f"{words!r} is not an amount of memory",
            why="it is not a number with a unit",
            fix='memory = "8 GB"',
        )
    return int(float(found[1]) * BYTES_BY_UNIT[found[2].lower()])


def parse_bound(words: str | int) -> int:
    """Read an amount of memory, and refuse one in which nothing could run."""
    size = parse_bytes(words)
    if size < 2 * LIBRARY_BYTES:
        raise InputError(
            f"{words} of memory are too few",
            why=f"the libraries alone take {LIBRARY_BYTES // 10**6} MB",
            fix='memory = "2 GB" or more',
        )
    return size


def free_bytes() -> int:
    """Return three quarters of the memory that is free now, within the limit of a container where there is one."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        line = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable"))
        free = int(line.split()[1]) * 1024
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdigit():
        free = min(free, int(limit.read_text()))
    return free * 3 // 4
