"""Words for the parts of a query, in every language, where a preset uses the short names of the Bureau."""

from collections.abc import Mapping
from functools import reduce

from stirred.languages import Phrase
from stirred.languages.catalog import catalog
from stirred.mechanisms.topdown.workload.histogram import column
from stirred.mechanisms.topdown.workload.workload import Workload


def axis_words(name: str) -> str:
    """An axis or a recode in words; a name of one's own stays as it is.

    >>> axis_words("hhgq"), axis_words("canton")
    ('type of quarters', 'canton')
    """
    key = f"topdown.axis.{name}"
    return Phrase(key) if key in catalog("en") else name


def query_words(workload: Workload, name: str) -> str:
    """What a query counts by: its axes, crossed.

    >>> preset = Workload.preset("pl94-persons")
    >>> query_words(preset, "votingage * hispanic"), query_words(preset, "detailed"), query_words(preset, "total")
    ('voting age × Hispanic origin', 'all variables', 'total')
    """
    axes = workload.histogram.axes
    parts = workload.query(name).parts
    if not parts:
        return Phrase("topdown.axis.total")
    if len(parts) > 1 and set(parts) == {axis.name for axis in axes}:
        return Phrase("topdown.axis.detailed")
    return reduce(_crossed, (_part(workload, part) for part in parts))


def level_words(workload: Workload, names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The labels of each published column, by code; ``names`` are those of the Bureau, where they are asked for.

    >>> level_words(Workload.preset("small"), {})["votingage"]
    {'0': 'under 18', '1': '18 and over'}
    """
    found = {}
    for axis in workload.histogram.axes:
        name, first = column(axis, dict(names))
        if axis.labels:
            found[name] = {str(first + level): label for level, label in enumerate(axis.labels)}
    return found


def _part(workload: Workload, part: str) -> str:
    """One part of a query; a recode without words of its own says how many groups of its axis it has."""
    axis = next(axis for axis in workload.histogram.axes if part == axis.name or part in axis.recodes)
    said = axis_words(part)
    if part == axis.name or isinstance(said, Phrase) or not isinstance(axis_words(axis.name), Phrase):
        return said
    return Phrase("topdown.exhibit.grouped", axis=axis_words(axis.name), number=axis.groups(part))


def _crossed(first: str, second: str) -> str:
    return Phrase("topdown.exhibit.crossed", first=first, second=second)
