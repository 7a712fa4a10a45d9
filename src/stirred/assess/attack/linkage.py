"""Link released or reconstructed records to an attacker's file, and compare the links with guesses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.published_areas import age_class
from stirred.assess.risk import bootstrap_interval, wilson_interval
from stirred.assess.utility import BLOCK_BINS, bin_labels
from stirred.census import Census
from stirred.errors import InputError, did_you_mean

# The variables of a linkage: where a record is, what an attacker knows, and what he wants to learn.

AGE, AGE_CLASS = "age", "age_class"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkVariables:
    """The area, what is known of a person (``known``), and what is to be learned (``secret``).

    Links are made on the known variables as they are, then, among those left, with ages in the 38 classes of the block
    tables; a file without single years of age is linked on the classes alone.
    """

    area: str
    known: tuple[str, ...] = ("sex", "age")
    secret: tuple[str, ...] = ("race", "hispanic")
    parent: str = ""  # the larger area whose mode is guessed where a block has none

    @property
    def class_variables(self) -> tuple[str, ...]:
        """Return the known variables with ages in classes."""
        return tuple(AGE_CLASS if name == AGE else name for name in self.known)

    def add_keys(self, records: pl.DataFrame, *, also: Sequence[str] = ()) -> pl.DataFrame:
        """Add the area, the two link keys (``exact``, ``class_variables``) and the secret, each as one text.

        >>> people = pl.DataFrame({"block": ["a"], "sex": [1], "age": [23], "race": [2], "hispanic": [1]})
        >>> LinkVariables(area="block").add_keys(people).select("classed", "secret").rows()
        [('a·1·22', '2·1')]
        """
        if AGE in records.columns and AGE_CLASS not in records.columns:
            years = records[AGE].dtype.is_numeric()  # ages that are words stay as they are
            records = records.with_columns(
                (age_class(pl.col(AGE)) if years else pl.col(AGE)).alias(AGE_CLASS)
            )
        for name in (
            self.area,
            *self.class_variables,
            *(n for n in self.secret if n in records.columns),
            *also,
        ):
            if name not in records.columns:
                raise InputError(
                    f"the records have no {name}",
                    why="a linkage needs it",
                    fix=did_you_mean(name, records.columns),
                )
        place = pl.col(self.area).cast(pl.String).fill_null("")
        parent = pl.col(self.parent).cast(pl.String) if self.parent in records.columns else pl.lit("")
        exact = (
            _key(place, self.known) if set(self.known) <= set(records.columns) else pl.lit(None, pl.String)
        )
        has_secret = set(self.secret) <= set(records.columns)
        return records.select(
            *also,
            place.alias("area"),
            parent.alias("parent"),
            exact.alias("exact"),
            _key(place, self.class_variables).alias("classed"),
            (_text(self.secret) if has_secret else pl.lit(None, pl.String)).alias("secret"),
        )


def _text(names: Sequence[str]) -> pl.Expr:
    return pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in names], separator="·")


def _key(place: pl.Expr, names: Sequence[str]) -> pl.Expr:
    return pl.concat_str([place, _text(names)], separator="·") if names else place


# Link two files one to one, without replacement: records that agree on a key are paired in random order.

ROW, RANK = "row", "rank"


def link_records(left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str], *, seed: int) -> pl.DataFrame:
    """Return pairs of rows (``left``, ``right``, ``step``), linked on each key in turn among rows left over.

    Nobody is linked twice. Records of one key are interchangeable, so their order is random.

    >>> a = pl.DataFrame({"k": ["x", "x", "y"]}); b = pl.DataFrame({"k": ["x", "y", "y"]})
    >>> link_records(a, b, ["k"], seed=1).height
    2
    """
    draws = np.random.default_rng(seed)
    rest = [_shuffle_rows(left, keys, draws), _shuffle_rows(right, keys, draws)]
    found = []
    for step, key in enumerate(keys, 1):
        one, other = (
            side.filter(pl.col(key).is_not_null()).select(
                ROW, key, pl.int_range(pl.len()).over(key).alias(RANK)
            )
            for side in rest
        )
        pairs = one.join(other, on=[key, RANK], suffix="_right").select(
            pl.col(ROW).alias("left"), pl.col(f"{ROW}_right").alias("right"), pl.lit(step).alias("step")
        )
        found.append(pairs)
        rest = [
            side.join(pairs.select(pl.col(name).alias(ROW)), on=ROW, how="anti", maintain_order="left")
            for side, name in zip(rest, ("left", "right"), strict=True)
        ]
    return pl.concat(found).sort("right")


def count_agreement(left: pl.DataFrame, right: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """Count by area the records of ``right`` with the same secret in ``left``: exact, and also in classes.

    Columns: area, records, exact, classed (the second counts both).
    """
    sides = [
        side.select(
            "area",
            pl.concat_str(["exact", "secret"], separator="·").alias("exact"),
            pl.concat_str(["classed", "secret"], separator="·").alias("classed"),
        )
        for side in (left, right)
    ]
    pairs = link_records(sides[0], sides[1], ["exact", "classed"], seed=seed)
    steps = pl.Series("step", np.zeros(right.height, dtype=np.int64)).scatter(
        pairs["right"].to_numpy(), pairs["step"].cast(pl.Int64)
    )
    return (
        right.select("area", steps)
        .group_by("area")
        .agg(
            pl.len().alias("records"),
            (pl.col("step") == 1).sum().alias("exact"),
            (pl.col("step") > 0).sum().alias("classed"),
        )
        .sort("area")
    )


def _shuffle_rows(frame: pl.DataFrame, keys: Sequence[str], draws: np.random.Generator) -> pl.DataFrame:
    order = draws.permutation(frame.height)
    return frame.select(keys)[order].with_columns(pl.Series(ROW, order.astype(np.int64)))


# Files that an attacker might have: some of the people, with errors and earlier addresses, without the secret.

Draws = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    """The quality of an attacker's file: ``coverage`` of the people, and shares with an error.

    ``stale`` is the share of households that are listed where they do not live any more; ``wrong_area`` and ``wrong_sex``
    are shares of persons, ``wrong_age`` the share whose age is one year off.
    """

    name: str
    coverage: float = 1.0
    stale: float = 0.0
    wrong_area: float = 0.0
    wrong_sex: float = 0.0
    wrong_age: float = 0.0

    def __post_init__(self) -> None:
        for name in ("coverage", "stale", "wrong_area", "wrong_sex", "wrong_age"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is not between 0 and 1", why="it is a share", fix=f"{name}=0.1")


PERFECT = Attacker(name="perfect")
"""Everyone, with the right block, sex and age: the strong attacker of the reconstruction study."""

COMMERCIAL = Attacker(
    name="commercial", coverage=0.93, stale=0.5, wrong_area=0.13, wrong_sex=0.02, wrong_age=0.25
)
"""Like merged commercial files of 2010: 93 % of the people, about 37 % of the records right in block, sex and age class."""

ATTACKERS = {attacker.name: attacker for attacker in (PERFECT, COMMERCIAL)}


def find_attacker(name: str) -> Attacker:
    """Return the preset attacker of that name.

    >>> find_attacker("perfect").coverage
    1.0
    """
    if name not in ATTACKERS:
        raise InputError(
            f"no attacker is called {name}",
            why="the presets are " + ", ".join(ATTACKERS),
            fix=did_you_mean(name, ATTACKERS) + "; or make one: Attacker(name=…, coverage=…)",
        )
    return ATTACKERS[name]


def make_attacker_file(
    people: pl.DataFrame, attacker: Attacker, *, area: str, household: str = "", seed: int
) -> pl.DataFrame:
    """Make the attacker's file with columns id, area and what is known; a share of it is wrong.

    >>> people = pl.DataFrame({"id": [0, 1], "block": ["a", "b"], "sex": [1, 2], "age": [3, 40]})
    >>> make_attacker_file(people, PERFECT, area="block", seed=1).equals(people)
    True
    """
    draws = np.random.default_rng(seed)
    found = people.filter(_choose_rows(draws, people.height, attacker.coverage))
    if not found.height:
        return found
    groups = found[household] if household else pl.Series(np.arange(found.height))
    homes = groups.rank("dense").to_numpy().astype(np.int64) - 1
    moved = _choose_rows(draws, int(homes.max()) + 1, attacker.stale)[homes]
    from_home = draws.integers(0, found.height, int(homes.max()) + 1)[
        homes
    ]  # one new address for all of them
    elsewhere = draws.integers(0, found.height, found.height)
    wrong = _choose_rows(draws, found.height, attacker.wrong_area)
    place = np.where(moved, from_home, np.arange(found.height))
    place = np.where(wrong, elsewhere, place)
    columns = [found[area].gather(place)]
    if "sex" in found.columns and attacker.wrong_sex:
        sexes = found["sex"].unique().sort()
        at = found["sex"].rank("dense").to_numpy().astype(np.int64) - 1
        turned = np.where(_choose_rows(draws, found.height, attacker.wrong_sex), (at + 1) % len(sexes), at)
        columns.append(sexes.gather(turned).alias("sex"))
    if "age" in found.columns and found["age"].dtype.is_numeric() and attacker.wrong_age:
        step = np.where(draws.random(found.height) < 0.5, 1, -1)
        off = np.where(_choose_rows(draws, found.height, attacker.wrong_age), step, 0)
        ages = found["age"].cast(pl.Int64).to_numpy() + off
        columns.append(pl.Series("age", np.maximum(ages, 0)))
    return found.with_columns(columns)


def _choose_rows(draws: Draws, many: int, share: float) -> NDArray[np.bool_]:
    return draws.random(many) < share


# What someone guesses who has the release and an address, and links nothing: the baselines of every attack.
#
# With shares $p_i$ of an area's values, the modal guess is right for $\max_i p_i$ of its people, the proportional
# guess for $\sum_i p_i^2$ on average.

SECRET, AREA, PARENT = "secret", "area", "parent"


def find_modes(records: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the most frequent secret of each area, its share, and whether it is a proper mode.

    A tie, or an area of one record, has no proper mode; of values that tie, the one most frequent in all comes first.
    """
    overall = records.group_by(SECRET).agg(pl.len().alias("overall"))
    counted = records.group_by(by, SECRET).agg(pl.len().alias("many")).join(overall, on=SECRET, how="left")
    ordered = counted.sort([by, "many", "overall", SECRET], descending=[False, True, True, False])
    return ordered.group_by(by, maintain_order=True).agg(
        pl.col(SECRET).first().alias("mode"),
        (pl.col("many").first() / pl.col("many").sum()).alias("share"),
        ((pl.col("many").sum() > 1) & ((pl.col("many") == pl.col("many").first()).sum() == 1)).alias(
            "proper"
        ),
    )


