"""The words of cards and reports: one catalog file per language, and numbers as each language writes them."""

from stirred.languages.language import Language, recognise
from stirred.languages.phrase import CODES, Phrase, Value, spell_number, unit

__all__ = ["CODES", "Language", "Phrase", "Value", "recognise", "spell_number", "unit"]
