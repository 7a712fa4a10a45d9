"""Write the tables of docs/benchmarks/who-pays.md from the files of who_pays.py --json.

  python benchmarks/who_pays_tables.py FILE… [--page docs/benchmarks/who-pays.md]

Files may hold other rows and parts of the same census; of what is there twice, the one with more draws counts. The text of
the page above the marker stays, and everything below it is written anew.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from who_pays import COVERAGE_HEADS, HEADS, Line, join_score

MARKER = "<!-- written by benchmarks/who_pays_tables.py; do not edit below -->"
BESIDE = "pl94-stirred:gls"  # the row that joint scores are ratios to
Parts = dict[str, dict[str, Line]]
ROLES = {
    "hawaii": "Hawaii 2020, looked at while intervals were tested",
    "snohomish": "Snohomish 2010, took no part in choosing anything",
    "king": "King 2010, took no part in choosing anything",
    "pierce": "Pierce 2010, seen in tuning",
    "kitsap": "Kitsap 2010, seen in tuning",
    "segregated": "synthetic state, segregated (a sample of 30,000 households of it was seen in tuning)",
    "integrated": "synthetic state, integrated (a sample of it was looked at)",
    "rhode-island": "Rhode Island 2020, totals and voting districts alone",
}


def read_rows(files: Iterable[Path]) -> dict[str, dict[str, Parts]]:
    """Return censuses, their rows and the lines of these: census → row → part → label."""
    found: dict[str, dict[str, Parts]] = {}
    for file in files:
        for text in file.read_text().splitlines():
            document = json.loads(text)
            for row, parts in document["rows"].items():
                for part, lines in parts.items():
                    own = found.setdefault(document["census"], {}).setdefault(row, {}).setdefault(part, {})
                    for label, (each, form, about) in lines.items():
                        if label not in own or len(each) >= len(own[label].each):
                            own[label] = Line(np.array(each), form, tuple(about))
    return found


def score(rows: Mapping[str, Parts]) -> dict[str, float]:
    """Return the joint score of every row: 1 for the row that is the measure, below it is better."""
    means = {
        row: {
            label: float(line.each.mean()) for label, line in parts["score"].items() if "second" not in label
        }
        for row, parts in rows.items()
    }
    return {row: join_score(own, means[BESIDE]) for row, own in means.items()}


def write_tables(found: Mapping[str, Mapping[str, Parts]]) -> Iterator[str]:
    """Yield the lines of the page below the marker."""
    yield "## Joint score\n"
    names = list(dict.fromkeys(row for rows in found.values() for row in rows))
    yield "| census | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1)
    for census, rows in found.items():
        if census in ROLES and census != "rhode-island":
            scores = score(rows)
            texts = [f"{scores[name]:.2f}" if name in scores else "–" for name in names]
            yield f"| {census} | " + " | ".join(texts) + " |"
    for census, rows in found.items():
        yield f"\n## {ROLES.get(census, census)}"
        for part, (title, more) in (HEADS | COVERAGE_HEADS).items():
            having = [name for name in names if rows.get(name, {}).get(part)]
            if part in {"bias", "sizes"} or not having:
                continue
            if census == "rhode-island" and part not in {"areas", "score"}:
                continue  # its races are drawn at random
            together = part == "error"
            title = (
                "bias of the sum in blocks of this kind; mean absolute error of one" if together else title
            )
            heads = [head.strip() for head in more.split("|") if head.strip()]
            yield f"\n{title[0].upper()}{title[1:]}:\n"
            yield "| | " + " | ".join([*heads, *having]) + " |\n|" + "---|" * (1 + len(heads) + len(having))
            for label, first in rows[having[0]][part].items():
                texts = []
                for name in having:
                    line = rows[name][part].get(label)
                    bias = rows[name]["bias"].get(label) if together else None
                    texts.append("–" if line is None else f"{bias.text}; {line.text}" if bias else line.text)
                yield f"| {label.replace(' | ', ', ')} | " + " | ".join([*first.about, *texts]) + " |"


def main() -> None:
    """Write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("files", nargs="+", type=Path)
    asked.add_argument("--page", type=Path, default=Path("docs/benchmarks/who-pays.md"))
    told = asked.parse_args()
    kept = told.page.read_text().split(MARKER)[0]
    told.page.write_text(kept + MARKER + "\n\n" + "\n".join(write_tables(read_rows(told.files))) + "\n")


if __name__ == "__main__":
    main()
