"""The first screen: six questions that every reader asks, answered in words and numbers before any section."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.assessment import Assessment
from stirred.frames import median
from stirred.languages import Phrase, Value, recognise
from stirred.mechanisms.exhibits import round_digits
from stirred.report.document import (
    ReleaseAnswer,
    Reply,
    add_exception,
    count_tosses,
    interval_reach,
    percent,
    relabel,
)
from stirred.spec import Specification
from stirred.spec.card import Card, OddsBound
from stirred.spec.domain import Domain
from stirred.spec.invariants import Invariant, Margin, abbreviate

Tables = Mapping[str, tuple[Sequence[str], pa.Table]]
MAX_TABLES_NAMED = 2  # exact tables that the first screen names


def first_screen(
    specifications: Mapping[str, Specification],
    *,
    tables: Mapping[str, Tables],
    assessments: Sequence[Assessment] = (),
    together: str = "",
    labels: Mapping[str, str] | None = None,
) -> tuple[Reply, ...]:
    """Return the six replies, one answer for each release by name; a single release may have the name "".

    With ``assessments`` the reply on accuracy is about the truth, and so internal; ``together`` says what publishing all
    of the releases costs; ``labels`` are the words for the names of variables.
    """
    allowed = {name: Card(spec).bound_odds() for name, spec in specifications.items()}
    several = len(specifications) > 1
    return (
        _reply(
            "protected",
            "promise",
            {n: _answer_protected(s, allowed[n], several=several) for n, s in specifications.items()},
        ),
        _reply(
            "exact",
            "exact",
            {n: _answer_exact(s, labels or {}, several=several) for n, s in specifications.items()},
            _exact_more(specifications),
        ),
        _reply(
            "learn",
            "promise",
            {n: _answer_learn(a, several=several) for n, a in allowed.items()},
            _learn_more(allowed),
        ),
        _reply("moved", "accuracy", _answer_moved(specifications, tables, assessments)),
        _quotes({name: tables.get(name, {}) for name in specifications}),
        _reply("limits", "promise", {}, _limits(specifications)),
        *([_reply("together", "promise", {}, [together])] if together else []),
    )


def _reply(
    name: str, chapter: str, answers: Mapping[str, tuple[str, str]], more: Sequence[str] = ()
) -> Reply:
    """Return a reply; an answer that several releases share is given once."""
    same: dict[tuple[str, str], list[str]] = {}
    for release, pair in answers.items():
        same.setdefault(pair, []).append(release)
    found = [
        ReleaseAnswer(
            release=Phrase("report.names", names=tuple(releases)) if len(same) > 1 else "",
            figure=figure,
            words=words,
        )
        for (figure, words), releases in same.items()
    ]
    return Reply(
        question=Phrase(f"report.first.{name}.question"),
        answers=tuple(found),
        chapter=chapter,  # type: ignore[arg-type]
        more=tuple(more),
    )


def _answer_protected(specification: Specification, what: OddsBound, *, several: bool) -> tuple[str, str]:
    """Return the unit, and the smallest change of the data that the invariants allow."""
    if not specification.budget.is_finite:
        return Phrase("report.first.protected.nobody"), Phrase("report.first.protected.nobody_words")
    unit = specification.input_premetric.unrestricted.unit
    name = unit if unit in ("household", "person") else "other"
    words = Phrase(f"report.first.protected.{'short' if several else 'change'}", change=what.change)
    return Phrase(f"report.first.protected.{name}", unit=unit), words


def _answer_exact(
    specification: Specification, labels: Mapping[str, str], *, several: bool
) -> tuple[str, str]:
    kept = [
        relabel(_name_invariant(invariant, specification.domain), labels)
        for invariant in specification.multiverse
    ]
    if not kept:
        return Phrase("report.first.exact.nothing"), Phrase("report.first.exact.nothing_words")
    most = 1 if several else MAX_TABLES_NAMED
    named: list[Value] = [*kept[:most]]
    if len(kept) > most:
        named.append(Phrase("report.first.exact.others", count=len(kept) - most))
    return (
        Phrase("report.first.exact.figure", count=len(kept)),
        Phrase("report.first.exact.words", tables=tuple(named)),
    )


def _name_invariant(invariant: Invariant, domain: Domain) -> str:
    """Name an exact table by its variables in words; a table with its own name keeps it."""
    if isinstance(invariant, Margin) and getattr(recognise(invariant.label), "key", "") == "invariant.table":
        invariant = replace(invariant, label="")
    told = recognise(abbreviate(invariant, domain))
    if isinstance(told, Phrase) and told.key == "invariant.table":
        variables = told.values["variables"]
        if not isinstance(variables, Phrase) and isinstance(variables, str):
            return Phrase(told.key, **{**told.values, "variables": tuple(variables.split(" × "))})
    return told


def _exact_more(specifications: Mapping[str, Specification]) -> list[str]:
    kept = any(list(spec.multiverse) for spec in specifications.values())
    return [Phrase("report.first.exact.more")] if kept else []


def _answer_learn(what: OddsBound, *, several: bool) -> tuple[str, str]:
    if what.distance is None and what.sure:
        return Phrase("report.first.learn.everything"), Phrase("report.first.learn.everything_words")
    if what.log_odds is None:
        return Phrase("report.first.learn.unknown"), Phrase("report.first.learn.unknown_words")
    if what.log_odds.is_infinite():
        return Phrase("report.first.learn.unlimited"), Phrase("report.first.learn.unlimited_words")
    figure, coins = Phrase("report.first.learn.figure", factor=what.factor), count_tosses(what.log_odds)
    words = Phrase("report.first.learn.short", tosses=coins)
    if not several:
        words = Phrase("report.first.learn.words", belief=what.belief(Fraction(1, 2)), tosses=coins)
    return figure, add_exception(words, what)


def _learn_more(allowed: Mapping[str, OddsBound]) -> list[str]:
    """Return a comparison that people know, and a warning where the bound is weak."""
    known = [what for what in allowed.values() if what.log_odds is not None and what.log_odds.is_finite()]
    said: list[str] = [Phrase("report.first.learn.compare")] if known else []
    if any(what.near_certain for what in known):
        said.append(Phrase("report.first.learn.weak"))
    return said


def _answer_moved(
    specifications: Mapping[str, Specification],
    tables: Mapping[str, Tables],
    assessments: Sequence[Assessment],
) -> dict[str, tuple[str, str]]:
    if assessments:
        moved = {item.name for a in assessments for item in a.tables if not item.exact}
        return {a.name if len(assessments) > 1 else "": _error(a, moved) for a in assessments}
    return {name: _answer_uncertain(tables.get(name, {})) for name in specifications}


def _error(assessment: Assessment, moved: set[str]) -> tuple[str, str]:
    """Return the mean absolute error and the share of unchanged cells, over tables that some release moved."""
    pairs = [item.pair.arrays() for item in assessment.tables if item.name in moved]
    if not pairs:
        return Phrase("report.first.moved.exact"), Phrase("report.first.moved.exact_words")
    before = np.concatenate([pair[0] for pair in pairs])
    after = np.concatenate([pair[1] for pair in pairs])
    difference, held = np.abs(after - before), before > 0  # the same cells for every release
    relative = median(difference[held] / before[held]) if held.any() else 0.0
    same = percent(float((difference[held] == 0).mean())) if held.any() else percent(1.0)
    words = Phrase("report.first.moved.same", cells=int(held.sum()), same=same)
    promised = {*assessment.exact_tables(promised=True)} & moved
    exact = [item.pair.arrays()[0] for item in assessment.tables if item.name in promised]
    if exact:
        number = sum(int((one > 0).sum()) for one in exact)
        words = Phrase("report.first.moved.promised", cells=int(held.sum()), same=same, number=number)
    if relative > 0:
        half = Phrase("report.first.moved.half", relative=percent(relative))
        words = Phrase("report.two", first=words, second=half)
    return Phrase("report.first.moved.figure", number=round_digits(float(difference.mean()))), words


def _answer_uncertain(tables: Tables) -> tuple[str, str]:
    """Return how far published numbers can be from the truth, from public numbers alone."""
    found = [frame for frame in map(_frame, tables.values()) if frame is not None]
    if not found:
        return Phrase("report.first.moved.unstated"), Phrase("report.first.moved.unstated_words")
    cells = pl.concat([frame.select("estimate", "standard_error", "low", "high") for frame in found])
    noisy = cells.filter(
        (pl.col("standard_error") > 0) & pl.col("standard_error").is_finite() & pl.col("low").is_not_null()
    )
    if not noisy.height:
        return Phrase("report.first.moved.exact"), Phrase("report.first.moved.exact_words")
    half = noisy.select(interval_reach())["reach"].to_numpy()
    share = half / np.maximum(noisy["estimate"].to_numpy(), 1.0)
    size = noisy["estimate"].to_numpy()
    said = (Phrase("report.first.moved.public", certain=cells.height - noisy.height, cells=cells.height),)
    small, big = size < 10, size >= 100
    words: list[str] = [*said]
    if small.any():
        words.append(Phrase("report.first.moved.small", number=round_digits(median(half[small]))))
    if big.any():
        words.append(Phrase("report.first.moved.large", percent=percent(median(share[big]))))
    return (
        Phrase("report.first.moved.typical", number=round_digits(median(half))),
        _sentences(words),
    )


def _sentences(words: Sequence[str]) -> str:
    """Join sentences, each in the page's language."""
    first, *rest = words
    said: str = first
    for one in rest:
        said = Phrase("report.two", first=said, second=one)
    return said


