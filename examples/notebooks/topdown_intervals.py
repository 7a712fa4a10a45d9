# %% [markdown]
# # TopDown and its intervals
#
# Noise is added to counts in every area, and whole persons are made from the noisy counts. Because the census here is
# synthetic, we can look at how often the published intervals hold the true number.

# %%
import os
from pathlib import Path

import altair as alt

import stirred as st
from stirred.census.synthetic import synthesise

HOUSEHOLDS = int(os.environ.get("STIRRED_HOUSEHOLDS", "5000"))
PICTURES = Path("pictures")
PICTURES.mkdir(exist_ok=True)

made = synthesise("demo", households=HOUSEHOLDS)
census = st.Census.of(made.schema, made.tables)

# %% [markdown]
# ## The promise
#
# The workload `small` asks for race by voting age, with the budget of the redistricting data of 2020. Exact are the
# population of the state and, since a census in memory names no file of areas, which blocks hold a household.

# %%
topdown = st.TopDown(workload="small", replicates=8)
print(topdown.specification(census))
release = topdown.release(census, key=st.Key.for_tests(1))  # a real release: st.Key.fresh()

# %% [markdown]
# ## Persons by block: estimate, interval, truth

# %%
truth = {row["block"]: row["count"] for row in census.counts("person", ["block"]).to_pylist()}
rows = [{**row, "truth": truth.get(row["block"], 0)} for row in topdown.table(release, ["block"]).to_pylist()]
held = sum(row["low"] <= row["truth"] <= row["high"] for row in rows)
print(f"{held} of {len(rows)} intervals hold the true number; 95 of 100 should")

# %%
shown = alt.InlineData(values=sorted(rows, key=lambda row: row["truth"])[:: max(1, len(rows) // 40)])
base = alt.Chart(shown).encode(y=alt.Y("block:N", sort=None, title="block", axis=alt.Axis(labels=False)))
intervals = base.mark_rule(color="#9bbcbc", strokeWidth=3).encode(
    x=alt.X("low:Q", title="persons", scale=alt.Scale(zero=False)), x2="high:Q"
)
estimates = base.mark_tick(color="#0b6e6e", thickness=2).encode(x="estimate:Q")
true = base.mark_point(color="#b3541e", size=25).encode(x="truth:Q")
picture = (intervals + estimates + true).properties(
    width=460, height=360, title="Every few blocks: interval (bar), estimate (tick), truth (circle)"
)
picture.save(str(PICTURES / "topdown-intervals.svg"))

# %% [markdown]
# ## What one person's budget is spent on

# %%
noise = release.tables["small-noise"].to_pylist()
for row in noise[:6]:
    print({name: row[name] for name in list(row)[:4]})
