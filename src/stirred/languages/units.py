"""What is protected, as nouns: a household, two persons, a household record, in every language."""

from stirred.languages.catalog import catalog
from stirred.languages.phrase import Phrase, Value

MAX_SPELLED_NUMBER = 10  # numbers up to here are written as words


def unit(name: str, form: str) -> Phrase:
    """Return a form of the noun for a unit or record type; an unknown name stays as it is.

    >>> unit("household", "records"), unit("firm", "records")
    ('household records', 'firm records')
    """
    key = f"unit.{name}.{form}"
    if key in catalog("en"):
        return Phrase(key)
    return Phrase(f"unit.other.{form}", unit=name, units=name if name.endswith("s") else name + "s")


def spell_number(number: int) -> Value:
    """Return a small number as a word, a larger one in digits.

    >>> spell_number(4), spell_number(16)
    ('four', '16')
    """
    return Phrase(f"lists.words.{number}") if 0 <= number <= MAX_SPELLED_NUMBER else str(number)
