"""A specification for readers: one sentence, a table, Markdown, and a self-contained HTML card."""

from stirred.spec.card.card import NOT_TOUCHED, Card, Piece, Variant, page, shortened
from stirred.spec.card.odds import Allowed, allowed

__all__ = ["NOT_TOUCHED", "Allowed", "Card", "Piece", "Variant", "allowed", "page", "shortened"]
