"""Labels of levels: the words of a codebook for its codes, and back."""

from collections.abc import Callable, Mapping

from stirred.census.codebook.schema import Schema


def collect_labels(schema: Schema) -> dict[str, dict[str, dict[str, str]]]:
    """Return the labels of a codebook as record type → variable → code → label."""
    found = {
        record.name: {
            variable.name: dict(variable.labels) for variable in record.variables if variable.labels
        }
        for record in schema.records
    }
    return {name: labels for name, labels in found.items() if labels}


def find_code(word: str, labels: Mapping[str, str]) -> str:
    """Return the code that a word stands for: a code itself, or the code with this label in any case.

    >>> tenure = {"1": "owned", "3": "rented"}
    >>> find_code("Rented", tenure), find_code("1", tenure), find_code("other", tenure)
    ('3', '1', 'other')
    """
    if word in labels:
        return word
    found = [code for code, label in labels.items() if label.casefold() == word.casefold()]
    return found[0] if len(found) == 1 else word


def make_coder(schema: Schema) -> Callable[[str, str], str]:
    """Return a function from variable and level to its code; it returns the level where no one code fits."""
    records = collect_labels(schema).values()

    def code(variable: str, level: str) -> str:
        found = {find_code(level, labels[variable]) for labels in records if variable in labels} - {level}
        return found.pop() if len(found) == 1 else level

    return code
