"""The page of the reference about dangerous input and unedited paths. Run it to write the page anew."""

import tempfile
from pathlib import Path

from door.dangers import DANGERS, HEAD, line, tried
from door.packets import ADVERSARY_HEAD, PATH_HEAD, adversary_lines, made_of_all, path_line

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "dangers.md"
RENEW = "write the page anew: PYTHONPATH=src:tests python -m door.page"
TITLE = """# Dangerous input, and what an unedited plan releases

## Sixty kinds of input

A census of 160 invented households in six places is damaged, or its plan is changed, in one way at a time; then
`stirred run` is asked for a packet. *Refused*: exit code 2, with what, why and fix, and nothing is left behind. *Warned*: a
packet, and a warning to the office or on the first line of the card. *Published*: a packet, because nothing is wrong. The
faults of files are tried at every door in [another table](faults.md). `tests/e2e/test_dangers.py` holds this table
against the program.
"""
PATHS = """
## Ten layouts, nothing edited

Invented records in the layouts of ten kinds of survey files go from `stirred data describe` over `plan new` and `run` to
a packet that `packet verify` accepts. *Lines answered* are the names of sheets or tables that had to be given; nothing
else was typed or edited. *Questions left open* are marked "not decided" in `census.toml` and in the plan: they stop
nothing, and an office should answer them. Numbers are released by bands: amounts by round limits, ages by five years.
"""
ADVERSARY = """
## What an adversary finds in these packets

For every released column, the share of the released records whose value no other record has: alone, and together with the
finest place of the release. Where tables with noise are released and no records, the records of the census are asked
about. Identifiers and links are new numbers and name nobody. A guard refuses a column without listed levels above 1 %
([guards](../explain/guards.md)); a value with its place is what the swap makes uncertain: the record at that place may
have come from another one. `tests/unit/census/test_layouts.py` holds both tables against the packets.
"""


def main() -> None:
    """Write the page."""
    kinds = []
    for danger in DANGERS:
        with tempfile.TemporaryDirectory() as folder:
            kinds.append(line(danger, tried(danger, Path(folder))))
    made = list(made_of_all())
    paths = [path_line(*one) for one in made]
    singled = [found for name, _, packet in made for found in adversary_lines(name, packet)]
    tables = ((TITLE, HEAD, kinds), (PATHS, PATH_HEAD, paths), (ADVERSARY, ADVERSARY_HEAD, singled))
    text = "".join("\n".join([words, *head, *lines]) + "\n" for words, head, lines in tables)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