def modal_guess(asked: pl.DataFrame, released: pl.DataFrame) -> pl.Series:
    """Guess the mode of the area; without a proper one that of the larger area, then that of all.

    >>> seen = pl.DataFrame({"area": ["a"] * 3, "parent": [""] * 3, "secret": ["x", "x", "y"]})
    >>> modal_guess(pl.DataFrame({"area": ["a", "b"], "parent": ["", ""]}), seen).to_list()
    ['x', 'x']
    """
    if not released.height:
        return pl.Series("guess", [None] * asked.height, dtype=pl.String)
    overall = find_modes(released.with_columns(pl.lit(0).alias("all")), "all")["mode"][0]
    found = asked.select(AREA, PARENT)
    for by, name in ((AREA, "near"), (PARENT, "wide")):
        proper = find_modes(released, by).filter(pl.col("proper")).select(by, pl.col("mode").alias(name))
        found = found.join(proper, on=by, how="left", maintain_order="left")
    return found.select(pl.coalesce("near", "wide", pl.lit(overall)).alias("guess")).to_series()


def proportional_guess(asked: pl.DataFrame, released: pl.DataFrame, *, seed: int) -> pl.Series:
    """Draw a value from the released records of the area, or from all records where it has none."""
    draws = np.random.default_rng(seed)
    ordered = released.sort(AREA)
    spans = ordered.with_row_index("at").group_by(AREA).agg(pl.col("at").min(), pl.len().alias("many"))
    asked_spans = asked.select(AREA).join(spans, on=AREA, how="left", maintain_order="left")
    start = asked_spans["at"].fill_null(0).to_numpy().astype(np.int64)
    many = asked_spans["many"].fill_null(ordered.height).to_numpy().astype(np.int64)
    if not ordered.height:
        return pl.Series("guess", [None] * asked.height, dtype=pl.String)
    place = start + np.floor(draws.random(asked.height) * many).astype(np.int64)
    return ordered[SECRET].gather(place).alias("guess")


