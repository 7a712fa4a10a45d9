"""Find codes of areas that look the same and are not: one place would become two."""

from collections.abc import Iterator, Sequence

import polars as pl

from stirred.census.validation.problems import Problem

ALIKE_RULE = (
    "codes that look like another one: case, spaces at the ends, letters in two forms, or signs of no width"
)
ALIKE_FIX = "write every code in one way (one case, no spaces at the ends, Unicode NFC, no signs of no width)"
NO_WIDTH_SIGNS = "[\u00ad\u200b-\u200f\u2060\ufeff]"


def check_alike(distinct: pl.DataFrame, record_type: str, levels: Sequence[str]) -> Iterator[Problem]:
    """Yield problems where two codes of a level are the same to the eye.

    >>> [problem.count for problem in check_alike(pl.DataFrame({"lau": ["Cé", "Ce\u0301", "D"]}), "household", ["lau"])]
    [1]
    >>> [problem.count for problem in check_alike(pl.DataFrame({"lau": ["A1", "a1", "A1 ", "B"]}), "household", ["lau"])]
    [2]
    """
    for level in levels:
        if distinct.schema[level].is_integer():
            continue
        codes = distinct[level].drop_nulls().cast(pl.String).unique()
        plain = codes
        if (codes.str.len_bytes() != codes.str.len_chars()).any():  # plain letters have one form
            plain = codes.str.normalize("NFC").str.replace_all(NO_WIDTH_SIGNS, "")
        count = codes.len() - plain.str.strip_chars().str.to_lowercase().n_unique()
        if count:
            yield Problem(
                record_type=record_type, column=level, rule=ALIKE_RULE, count=count, of="areas", fix=ALIKE_FIX
            )
