"""Compute a keyed digest of all that a run reads, as a tree, so that it can be computed in pieces of any size.

A geounit's digest is made of its code, the bounds that hold in it and its children's digests in the order of the spine;
the leaves of one parent go in together with their records. The tree is part of the digest: if a block moved to another tract
with the same noise, the difference of the tracts' measurements would be that block's exact answers.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.tree import Tree

Ints = NDArray[np.int64]


def digest_key(key: Key) -> Key:
    """Return the key for the digest of the census; workers may hold it, as no noise is derived from it."""
    return key.bind("reader")


def digest_run(key: Key, levels: Sequence[str], names: Sequence[str], nodes: Sequence[bytes]) -> bytes:
    """Return the digest of a run from those of its highest geounits, or of all leaves if there is one level."""
    return key.digest(b"tree", repr((tuple(levels), tuple(names))).encode(), *nodes)


def digest_nodes(
    key: Key, spine: Tree, constraints: Constraints, depth: int, below: Sequence[bytes] | Sparse
) -> list[bytes]:
    """Return digests of every geounit of a level, from those of the next level or the leaves' records."""
    codes = [str(code).encode() for code in spine.codes[depth].cast(pl.String).to_list()]
    first = spine.first_child[depth].tolist()
    own = _list_bounds(constraints, depth)
    if isinstance(below, Sparse):
        families = digest_leaves(key, spine, constraints, below, first)
    else:
        families = [key.digest(b"children", *below[a:b]) for a, b in pairwise(first)]
    return [
        key.digest(b"node", code, *(bound[i].tobytes() for bound in own), family)
        for i, (code, family) in enumerate(zip(codes, families, strict=True))
    ]


def digest_leaves(
    key: Key, spine: Tree, constraints: Constraints, records: Sparse, first: Sequence[int]
) -> list[bytes]:
    """Return digests of the leaves of each parent; ``first`` is the first leaf of each parent."""
    last = len(spine.levels) - 1
    codes, begin = _join_codes(spine.codes[last])
    own = _list_bounds(constraints, last)
    lengths = np.diff(begin)  # so that different lists of codes have different bytes
    sizes = np.diff(records.first).astype(np.int64)
    result = []
    for a, b in pairwise(first):
        start, stop = records.first[a], records.first[b]
        arrays = [lengths[a:b], sizes[a:b], records.cells[start:stop], records.counts[start:stop]]
        arrays += [bound[a:b] for bound in own]
        text = codes[begin[a] : begin[b]]
        result.append(key.digest(b"leaves", text, *(array.tobytes() for array in arrays)))
    return result


def _join_codes(codes: pl.Series) -> tuple[bytes, Ints]:
    """Return all codes as one text of bytes, and where each begins in it.

    >>> _join_codes(pl.Series(["a", "äb", ""]))
    (b'a\\xc3\\xa4b', array([0, 1, 4, 4]))
    """
    column = codes.cast(pl.String)
    begin = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column.str.len_bytes().to_numpy(), out=begin[1:])
    return "".join(column.to_list()).encode(), begin


def digest_upward(
    key: Key, spine: Tree, constraints: Constraints, records: Sparse, top: int = 0
) -> list[bytes]:
    """Return digests of all geounits of level ``top``, computed from the leaves upward."""
    last = len(spine.levels) - 1
    if top == last:
        return digest_leaves(key, spine, constraints, records, [0, spine.size(last)])
    found = digest_nodes(key, spine, constraints, last - 1, records)
    for depth in range(last - 2, top - 1, -1):
        found = digest_nodes(key, spine, constraints, depth, found)
    return found


def _list_bounds(constraints: Constraints, depth: int) -> list[Ints]:
    """Return the bounds that hold at a level, as whole numbers of one width."""
    held = [one for one in constraints.held if depth < len(one.low)]
    return [np.ascontiguousarray(array[depth], np.int64) for one in held for array in (one.low, one.high)]
