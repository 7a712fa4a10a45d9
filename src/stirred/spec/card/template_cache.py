"""Keep compiled templates where Python keeps its compiled modules; they are made anew when a template changes."""

import contextlib
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket


class TemplateCache(FileSystemBytecodeCache):
    """A cache of compiled templates beside a module; it stays empty where the folder cannot be written."""

    def __init__(self, module: str) -> None:
        super().__init__(str(Path(module).parent / "__pycache__"), "template-%s.bin")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write one compiled template, if the folder can be written to."""
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)
