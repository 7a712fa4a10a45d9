"""Encode names of streams as bytes, one to one, so that different names never share bits."""

from operator import index

from stirred.errors import InputError

Part = str | bytes | int


def encode_name(parts: tuple[Part, ...]) -> bytes:
    """Write a name so that it can be read back: each part is a letter for its type, its length, its bytes.

    Self-delimiting parts make the concatenation injective, so ``("a", "b")`` and ``("ab",)`` differ.

    >>> encode_name(("a", 1)) != encode_name(("a1",)) != encode_name(("a", "1"))
    True
    """
    pieces: list[bytes] = []
    for part in parts:
        if type(part) is bytes:  # digests of a census have many of them
            pieces += (b"b", len(part).to_bytes(8, "big"), part)
        else:
            pieces.append(_encode_part(part))
    return b"".join(pieces)


def _encode_part(part: Part) -> bytes:
    if isinstance(part, str):
        return _frame_part(b"s", part.encode())
    if isinstance(part, bytes):
        return _frame_part(b"b", part)
    if isinstance(part, bool):
        raise _make_part_error(part)
    try:
        number = index(part)
    except TypeError:
        raise _make_part_error(part) from None
    # the encoding need not be the shortest; it must depend on the number alone
    return _frame_part(b"i", number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _frame_part(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(8, "big") + body


def _make_part_error(part: object) -> InputError:
    return InputError(
        f"a {type(part).__name__} cannot be part of a stream's name",
        why="names are made of strings, bytes and integers, so that equal names mean equal bits",
        fix="write it as a string, e.g. str(fraction)",
    )
