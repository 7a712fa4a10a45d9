"""Commented plans to start from."""

from collections.abc import Mapping, Sequence

SWAP = """# A release by the Permutation Swapping Algorithm (PSA).
title = "{title}"
census = "{census}"            # relative to this file; see: stirred data describe

[[mechanism]]
name = "permutation-swapping"
match = {match}   # records swap only with records equal on these: they make the strata
swap = {swap}    # what moves, together
rate = "{rate}"                # exact text: the share of records selected; more rate, less loss (up to about one half)
# resolution = "household"      # the record type that is swapped; its persons travel along

[publish]
microdata = true
formats = ["parquet"]         # add "csv" for CSV beside it

[[table]]
name = "{table}"
record_type = "household"
by = {by}

# Each invariant is published exactly and is not protected: say why.
[[reason]]
invariant = "{invariant}"
kind = "operation"            # law, operation or utility
text = "why this must be exact"
# citation = "the law, if it is one"

[budget]
owner = ""                    # who answers for it
# limit = "16"                # exact text; the plan is refused above it

[assess]
utility = true                # the internal report compares with the truth
relations = []                # pairs of variables, such as [["county", "tenure"]]
"""

TOPDOWN = """# A release by the TopDown Algorithm: noisy measurements, then consistent microdata.
title = "{title}"
census = "{census}"            # relative to this file; see: stirred data describe

[[mechanism]]
name = "topdown"
workload = "pl94-persons"     # pl94-persons, pl94-units, dhc-persons, dhc-units, small, or a TOML file
mode = "gls"                  # gls (default, more accurate at the same noise) or classic
# rho_squared = "2.5562"      # exact text; without it the preset's published budget
replicates = 20               # runs on its own output, for the intervals of tables; no privacy cost

[publish]
microdata = true
formats = ["parquet"]

[[reason]]
invariant = "state population"
kind = "law"
text = "apportionment"
citation = "U.S. Constitution, Article I, Section 2"

[budget]
owner = ""
"""


def toml_list(names: Sequence[str]) -> str:
    """A TOML list of texts.

    >>> toml_list(["a", "b"])
    '["a", "b"]'
    """
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def swap_plan(answers: Mapping[str, str]) -> str:
    """A commented plan for a swap from a few answers."""
    match = [name for name in answers["match"].replace(",", " ").split() if name]
    swap = [name for name in answers["swap"].replace(",", " ").split() if name]
    by = [name for name in answers["by"].replace(",", " ").split() if name]
    return SWAP.format(
        title=answers["title"],
        census=answers["census"],
        match=toml_list(match),
        swap=toml_list(swap),
        rate=answers["rate"],
        table="-by-".join(reversed(by)) if len(by) == 2 else "-".join(by),
        by=toml_list(by),
        invariant=f"households by {' × '.join([*match, *swap])}",
    )