def majority_guess(asked: pl.DataFrame, released: pl.DataFrame, *, least: float = 0.5) -> pl.Series:
    """Guess the released majority of the area; null where no value has that share.

    This is the rule of Francis (arXiv 2202.04872), which needs neither sex nor age.
    """
    major = (
        find_modes(released, AREA).filter(pl.col("share") > least).select(AREA, pl.col("mode").alias("guess"))
    )
    return asked.select(AREA).join(major, on=AREA, how="left", maintain_order="left")["guess"]


def random_draw_hits(people: pl.DataFrame, *, key: str, seed: int) -> dict[str, float]:
    """Count the hits of random (sex, age) pairs, as many for each area as it has people (Ruggles' null).

    ``with replacement`` asks whether anyone there has the pair, as published; ``without`` links each person once at most.
    ``people`` has the columns area and key, whose text begins with the area.
    """
    draws = np.random.default_rng(seed)
    if not people.height:
        return {"with replacement": 0.0, "without": 0.0}
    pair = people.select("area", pl.col(key).str.slice(pl.col("area").str.len_chars()).alias("pair"))
    drawn = pair["pair"].gather(draws.integers(0, people.height, people.height))
    guessed = people.select("area").with_columns(drawn)
    guessed = guessed.select("area", pl.concat_str(["area", "pair"]).alias(key))
    hit = guessed.join(people.select(key).unique(), on=key, how="semi").height
    once = link_records(guessed, people, [key], seed=seed).height
    return {"with replacement": hit / people.height, "without": once / people.height}


