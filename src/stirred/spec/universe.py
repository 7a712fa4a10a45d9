"""The realised universe: the values of the invariants, with a digest that can be published or withheld."""

from typing import TYPE_CHECKING, NoReturn

from stirred.errors import SpecificationError

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.spec.multiverse import AtLeast, SupportsCounts


def refuse_single_universe() -> NoReturn:
    """A specification for one realised universe only is refused, with the paper's reason (Section 2.1)."""
    raise SpecificationError(
        "a specification covers a multiverse, not one universe",
        why="the value of an invariant is accidental, only its being published is essential: "
        "the promise must hold whatever value it takes",
        fix="give Multiverse.of(the invariants); their realised values go into the receipt",
    )


def reaches(invariant: "AtLeast", counts: "SupportsCounts") -> "pa.Table":
    """Where the inequality holds, by area."""
    raise NotImplementedError
