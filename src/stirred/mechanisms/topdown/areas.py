"""Which areas the tree has, and who decides it: a public file of areas, or else the records that have a home.

A tree made of records shows in which areas there are records, of every type that was looked at. Each of these types is
therefore an invariant. All engines take the types from ``deciding``, so that no tree is read that was not declared.
"""

from typing import TYPE_CHECKING

from stirred.spec import AtLeast, Margin

if TYPE_CHECKING:
    from stirred.census import Census


def deciding(census: "Census") -> tuple[str, ...]:
    """The record types whose records decide which areas there are; none where a public file lists the areas.

    A linked record decides nothing: a person stands where its household stands.

    >>> from stirred.census import Census
    >>> toy = {"geography": {"spine": ["county"]}, "record": {"household": {"id": "h"}, "person": {"household": "h"}}}
    >>> home = {"h": [1], "county": ["a"]}
    >>> deciding(Census.of(toy, {"household": home, "person": {"h": [1]}, "group quarters": home}))
    ('household', 'group quarters')
    """
    if census.schema.geography.areas is not None:
        return ()
    return tuple(record.name for record in census.schema.records if not record.linked_to)


def tree_invariants(census: "Census") -> tuple[AtLeast, ...]:
    r"""What a tree made of records tells: $1[n_R(\ell) \ge 1]$ for every leaf $\ell$ and every deciding record type R.

    The levels above a leaf and the areas beside the spine that it lies in are public: the domain says that the leaf
    determines them, for every data set in the same way.
    """
    if not census.schema.spine:
        return ()
    leaf = census.schema.spine[-1]
    return tuple(
        AtLeast(Margin(record, (leaf,)), 1, f"which areas of level {leaf} hold a {record} record")
        for record in deciding(census)
    )