def _frame(shown: tuple[Sequence[str], pa.Table]) -> pl.DataFrame | None:
    frame = pl.DataFrame(pl.from_arrow(shown[1]))
    if not {"estimate", "standard_error", "low", "high"} <= set(frame.columns):
        return None
    return frame.with_columns(pl.col("estimate", "standard_error", "low", "high").cast(pl.Float64))


def _quotes(tables: Mapping[str, Tables]) -> Reply:
    """Reply which number to quote: one answer where all releases agree, with the largest share outside."""
    found = {name: _quote(one) for name, one in tables.items()}
    if len(found) > 1 and all(share is not None for _, share in found.values()):
        most = max(share for _, share in found.values() if share is not None)
        words = (
            Phrase("report.first.quote.several", outside=percent(most))
            if most
            else Phrase("report.first.quote.within")
        )
        named = {"": (_quoted_number([frame for one in tables.values() for frame in _frames(one)]), words)}
        return _reply("quote", "accuracy", named)
    return _reply("quote", "accuracy", {name: answer for name, (answer, _) in found.items()})


def _quote(tables: Tables) -> tuple[tuple[str, str], float | None]:
    """Return the number to quote and the share of counts outside their interval."""
    found = _frames(tables)
    if not tables:
        return (Phrase("report.first.quote.records"), Phrase("report.first.quote.records_words")), None
    if not found:
        return (Phrase("report.first.quote.count"), Phrase("report.first.quote.count_words")), None
    number = outside = 0
    for frame in found:
        side = frame.filter((pl.col("standard_error") > 0) & pl.col("low").is_not_null())
        value = pl.col("weighted" if "weighted" in side.columns else "count")
        number += side.height
        value = value.clip(lower_bound=0)  # noise may make a count negative, which no interval holds
        outside += side.filter((value < pl.col("low")) | (value > pl.col("high"))).height
    share = outside / number if number else 0.0
    words = (
        Phrase("report.first.quote.estimate_words", outside=percent(share))
        if share
        else Phrase("report.first.quote.within")
    )
    return (_quoted_number(found), words), share


def _frames(tables: Tables) -> list[pl.DataFrame]:
    """Return the tables that state how certain their numbers are."""
    return [frame for frame in map(_frame, tables.values()) if frame is not None]


def _quoted_number(frames: Sequence[pl.DataFrame]) -> Phrase:
    """Return which number is quoted: the estimate, or what the column ``quote`` names."""
    counted = any(
        not frame.filter(
            pl.col("standard_error") > 0, pl.col("quote").is_in(["count", "weighted"])
        ).is_empty()
        for frame in frames
        if "quote" in frame.columns
    )
    return Phrase("report.first.quote.named" if counted else "report.first.quote.estimate")


def _limits(specifications: Mapping[str, Specification]) -> list[str]:
    said: list[str] = [Phrase("report.first.limits.groups"), Phrase("report.first.limits.others")]
    if any(list(spec.multiverse) for spec in specifications.values()):
        said.insert(0, Phrase("report.first.limits.exact"))
    if any(spec.evidence.status != "proved" for spec in specifications.values()):
        said.append(Phrase("report.first.limits.evidence"))
    return said
