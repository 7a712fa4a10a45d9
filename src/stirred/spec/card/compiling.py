"""Keep compiled templates where Python keeps its compiled modules; they are made anew when a template changes."""

import contextlib
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket


class CompiledTemplates(FileSystemBytecodeCache):
    """The compiled templates of a module; a folder that cannot be written to keeps none."""

    def __init__(self, module: str) -> None:
        super().__init__(str(Path(module).parent / "__pycache__"), "template-%s.bin")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep one, if the folder can be written to."""
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)
