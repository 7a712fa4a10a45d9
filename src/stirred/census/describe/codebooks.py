"""Read codes and labels from a file's own codebook: metadata that does not come from the records."""

from pathlib import Path

from stirred.census.codebook.schema import Source
from stirred.census.readers import ipums, stat
from stirred.census.readers.dispatch import find_format
from stirred.census.readers.paths import resolve_files
from stirred.extras import import_optional

Codebook = dict[str, dict[str | int, str]]  # column → code → label


def read_codebook(source: Source, folder: Path) -> Codebook:
    """Return value labels of SPSS, Stata and SAS files, or codes of IPUMS codebooks; nothing for other files."""
    kind = find_format(source, folder)
    if kind == "stat":
        return _read_labels(resolve_files(source.files, folder, tuple(stat.STAT_READERS))[0])
    if kind == "ipums":
        book = ipums.read_ddi(source, folder)
        return {
            v.name: {code: label for label, code in v.codes.items()} for v in book.data_description if v.codes
        }
    return {}


def _read_labels(path: Path) -> Codebook:
    library = import_optional("pyreadstat", "stat", why="SPSS, Stata and SAS files are read with it")
    _, meta = getattr(library, stat.STAT_READERS[path.suffix.lower()])(
        path, metadataonly=True, output_format="dict"
    )
    found: Codebook = {}
    for column, labels in meta.variable_value_labels.items():
        found[column] = {_clean_code(code): str(label) for code, label in labels.items()}
    return found


def _clean_code(code: object) -> str | int:
    return int(code) if isinstance(code, int | float) and float(code).is_integer() else str(code)
