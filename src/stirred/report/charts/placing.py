"""Places for areas on a page without a map: along a curve that keeps neighbours of the list near each other."""

from collections.abc import Iterator
from math import ceil, sqrt


def walk_curve(width: int, height: int) -> Iterator[tuple[int, int]]:
    """Yield every place of a rectangle once, each next to the one before (a generalised Hilbert curve).

    The recursion is J. Červený's generalized Hilbert curve: halve the longer side, walk the halves one after the other.

    >>> list(walk_curve(2, 2))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    if width >= height:
        yield from _walk(0, 0, width, 0, 0, height)
    else:
        yield from _walk(0, 0, 0, height, width, 0)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _half(value: int) -> int:
    """Return half of a signed length, rounded toward minus infinity."""
    return value // 2


def _walk(x: int, y: int, ax: int, ay: int, bx: int, by: int) -> Iterator[tuple[int, int]]:
    """Walk the rectangle spanned by the long side a and the short side b."""
    width, height = abs(ax + ay), abs(bx + by)
    dax, day, dbx, dby = _sign(ax), _sign(ay), _sign(bx), _sign(by)
    if height == 1:
        yield from ((x + i * dax, y + i * day) for i in range(width))
        return
    if width == 1:
        yield from ((x + i * dbx, y + i * dby) for i in range(height))
        return
    ax2, ay2, bx2, by2 = _half(ax), _half(ay), _half(bx), _half(by)
    if 2 * width > 3 * height:
        if abs(ax2 + ay2) % 2 and width > 2:
            ax2, ay2 = ax2 + dax, ay2 + day
        yield from _walk(x, y, ax2, ay2, bx, by)
        yield from _walk(x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by)
        return
    if abs(bx2 + by2) % 2 and height > 2:
        bx2, by2 = bx2 + dbx, by2 + dby
    yield from _walk(x, y, bx2, by2, ax2, ay2)
    yield from _walk(x + bx2, y + by2, ax, ay, bx - bx2, by - by2)
    yield from _walk(
        x + (ax - dax) + (bx2 - dbx),
        y + (ay - day) + (by2 - dby),
        -bx2,
        -by2,
        -(ax - ax2),
        -(ay - ay2),
    )


def place_tiles(number: int, *, shape: float = 1.7) -> list[tuple[int, int]]:
    """Return places for that many tiles in a rectangle about ``shape`` times as wide as high.

    >>> places = place_tiles(10)
    >>> len(places), max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:]))
    (10, 1)
    """
    if number < 1:
        return []
    height = max(1, ceil(sqrt(number / shape)))
    width = ceil(number / height)
    return [place for place, _ in zip(walk_curve(width, height), range(number), strict=False)]
