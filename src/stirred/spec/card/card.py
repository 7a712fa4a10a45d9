"""The card of a specification: as text, as Markdown and as one self-contained HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass

from stirred.languages import Language
from stirred.spec.card.contents import CardContents
from stirred.spec.card.formats import render_page, write_markdown, write_styled_fragment, write_text
from stirred.spec.compare import Comparison


@dataclass(frozen=True, slots=True)
class Card(CardContents):
    """A specification with a title and all that a reader needs; ``at_least`` marks an incomplete total.

    ``language`` is "en", "de", "fr" or "es"; names and labels of the census stay as they are.
    """

    def text(self) -> str:
        """Return the card as text for a terminal."""
        return write_text(self)

    def markdown(self) -> str:
        """Return the card as Markdown."""
        return write_markdown(self)

    def html(self) -> str:
        """Return the card as one self-contained HTML page without scripts or outside files."""
        return page([self])

    def _repr_html_(self) -> str:
        return write_styled_fragment(self)


def page(
    cards: Sequence[Card],
    *,
    heading: str = "",
    lead: Sequence[str] = (),
    comparison: Comparison | None = None,
    language: str = "",
) -> str:
    """Return cards as one self-contained HTML page, with their comparison, in the language of the first card."""
    spoken = Language.of(language or (cards[0].language if cards else "en"))
    return render_page(cards, heading=heading, lead=lead, comparison=comparison, language=spoken)
