"""Labels of levels: the words of a codebook for its codes, and back."""

from collections.abc import Callable, Mapping

from stirred.census.codebook.schema import Schema


def labels_of(schema: Schema) -> dict[str, dict[str, dict[str, str]]]:
    """The labels of each record type's variables, where a codebook has them: record type → variable → code → label."""
    found = {
        record.name: {
            variable.name: dict(variable.labels) for variable in record.variables if variable.labels
        }
        for record in schema.records
    }
    return {name: labels for name, labels in found.items() if labels}


def code_of(word: str, labels: Mapping[str, str]) -> str:
    """The code that a word stands for: a code itself, or the one with this label (capitals do not matter).

    >>> tenure = {"1": "owned", "3": "rented"}
    >>> code_of("Rented", tenure), code_of("1", tenure), code_of("other", tenure)
    ('3', '1', 'other')
    """
    if word in labels:
        return word
    found = [code for code, label in labels.items() if label.casefold() == word.casefold()]
    return found[0] if len(found) == 1 else word


def coder(schema: Schema) -> Callable[[str, str], str]:
    """A function that gives the code of a variable's level, however it is named; record types that disagree give none."""
    records = labels_of(schema).values()

    def code(variable: str, level: str) -> str:
        found = {code_of(level, labels[variable]) for labels in records if variable in labels} - {level}
        return found.pop() if len(found) == 1 else level

    return code
