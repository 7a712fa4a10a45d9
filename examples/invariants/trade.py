"""Invariants against budget: TopDown with the same budget under more and more invariants, each release attacked.

    python examples/invariants/trade.py --households 2000 --out trade/

Writes trade.csv, trade.svg and trade.png: what each set of invariants leaves open, what it makes certain, and how many of
the exposed persons an attacker finds who knows block, sex and age of everyone.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import altair as alt
import polars as pl

from stirred.assess.attack import attack
from stirred.assess.attack.records import EXPOSED_GROUP, PHRASE_BY_GROUP
from stirred.assess.risk import RiskMeasure
from stirred.assess.universe import trade
from stirred.census import Census
from stirred.census.synthetic import synthesise
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.workload import Rule
from stirred.spec import Margin, Multiverse

WORKLOAD = Path(__file__).parents[1] / "attack" / "blocks-by-age.toml"
VARIABLES = ["block", "sex", "age", "race", "hispanic"]
RECALL = "recall of reidentification, released records"
STATE, COUNTY, BLOCK = (("state", "total"), ("county", "total"), ("block", "total"))
# label → (level, query) of the tables that are exact; each set has all tables of the one before
SETS = {
    "state": [STATE],
    "county": [STATE, COUNTY],
    "block": [STATE, COUNTY, BLOCK],
    "block × race": [STATE, COUNTY, BLOCK, ("block", "hispanic * race")],
    "block × all": [STATE, COUNTY, BLOCK, ("block", "hispanic * race"), ("block", "detailed")],
}
# the variables of a query, as the census has them
OF = {"total": (), "hispanic * race": ("hispanic", "race"), "detailed": ("sex", "age", "hispanic", "race")}


def main() -> None:
    """Compute the table, and draw it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--households", type=int, default=2000)
    parser.add_argument("--rho", default="751/100", help="the total ρ² of every release")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    made = synthesise("demo", households=given.households)
    census = Census.of(made.schema, made.tables)
    sets = {
        label: Multiverse.of(*(Margin("person", (level, *OF[query])) for level, query in exact))
        for label, exact in SETS.items()
    }
    labels = {multiverse: label for label, multiverse in sets.items()}

    def found(multiverse: Multiverse) -> RiskMeasure:
        return recall(census, SETS[labels[multiverse]], given.rho)

    table = trade(sets, census, record_type="person", variables=VARIABLES, attack=found)
    given.out.mkdir(parents=True, exist_ok=True)
    table.write_csv(given.out / "trade.csv")
    for kind in ("svg", "png"):
        chart(table).save(str(given.out / f"trade.{kind}"))
    print(table.select("invariants", "bits", "implied", "certain", "attack", "attack_low", "attack_high"))


def recall(census: Census, exact: list[tuple[str, str]], rho: str) -> RiskMeasure:
    """How many of the exposed persons are found after TopDown with these exact tables."""
    workload = Workload.parse(WORKLOAD.read_text(encoding="utf-8"))
    rules = tuple(
        Rule(name=f"{query} by {level}", kind="exact", query=query, level=level) for level, query in exact
    )
    release = TopDown(
        workload=replace(workload, rules=rules), rho_squared=rho, mode="classic", replicates=0
    ).release(census, key=Key.for_tests(1))
    measures = attack(release, census, areas=1).measures
    return next(one for one in measures if one.name == RECALL and one.about == PHRASE_BY_GROUP[EXPOSED_GROUP])


def chart(table: pl.DataFrame) -> alt.HConcatChart:
    """Three panels over the same sets of invariants."""
    rows = alt.InlineData(values=table.to_dicts())
    x = alt.X("invariants:N", sort=list(SETS), title="exact tables", axis=alt.Axis(labelAngle=-30))
    panels = [
        ("bits", "bits that stay open, per person", ".0f"),
        ("certain", "persons who certainly stand in a cell", "%"),
        ("attack", "exposed persons found", "%"),
    ]
    drawn = [
        alt.Chart(rows)
        .mark_bar(color="#0b6e6e")
        .encode(x=x, y=alt.Y(f"{field}:Q", title=title, axis=alt.Axis(format=form)))
        .properties(width=190, height=220)
        for field, title, form in panels
    ]
    between = alt.Chart(rows).mark_rule().encode(x=x, y="attack_low:Q", y2="attack_high:Q")
    return alt.hconcat(drawn[0], drawn[1], drawn[2] + between)


if __name__ == "__main__":
    main()
