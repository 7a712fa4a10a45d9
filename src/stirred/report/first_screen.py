"""The first screen: six questions that every reader asks, answered in words and numbers before any section."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import polars as pl

from stirred.assess.assessment import Assessment
from stirred.languages import Phrase, Value, recognise
from stirred.report.accuracy import (
    Tables,
    compare_errors,
    compare_intervals,
    list_outside,
    read_published,
    summarize_errors,
    summarize_intervals,
)
from stirred.report.document import ReleaseAnswer, Reply, add_exception, relabel
from stirred.report.risk import PlainRisk
from stirred.spec import Specification
from stirred.spec.card import Card, OddsBound
from stirred.spec.domain import Domain
from stirred.spec.invariants import Invariant, Margin, abbreviate

MAX_TABLES_NAMED = 2  # exact tables that the first screen names
MAX_ROWS_SHOWN = 6  # published tables that the first screen lists


def first_screen(
    specifications: Mapping[str, Specification],
    *,
    tables: Mapping[str, Tables],
    assessments: Sequence[Assessment] = (),
    together: str = "",
    labels: Mapping[str, str] | None = None,
    risks: Mapping[str, PlainRisk] | None = None,
) -> tuple[Reply, ...]:
    """Return the six replies, one answer for each release by name; a single release may have the name "".

    With ``assessments`` the reply on accuracy is about the truth, and so internal; ``together`` says what publishing all
    of the releases costs; ``labels`` are the words for the names of variables; ``risks`` are what anyone can find in
    each release, which stands before the odds.
    """
    allowed = {name: Card(spec).bound_odds() for name, spec in specifications.items()}
    several = len(specifications) > 1
    return (
        _reply_learn(allowed, risks or {}),
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
        _reply_moved(specifications, {name: tables.get(name, {}) for name in specifications}, assessments),
        _reply_quote({name: tables.get(name, {}) for name in specifications}),
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


def _reply_learn(allowed: Mapping[str, OddsBound], risks: Mapping[str, PlainRisk]) -> Reply:
    """Reply what can be learnt: first what anyone finds in the release, then by how much odds can move."""
    answers: dict[str, tuple[str, str]] = {}
    for name, what in allowed.items():
        figure, words = _answer_learn(what)
        if name in risks:
            odds = Phrase("report.first.learn.then", figure=figure, words=words)
            figure, words = risks[name].figure, _sentences([risks[name].words, odds])
        answers[name] = figure, words
    return _reply("learn", "risk" if risks else "promise", answers, _learn_more(allowed))


def _sentences(words: Sequence[str]) -> str:
    """Join sentences, each in the page's language."""
    return reduce(lambda first, second: Phrase("report.two", first=first, second=second), words)


def _answer_learn(what: OddsBound) -> tuple[str, str]:
    if what.distance is None and what.sure:
        return Phrase("report.first.learn.everything"), Phrase("report.first.learn.everything_words")
    if what.log_odds is None:
        return Phrase("report.first.learn.unknown"), Phrase("report.first.learn.unknown_words")
    if what.log_odds.is_infinite():
        return Phrase("report.first.learn.unlimited"), Phrase("report.first.learn.unlimited_words")
    figure = Phrase("report.first.learn.figure", factor=what.factor)
    words = Phrase("report.first.learn.certain")
    if not what.near_certain:
        words = Phrase("report.first.learn.words", belief=what.belief(Fraction(1, 2)))
    return figure, add_exception(words, what)


def _learn_more(allowed: Mapping[str, OddsBound]) -> list[str]:
    """Return a comparison that people know, or a warning where the bound is weak."""
    known = [what for what in allowed.values() if what.log_odds is not None and what.log_odds.is_finite()]
    if any(what.near_certain for what in known):
        return [Phrase("report.first.learn.weak")]
    return [Phrase("report.first.learn.compare")] if known else []


def _reply_moved(
    specifications: Mapping[str, Specification],
    tables: Mapping[str, Tables],
    assessments: Sequence[Assessment],
) -> Reply:
    """Reply table by table: errors where the truth is given, else stated intervals; exact tables are said, not averaged."""
    several = len(specifications) > 1
    if assessments:
        exact = [all(item.exact and item.promised for item in one.tables) for one in assessments]
        if all(exact) and any(one.tables for one in assessments):
            return _reply("moved", "accuracy", {"": _ALL_EXACT})
        shown = compare_errors(assessments, tables) if several else summarize_errors(assessments[0])
        note = "compared_errors" if several else "errors"
    else:
        found = [one for ts in tables.values() for one in read_published(ts) if not one.has_no_error]
        if found and not any(one.uncertain().height for one in found):
            return _reply("moved", "accuracy", {"": _ALL_EXACT})
        shown = compare_intervals(tables) if several else summarize_intervals(found) if found else None
        note = "compared_intervals" if several else "intervals"
    if shown is None:
        words = (Phrase("report.first.moved.unstated"), Phrase("report.first.moved.unstated_words"))
        return _reply("moved", "accuracy", {"": words})
    more: list[str] = [Phrase(f"report.accuracy.note.{note}")]
    if len(shown.rows) > MAX_ROWS_SHOWN:
        more.append(Phrase("report.accuracy.more_tables", count=len(shown.rows) - MAX_ROWS_SHOWN))
    return replace(
        _reply("moved", "accuracy", {}, more), table=replace(shown, rows=shown.rows[:MAX_ROWS_SHOWN])
    )


_ALL_EXACT = (Phrase("report.first.moved.exact"), Phrase("report.first.moved.exact_words"))


def _reply_quote(releases: Mapping[str, Tables]) -> Reply:
    """Reply which number to quote, and in which tables counts lie outside their own interval, worst first."""
    frames = [one.frame for ts in releases.values() for one in read_published(ts) if not one.has_no_error]
    if not any(releases.values()):
        words = (Phrase("report.first.quote.records"), Phrase("report.first.quote.records_words"))
        return _reply("quote", "accuracy", {"": words})
    if not frames:
        words = (Phrase("report.first.quote.count"), Phrase("report.first.quote.count_words"))
        return _reply("quote", "accuracy", {"": words})
    outside = list_outside(releases)
    answer = (_quoted_number(frames), Phrase("report.first.quote.interval"))
    return _reply("quote", "accuracy", {"": answer}, [outside or Phrase("report.first.quote.within")])


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
