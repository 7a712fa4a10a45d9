"""A specification for readers: one sentence, a table, Markdown, and a self-contained HTML card."""

from stirred.spec.card.card import Card, page
from stirred.spec.card.contents import TotalPart, Variant, shorten
from stirred.spec.card.odds import OddsBound, bound_odds

__all__ = ["Card", "OddsBound", "TotalPart", "Variant", "bound_odds", "page", "shorten"]
