# %% [markdown]
# # Attacking a release
#
# An attacker knows block, sex and age of everyone and wants race and Hispanic origin. How many of the exposed persons are
# found after swaps at several rates, beside what a guess finds? Internal for a real census; this one is synthetic.

# %%
import os
from pathlib import Path

import altair as alt
import polars as pl

import stirred as st
from stirred.assess.attack import attack
from stirred.census.synthetic import synthesise

HOUSEHOLDS = int(os.environ.get("STIRRED_HOUSEHOLDS", "2000"))
PICTURES = Path("pictures")
PICTURES.mkdir(exist_ok=True)

made = synthesise("demo", households=HOUSEHOLDS)
census = st.Census.of(made.schema, made.tables)

# %% [markdown]
# ## Swap, attack, count
#
# *Nonmodal uniques* are persons unlike most of their block, and the only one there of their sex and age class.

# %%
rows = []
for rate in ("1/100", "1/10", "1/2"):
    psa = st.PermutationSwapping(
        match=["state", "size"], swap=["county", "tract", "block_group", "block"], rate=rate
    )
    release = psa.release(census, key=st.Key.for_tests(1))
    found = attack(release, census, areas=2).tables["reidentification"]
    for row in found.filter(pl.col("class") == "nonmodal unique").to_dicts():
        rows.append(
            {"rate": rate, "method": row["method"], "recall": row["recall"], "precision": row["precision"]}
        )
        print(f"rate {rate}, {row['method']}: recall {row['recall']:.2f}, precision {row['precision']:.2f}")

# %%
order = ["attack on the truth", "attack", "proportional guess", "modal guess"]
picture = (
    alt.Chart(alt.InlineData(values=[row for row in rows if row["method"] in order]))
    .mark_bar()
    .encode(
        x=alt.X("rate:N", sort=["1/100", "1/10", "1/2"], title="swap rate", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=order),
        y=alt.Y("recall:Q", title="exposed persons found", axis=alt.Axis(format="%")),
        color=alt.Color("method:N", sort=order, title=None),
    )
    .properties(width=380, height=260, title="What an attack finds, beside guesses")
)
picture.save(str(PICTURES / "attack.svg"))

# %% [markdown]
# A low swap rate keeps tables accurate and leaves most of the exposed where an attacker looks for them. The budget of each
# release is finite all the same: it bounds what *one record* adds, for every attacker, and is silent about the rest.
