"""A specification for readers: one sentence, a table, Markdown, and a self-contained HTML card."""

from stirred.spec.card.card import Card, TotalPart, Variant, page, shorten
from stirred.spec.card.words import OddsBound, bound_odds

__all__ = ["Card", "OddsBound", "TotalPart", "Variant", "bound_odds", "page", "shorten"]
