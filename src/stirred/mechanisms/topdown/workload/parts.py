"""An axis made of parts: its levels are the combinations of the parts' levels that no rule excludes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.topdown.workload.histogram import AxisSource, Recode

Excluded = Mapping[
    str, tuple[int, ...]
]  # part → levels; a combination with one of them in each part is excluded


@dataclass(frozen=True, kw_only=True)
class AxisPart:
    """One part: its name, the words for its levels, and the columns that they come from."""

    name: str
    labels: tuple[str, ...]
    source: AxisSource


@dataclass(frozen=True, kw_only=True)
class AxisParts:
    """Parts in order, the last varying fastest, without the combinations that some exclusion matches in full.

    >>> one = AxisPart(name="size", labels=("one", "two or more"), source=AxisSource(column="size"))
    >>> two = AxisPart(name="couple", labels=("no couple", "couple"), source=AxisSource(column="couple"))
    >>> parts = AxisParts(parts=(one, two), without=({"size": (0,), "couple": (1,)},))
    >>> parts.labels
    ('one, no couple', 'two or more, no couple', 'two or more, couple')
    >>> parts.recode({"couple": (0, 1)})
    (0, 0, 1)
    """

    parts: tuple[AxisPart, ...]
    without: tuple[Excluded, ...] = ()

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Return the levels of the parts in each level of the axis."""
        excluded = [tuple((self._at(name), levels) for name, levels in one.items()) for one in self.without]
        every = product(*(range(len(part.labels)) for part in self.parts))
        return tuple(
            one
            for one in every
            if not any(all(one[at] in levels for at, levels in rule) for rule in excluded)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the words for each level: those of its parts."""
        return tuple(
            ", ".join(part.labels[level] for part, level in zip(self.parts, one, strict=True))
            for one in self.levels
        )

    @property
    def source(self) -> AxisSource:
        """Return the product of the parts' sources, without the excluded combinations."""
        sizes = [len(part.labels) for part in self.parts]
        strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
        kept = tuple(
            sum(level * stride for level, stride in zip(one, strides, strict=True)) for one in self.levels
        )
        crossed = tuple((part.source, size) for part, size in zip(self.parts, sizes, strict=True))
        return AxisSource(product=crossed, levels=kept)

    def recode(self, groups: Mapping[str, tuple[int, ...]]) -> Recode:
        """Return each level's group, by the crossed groups of some parts; only groups in use count."""
        by = [(self._at(name), numbers) for name, numbers in groups.items()]
        for at, numbers in by:
            if len(numbers) != len(self.parts[at].labels):
                raise InputError(
                    f"a recode gives {len(numbers)} groups to part {self.parts[at].name}",
                    why=f"each of its {len(self.parts[at].labels)} levels has one group",
                    fix="write one number for each level",
                )
        crossed = [tuple(numbers[one[at]] for at, numbers in by) for one in self.levels]
        number = {group: i for i, group in enumerate(sorted(set(crossed)))}
        return tuple(number[group] for group in crossed)

    def _at(self, name: str) -> int:
        names = [part.name for part in self.parts]
        if name not in names:
            raise InputError(
                f"no part {name} of the axis",
                why="recodes and exclusions name parts of their axis",
                fix=did_you_mean(name, names),
            )
        return names.index(name)
