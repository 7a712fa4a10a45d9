"""The variables of a linkage: where a record is, what an attacker knows, and what he wants to learn."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stirred.assess.attack.reconstruction.block_tables import age_class
from stirred.errors import InputError, did_you_mean

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
