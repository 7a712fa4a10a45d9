"""Write JSON with one value a line: Python's own writer takes a second for a domain of a hundred thousand codes."""

import json
from json.encoder import encode_basestring
from typing import Any


def write_indented(value: Any, margin: str = "\n") -> str:
    """Write what ``json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)`` writes; keys are texts.

    >>> print(write_indented({"b": [1, "ü"], "a": []}))
    {
      "a": [],
      "b": [
        1,
        "ü"
      ]
    }
    """
    inner = margin + "  "
    if isinstance(value, dict) and value:
        pairs = [f"{encode_basestring(key)}: {write_indented(value[key], inner)}" for key in sorted(value)]
        return "{" + inner + f",{inner}".join(pairs) + margin + "}"
    if isinstance(value, list) and value:
        items = [encode_basestring(one) if type(one) is str else write_indented(one, inner) for one in value]
        return "[" + inner + f",{inner}".join(items) + margin + "]"
    return json.dumps(value, ensure_ascii=False)
