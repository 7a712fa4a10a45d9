"""The words of cards and reports: one catalog file per language, and numbers as each language writes them."""

from stirred.languages.catalog import CODES
from stirred.languages.language import Language
from stirred.languages.phrase import Phrase, Value
from stirred.languages.recognition import recognise
from stirred.languages.units import spell_number, unit

__all__ = ["CODES", "Language", "Phrase", "Value", "recognise", "spell_number", "unit"]
