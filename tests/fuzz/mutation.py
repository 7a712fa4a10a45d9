"""Change texts and bytes at random: by bits, by lines, by tokens, and by pieces of other texts."""

import random
import re
from collections.abc import Callable, Sequence

TOKENS = (
    "",
    "0",
    "-1",
    "1",
    "9" * 400,
    "1/0",
    "0/1",
    "-1/2",
    "1e400",
    "1e-400",
    "nan",
    "-inf",
    "9223372036854775808",
    "18446744073709551616",
    "true",
    "null",
    "[]",
    "{}",
    '""',
    '"a"',
    '"../../../evil"',
    '"/dev/zero"',
    '"/dev/stdin"',
    '"/etc/passwd"',
    '"http://localhost/x"',
    '"\\u0000"',
    '"\\u202e"',
    '"\\ud800"',
    "1979-05-27T07:32:00Z",
    "[[]]",
    "{a = {a = {a = 1}}}",
    '"0..99999999999999999999"',
    '"9..1"',
    "[1, 2]",
    '["state", "state"]',
    '"' + "a" * 3000 + '"',
    "[" * 200,
    "a." * 60 + "b = 1",
    "\x00",
    "\r",
    "\x1b[2J",
    "é",
    "\ufeff",
    "'''",
    '"""',
)
WORD = re.compile(rb'"[^"\n]*"|[A-Za-z_][A-Za-z_0-9-]*|-?[0-9][0-9./e+-]*')


def mutated(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """The content after one to four random changes; it always differs from the content."""
    changed = content
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        changed = chance.choice(_CHANGES)(changed, chance, others)
    return changed if changed != content else content + b"\n"


def _bit(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    if not content:
        return b"\x01"
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]


def _byte(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.randbytes(1) + content[place + chance.randrange(2) :]


def _cut(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _removed(content: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(40) :]


def _word(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """One word, text or number becomes a token, or a word of another place."""
    words = list(WORD.finditer(content))
    if not words:
        return content + chance.choice(TOKENS).encode("utf-8", "surrogatepass")
    old: re.Match[bytes] = chance.choice(words)
    if chance.random() < 0.4:
        pool = WORD.findall(chance.choice(others)) if others and chance.random() < 0.5 else []
        new = bytes(chance.choice(pool or [word.group() for word in words]))
    else:
        new = chance.choice(TOKENS).encode("utf-8", "surrogatepass")
    return content[: old.start()] + new + content[old.end() :]


def _line(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A line is repeated, removed, moved, or comes from another text."""
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    what = chance.randrange(4)
    if what == 0:
        lines.insert(chance.randrange(len(lines)), lines[place])
    elif what == 1:
        del lines[place]
    elif what == 2:
        lines.insert(chance.randrange(len(lines)), lines.pop(place))
    elif others:
        lines.insert(place, chance.choice(chance.choice(others).split(b"\n")))
    return b"\n".join(lines)


_CHANGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    _bit,
    _byte,
    _cut,
    _removed,
    _word,
    _word,
    _word,
    _line,
    _line,
)
