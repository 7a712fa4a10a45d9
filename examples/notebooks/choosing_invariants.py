# %% [markdown]
# # Choosing invariants
#
# An invariant costs no budget, so it looks free. Here is what it costs: the number of data sets that agree with the exact
# numbers shrinks, and where only one is left, nothing is protected at all.

# %%
import os
from pathlib import Path

import altair as alt

import stirred as st
from stirred.assess.universe import measure_universe
from stirred.census.synthetic import synthesise

HOUSEHOLDS = int(os.environ.get("STIRRED_HOUSEHOLDS", "2000"))
PICTURES = Path("pictures")
PICTURES.mkdir(exist_ok=True)

made = synthesise("demo", households=HOUSEHOLDS)
census = st.Census.of(made.schema, made.tables)

# %% [markdown]
# ## The same swap, matched on more and more
#
# Each variable that is matched joins the exact tables by place.

# %%
CHOICES = [
    ["state"],
    ["state", "size"],
    ["state", "size", "tenure"],
    ["state", "size", "tenure", "race"],
    ["state", "size", "tenure", "race", "age"],
]
rows = []
for match in CHOICES:
    psa = st.PermutationSwapping(match=match, swap=["county", "tract", "block_group", "block"], rate="1/20")
    promise = psa.specification(census)
    measures = {measure.name: measure.value for measure in measure_universe(promise, census).measures}
    alone = measures["records in strata with one data set"]
    bits = measures["ways to place records whose other values are known"]
    label = " × ".join(match)
    rows.append({"match": label, "epsilon": float(promise.budget.upper(4)), "bits": bits, "alone": alone})
    print(f"{label}: {promise.shown_budget}, {bits:.1f} bits open, {alone:.0%} without any protection")

# %%
x = alt.X(
    "match:N",
    sort=[row["match"] for row in rows],
    title="matched, hence exact by place",
    axis=alt.Axis(labelAngle=-25),
)
table = alt.InlineData(values=rows)
budgets = (
    alt.Chart(table).mark_bar(color="#0b6e6e").encode(x=x, y=alt.Y("epsilon:Q", title="ε per household"))
)
alone_bars = (
    alt.Chart(table)
    .mark_bar(color="#b3541e")
    .encode(
        x=x,
        y=alt.Y("alone:Q", title="households in strata with one data set", axis=alt.Axis(format="%")),
    )
)
picture = alt.hconcat(
    budgets.properties(width=260, height=220), alone_bars.properties(width=260, height=220)
).properties(title="The number improves while the protection goes")
picture.save(str(PICTURES / "choosing-invariants.svg"))

# %% [markdown]
# ε falls from left to right, because there are fewer households left to exchange. *Bits open* says how many places a
# household could still have for someone who knows the exact numbers: 4 bits are 16 equally likely ones. With age matched,
# many households are in strata where nothing can be exchanged. Budgets of different invariants may not be compared: look
# at both panels, or at neither.
