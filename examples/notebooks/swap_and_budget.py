# %% [markdown]
# # Swap a census and read the budget
#
# A synthetic census is swapped at several rates. The picture shows what a rate costs: a smaller protection loss budget,
# a larger error. Run it as a script (`python swap_and_budget.py`) or cell by cell in an editor that knows `# %%`.
# It needs `pip install 'stirred[paper]'` for the picture, which is written to `pictures/`.

# %%
import os
from pathlib import Path

import altair as alt

import stirred as st
from stirred.census.synthetic import synthesise

HOUSEHOLDS = int(os.environ.get("STIRRED_HOUSEHOLDS", "20000"))
PICTURES = Path("pictures")
PICTURES.mkdir(exist_ok=True)

made = synthesise("demo", households=HOUSEHOLDS)
census = st.Census.of(made.schema, made.tables)

# %% [markdown]
# ## The promise, before anything is released
#
# Households change places within their state and household size. What is matched and what is held stays exact.

# %%
PLACES = ["county", "tract", "block_group", "block"]


def swap(rate: str) -> st.PermutationSwapping:
    """The swap at this rate."""
    return st.PermutationSwapping(match=["state", "size"], swap=PLACES, rate=rate)


promise = swap("1/20").specification(census)
print(promise.shown_budget)
for invariant in promise.multiverse.invariants:
    print("exact:", invariant)

# %% [markdown]
# ## Every rate has a budget and an error
#
# The error is the mean difference of households by tract and tenure between the swapped and the true census, per cell. The
# true census is synthetic, so anyone may look.

# %%
RATES = ["1/100", "1/50", "1/20", "1/10", "1/5", "1/2"]


def cells(table: list[dict[str, object]]) -> dict[tuple[object, object], int]:
    """The counts of a table by tract and tenure."""
    return {(row["tract"], row["tenure"]): int(str(row["count"])) for row in table}


truth = cells(census.counts("household", ["tract", "tenure"]).to_pylist())
rows = []
for number, rate in enumerate(RATES):
    psa = swap(rate)
    release = psa.release(census, key=st.Key.for_tests(number))  # a real release: st.Key.fresh()
    shown = cells(psa.table(release, ["tract", "tenure"]).to_pylist())
    error = sum(abs(shown.get(cell, 0) - count) for cell, count in truth.items()) / len(truth)
    rows.append({"rate": rate, "epsilon": float(release.specification.budget.upper(4)), "error": error})
    print(f"rate {rate}: {release.specification.shown_budget}, error {error:.2f} households")

# %% [markdown]
# ## The picture

# %%
points = alt.Chart(alt.InlineData(values=rows)).encode(
    x=alt.X("epsilon:Q", title="ε per household (smaller promises more)", scale=alt.Scale(zero=False)),
    y=alt.Y("error:Q", title="mean error of households by tract × tenure"),
)
drawn = points.mark_line(color="#9bbcbc") + points.mark_point(color="#0b6e6e", filled=True, size=60)
drawn += points.mark_text(dx=6, dy=-8, align="left").encode(text="rate:N")
picture = drawn.properties(width=420, height=260, title="What a swap rate buys, and what it costs")
picture.save(str(PICTURES / "swap-and-budget.svg"))

# %% [markdown]
# Every point has the same invariants, the same unit and the same measure, so these budgets may be compared. The curve
# says nothing about what the invariants give away: that is the notebook `choosing_invariants.py`.
