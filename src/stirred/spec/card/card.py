"""The card of a specification: as text, as Markdown and as one self-contained HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass

from stirred.languages import Language
from stirred.spec.card.contents import CardContents
from stirred.spec.card.formats import markdown, render_page, styled_fragment, text
from stirred.spec.compare import Comparison


@dataclass(frozen=True, slots=True)
class Card(CardContents):
    """A specification with a title and all it takes to read it; ``at_least`` marks a total that leaves releases out.

    ``language`` is "en", "de", "fr" or "es"; names and labels of the census stay as they are.
    """

    def text(self) -> str:
        """The card for a terminal."""
        return text(self)

    def markdown(self) -> str:
        """The card as Markdown."""
        return markdown(self)

    def html(self) -> str:
        """The card as one self-contained HTML page: no script, no outside file."""
        return page([self])

    def _repr_html_(self) -> str:
        return styled_fragment(self)


def page(
    cards: Sequence[Card],
    *,
    heading: str = "",
    lead: Sequence[str] = (),
    comparison: Comparison | None = None,
    language: str = "",
) -> str:
    """One or several cards as one self-contained HTML page, with their comparison; in the language of the first card."""
    spoken = Language.of(language or (cards[0].language if cards else "en"))
    return render_page(cards, heading=heading, lead=lead, comparison=comparison, language=spoken)