# Who is found by linking: putative and confirmed records, precision and recall, beside every guess.

Flags = NDArray[np.bool_]
LINK_KEYS = ("exact", "classed")
ATTACK, MODAL, PROPORTIONAL, MAJORITY, CEILING = (
    "attack",
    "modal guess",
    "proportional guess",
    "majority of the address",
    "attack on the truth",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkOutcome:
    """For each person of the truth, by row: whether a link (or guess) was made, and whether it is right."""

    putative: Flags
    confirmed: Flags


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reidentification:
    """The outcome of each method for each person, and the groups that it is reported by."""

    area: NDArray[np.int64]
    listed: Flags  # in the attacker's file
    groups: Mapping[tuple[str, str], Flags]
    found: Mapping[str, LinkOutcome]

    def counts(self, group: tuple[str, str], method: str) -> tuple[int, int, int]:
        """Return the persons of a group, those a method links, and those it is right about."""
        members, found = self.groups[group], self.found[method]
        return (
            int(members.sum()),
            int((members & found.putative).sum()),
            int((members & found.confirmed).sum()),
        )

    def precision(self, group: tuple[str, str], method: str) -> float | None:
        """Return the share of right links among the linked persons."""
        _, putative, confirmed = self.counts(group, method)
        return confirmed / putative if putative else None

    def recall(self, group: tuple[str, str], method: str) -> float | None:
        """Return the share of persons of the group that are linked and right."""
        persons, _, confirmed = self.counts(group, method)
        return confirmed / persons if persons else None

    def interval(
        self, group: tuple[str, str], method: str, *, of: str, seed: int = 1, confidence: float = 0.95
    ) -> tuple[float, float]:
        """Return the interval of ``precision`` or ``recall`` by a bootstrap of whole areas."""
        members, found = self.groups[group], self.found[method]
        base = members & found.putative if of == "precision" else members
        areas = int(self.area.max(initial=-1)) + 1
        hits = np.bincount(self.area[members & found.confirmed], minlength=areas).astype(np.float64)
        trials = np.bincount(self.area[base], minlength=areas).astype(np.float64)
        held = trials > 0
        return bootstrap_interval(hits[held], trials[held], seed=seed, confidence=confidence)

    def table(self) -> pl.DataFrame:
        """Return one row for each group and method, with Wilson's intervals."""
        rows = []
        for group, members in self.groups.items():
            for method in self.found:
                persons, putative, confirmed = self.counts(group, method)
                rows.append(
                    {
                        "group": group[0],
                        "class": group[1],
                        "method": method,
                        "persons": persons,
                        "listed": int((members & self.listed).sum()),
                        "putative": putative,
                        "confirmed": confirmed,
                        "precision": self.precision(group, method),
                        "recall": self.recall(group, method),
                        **dict(
                            zip(
                                ("precision_low", "precision_high"),
                                wilson_interval(confirmed, putative),
                                strict=True,
                            )
                        ),
                        **dict(
                            zip(
                                ("recall_low", "recall_high"),
                                wilson_interval(confirmed, persons),
                                strict=True,
                            )
                        ),
                    }
                )
        return pl.DataFrame(rows, infer_schema_length=None)


def reidentify(
    released: pl.DataFrame,
    truth: pl.DataFrame,
    attackers: pl.DataFrame,
    *,
    seed: int,
    unique_areas: pl.Series | None = None,
) -> Reidentification:
    """Link released (or reconstructed) records to an attacker's file and compare what he learns with the truth.

    All three are keyed by ``LinkVariables.add_keys``; ``attackers`` has a column ``person``, the row of the truth that a
    record is about. ``unique_areas`` are the areas whose reconstruction is proved to be the only one.
    """
    people = attackers["person"].to_numpy().astype(np.int64)
    listed = np.zeros(truth.height, dtype=np.bool_)
    listed[people] = True
    own = truth[people]
    right_place = (own["area"] == attackers["area"]) & (own["classed"] == attackers["classed"])
    at_address = (own["area"] == attackers["area"]).to_numpy()
    pairs = link_records(released, attackers, LINK_KEYS, seed=seed)
    rows = pairs["right"].to_numpy()
    asked = attackers[rows]
    guessed = {
        ATTACK: released["secret"].gather(pairs["left"]),
        MODAL: modal_guess(asked, released),
        PROPORTIONAL: proportional_guess(asked, released, seed=seed + 1),
    }
    found = {
        name: _score_guess(truth, people[rows], guess, right_place.to_numpy()[rows])
        for name, guess in guessed.items()
    }
    found[MAJORITY] = _score_guess(truth, people, majority_guess(attackers, released), at_address)
    best = link_records(truth, attackers, LINK_KEYS, seed=seed + 2)
    rows = best["right"].to_numpy()
    found[CEILING] = _score_guess(
        truth, people[rows], truth["secret"].gather(best["left"]), right_place.to_numpy()[rows]
    )
    area = truth["area"].rank("dense").to_numpy().astype(np.int64) - 1
    return Reidentification(area=area, listed=listed, groups=group_people(truth, unique_areas), found=found)


def group_people(truth: pl.DataFrame, unique_areas: pl.Series | None = None) -> dict[tuple[str, str], Flags]:
    """Group people by mode of their area, uniqueness on what is known, and size of the area."""
    flags = truth.join(
        find_modes(truth, "area").select("area", "mode"), on="area", how="left", maintain_order="left"
    )
    flags = flags.select(
        (pl.col("secret") == pl.col("mode")).alias("modal"),
        (pl.len().over("classed") == 1).alias("unique"),
        pl.len().over("area").alias("size"),
        pl.lit(None, pl.Boolean).alias("proved")
        if unique_areas is None
        else pl.col("area").is_in(unique_areas.implode()).alias("proved"),
    )
    modal, unique = flags["modal"].to_numpy(), flags["unique"].to_numpy()
    everyone = np.ones(truth.height, dtype=np.bool_)
    groups: dict[tuple[str, str], Flags] = {
        ("all", "all"): everyone,
        ("mode", "modal"): modal,
        ("mode", "nonmodal"): ~modal,
        ("unique", "unique"): unique,
        ("unique", "not unique"): ~unique,
        ("mode and unique", "nonmodal unique"): ~modal & unique,
    }
    if unique_areas is not None:
        proved = flags["proved"].to_numpy().astype(np.bool_)
        groups["area", "one reconstruction"] = proved
        groups["mode, unique and area", "nonmodal unique, one reconstruction"] = ~modal & unique & proved
    size = flags["size"].to_numpy()
    classes = np.searchsorted(np.asarray(BLOCK_BINS[2:]), size, side="right")
    for index, label in enumerate(bin_labels(BLOCK_BINS)[1:]):
        groups["size", label] = classes == index
    return groups


def _score_guess(
    truth: pl.DataFrame, people: NDArray[np.int64], guess: pl.Series, placed: Flags
) -> LinkOutcome:
    putative = np.zeros(truth.height, dtype=np.bool_)
    confirmed = np.zeros(truth.height, dtype=np.bool_)
    made = guess.is_not_null().to_numpy()
    right = (guess == truth["secret"].gather(people)).fill_null(value=False).to_numpy()
    putative[people] = made
    confirmed[people] = made & right & placed
    return LinkOutcome(putative=putative, confirmed=confirmed)


# The counterfactual of an attack: the same release made without what a person told, and the same attack on it.

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeaveOneOut:
    """Success of the attack on each target, in a release with and in one without the target's values."""

    included: NDArray[np.bool_]
    left_out: NDArray[np.bool_]

    @property
    def excess(self) -> float:
        """Return how much more often the attack is right because the target took part."""
        return float(self.included.mean() - self.left_out.mean()) if self.included.size else 0.0

    def interval(self, *, seed: int = 1, runs: int = 1000, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the excess by a bootstrap of the targets."""
        draws = np.random.default_rng(seed)
        step = self.included.astype(np.float64) - self.left_out
        if not step.size:
            return -1.0, 1.0
        means = [float(step[draws.integers(0, step.size, step.size)].mean()) for _ in range(runs)]
        low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)


def choose_targets(truth: pl.DataFrame, among: NDArray[np.bool_], *, most: int, seed: int) -> Rows:
    """Choose the rows to leave out: at most one of each area, so that they do not interact."""
    draws = np.random.default_rng(seed)
    order = draws.permutation(truth.height)
    shuffled = truth.select("area").with_row_index(PLACE_COLUMN)[order].filter(pl.Series(among[order]))
    return (
        shuffled.unique("area", keep="first", maintain_order=True)[PLACE_COLUMN]
        .head(most)
        .to_numpy()
        .astype(np.int64)
    )


PLACE_COLUMN = "place"


def replace_secrets(
    census: Census, record_type: str, secret: tuple[str, ...], targets: Rows, donors: Rows
) -> Census:
    """Return the census in which each target has the secret values of a donor; all else stays."""
    record = census.schema.record(record_type)
    source = pl.DataFrame(census.source(record_type).collect())
    if source.height != census.count(record_type):
        raise InputError(
            "this census cannot be made without a person",
            why=f"its {record_type} records are read from a file that also holds others",
            fix=f"give {record_type} records a file or table of their own",
        )
    rows = np.arange(source.height)
    rows[targets] = donors
    columns = {variable.name: variable.source for variable in record.variables}
    changed = source.with_columns(
        [source[columns.get(name, name)].gather(rows).alias(columns.get(name, name)) for name in secret]
    )
    return replace(census, files={**census.files, record_type: changed.lazy()})


def choose_donors(truth: pl.DataFrame, targets: Rows, *, seed: int) -> Rows:
    """Choose for each target another record of its area at random, or of anywhere where it lives alone."""
    draws = np.random.default_rng(seed)
    places = truth.select("area").with_row_index(PLACE_COLUMN).group_by("area").agg(pl.col(PLACE_COLUMN))
    asked = truth.select("area")[targets].join(places, on="area", how="left", maintain_order="left")
    found = []
    for target, near in zip(targets.tolist(), asked[PLACE_COLUMN].to_list(), strict=True):
        others = [row for row in near if row != target]
        found.append(draws.choice(others) if others else draws.integers(0, truth.height))
    return np.asarray(found, dtype=np.int64)


def leave_one_out(
    census: Census,
    released_of: Callable[[Census], pl.DataFrame],
    truth: pl.DataFrame,
    targets: Rows,
    *,
    record_type: str,
    secret: tuple[str, ...],
    seed: int,
) -> LeaveOneOut:
    """Release and attack twice: the census, and the census without the targets' own values.

    ``released_of`` makes keyed records of a new release of a census. The targets are replaced all at once, one to an area.
    """
    changed = replace_secrets(census, record_type, secret, targets, choose_donors(truth, targets, seed=seed))
    right = []
    for one in (census, changed):
        released = released_of(one)
        asked = truth[targets]
        pairs = link_records(released, asked, LINK_KEYS, seed=seed)
        guess = np.array(modal_guess(asked, released).to_list(), dtype=object)
        guess[pairs["right"].to_numpy()] = released["secret"].gather(pairs["left"]).to_list()
        right.append(guess == np.array(asked["secret"].to_list(), dtype=object))
    return LeaveOneOut(included=right[0].astype(np.bool_), left_out=right[1].astype(np.bool_))
