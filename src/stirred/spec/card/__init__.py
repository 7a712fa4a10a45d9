"""A specification for readers: one sentence, a table, Markdown, and a self-contained HTML card."""

from stirred.spec.card.card import Card, page
from stirred.spec.card.contents import TotalPart, Variant, shortened
from stirred.spec.card.odds import Allowed, allowed

__all__ = ["Allowed", "Card", "TotalPart", "Variant", "allowed", "page", "shortened"]
