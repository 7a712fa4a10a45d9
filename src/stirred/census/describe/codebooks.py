"""Read codes and labels from a file's own codebook: metadata that does not come from the records."""

from pathlib import Path

from stirred.census.codebook.schema import Source
from stirred.census.readers import ipums, stat
from stirred.census.readers.dispatch import format_of
from stirred.census.readers.paths import resolve
from stirred.extras import optional

Codebook = dict[str, dict[str | int, str]]  # column → code → label


def codebook_of(source: Source, folder: Path) -> Codebook:
    """The value labels of SPSS, Stata and SAS files and the codes of IPUMS codebooks; other files have none."""
    kind = format_of(source, folder)
    if kind == "stat":
        return _stat(resolve(source.files, folder, tuple(stat.READERS))[0])
    if kind == "ipums":
        book = ipums.codebook(source, folder)
        return {
            v.name: {code: label for label, code in v.codes.items()} for v in book.data_description if v.codes
        }
    return {}


def _stat(path: Path) -> Codebook:
    library = optional("pyreadstat", "stat", why="SPSS, Stata and SAS files are read with it")
    _, meta = getattr(library, stat.READERS[path.suffix.lower()])(
        path, metadataonly=True, output_format="dict"
    )
    found: Codebook = {}
    for column, labels in meta.variable_value_labels.items():
        found[column] = {_code(code): str(label) for code, label in labels.items()}
    return found


def _code(code: object) -> str | int:
    return int(code) if isinstance(code, int | float) and float(code).is_integer() else str(code)
