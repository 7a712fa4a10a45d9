"""The words of cards and reports: one catalog file per language, and numbers as each language writes them."""

from stirred.languages.phrase import CODES, Language, Phrase, Value, recognise, spell_number, unit

__all__ = ["CODES", "Language", "Phrase", "Value", "recognise", "spell_number", "unit"]
