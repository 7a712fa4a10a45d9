"""Read files as lazy frames: one module per format, chosen by the file's ending or by ``format``."""

from stirred.census.readers.sources import FORMATS, is_table, open_source, to_lazy

__all__ = ["FORMATS", "is_table", "open_source", "to_lazy"]
