"""Words for the parts of a query, in every language, where a preset uses the short names of the Bureau."""

from collections.abc import Mapping
from functools import reduce

from stirred.languages import Phrase
from stirred.languages.catalog import catalog
from stirred.mechanisms.topdown.workload.histogram import name_column
from stirred.mechanisms.topdown.workload.workload import Workload


def describe_axis(name: str) -> str:
    """Return an axis or a recode in words; a name that no preset uses stays as it is.

    >>> describe_axis("hhgq"), describe_axis("canton")
    ('type of quarters', 'canton')
    """
    key = f"topdown.axis.{name}"
    return Phrase(key) if key in catalog("en") else name


def describe_query(workload: Workload, name: str) -> str:
    """Return in words what a query counts by: its axes, crossed.

    >>> preset = Workload.preset("pl94-persons")
    >>> describe_query(preset, "votingage * hispanic"), describe_query(preset, "detailed"), describe_query(preset, "total")
    ('voting age × Hispanic origin', 'all variables', 'total')
    """
    axes = workload.histogram.axes
    parts = workload.query(name).parts
    if not parts:
        return Phrase("topdown.axis.total")
    if len(parts) > 1 and set(parts) == {axis.name for axis in axes}:
        return Phrase("topdown.axis.detailed")
    return reduce(_cross_words, (_describe_part(workload, part) for part in parts))


def label_levels(workload: Workload, names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the labels of each published column, by code; ``names`` are the Bureau's, if asked for.

    >>> label_levels(Workload.preset("small"), {})["votingage"]
    {'0': 'under 18', '1': '18 and over'}
    """
    found = {}
    for axis in workload.histogram.axes:
        name, first = name_column(axis, dict(names))
        if axis.labels:
            found[name] = {str(first + level): label for level, label in enumerate(axis.labels)}
    return found


def _describe_part(workload: Workload, part: str) -> str:
    """Return one part of a query in words; a recode without words says how many groups it has."""
    axis = next(axis for axis in workload.histogram.axes if part == axis.name or part in axis.recodes)
    said = describe_axis(part)
    if part == axis.name or isinstance(said, Phrase) or not isinstance(describe_axis(axis.name), Phrase):
        return said
    return Phrase("topdown.exhibit.grouped", axis=describe_axis(axis.name), number=axis.groups(part))


def _cross_words(first: str, second: str) -> str:
    return Phrase("topdown.exhibit.crossed", first=first, second=second)
