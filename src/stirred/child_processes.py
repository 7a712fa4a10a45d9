"""Start child processes: the one place that does, so that no folder and no stray setting decides what they execute.

``python -m`` puts the working folder first on the path of modules: a file ``stirred.py`` or ``json.py`` in a folder of
somebody's data would be executed. A child starts with ``-P``, in a folder that is named, with the settings listed here.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from stirred.errors import InputError

NO_STREAM, PIPE = subprocess.DEVNULL, subprocess.PIPE
Child = subprocess.Popen[bytes]
# What a child may know of the settings of its parent; PYTHONSTARTUP, LD_PRELOAD, JAVA_TOOL_OPTIONS are not among them.
# fmt: off
KEPT_NAMES = frozenset({
    "COLUMNS", "FORCE_COLOR", "HOME", "JAVA_HOME", "KRB5CCNAME", "KRB5_CONFIG", "LANG", "LANGUAGE", "LINES",
    "LOGNAME", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING",
    "PYTHONNOUSERSITE", "PYTHONUTF8", "RAYON_NUM_THREADS", "SHELL", "SOURCE_DATE_EPOCH", "SYSTEMROOT",
    "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "YARN_CONF_DIR",
})
# fmt: on
KEPT_PREFIXES = (
    "HADOOP_",
    "LC_",
    "MKL_",
    "NUMBA_",
    "OMP_",
    "OPENBLAS_",
    "POLARS_",
    "PYSPARK_",
    "SPARK_",
    "STIRRED_",
    "XDG_",
)
KEPT_FOLDER_LISTS = frozenset({"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})  # of folders
MAX_REPLY_BYTES = 1 << 20


def child_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a child: those that it may know, without folders that are named from the working folder.

    >>> child_environment({"HOME": "/home/a", "PYTHONSTARTUP": "x.py", "PATH": ":/bin:.:bin", "LD_LIBRARY_PATH": "."})
    {'HOME': '/home/a', 'PATH': '/bin', 'PYTHONSAFEPATH': '1'}
    """
    kept = {
        name: value
        for name, value in given.items()
        if name in KEPT_NAMES or (name.startswith(KEPT_PREFIXES) and name not in KEPT_FOLDER_LISTS)
    }
    for name in sorted(KEPT_FOLDER_LISTS & given.keys()):
        folders = [folder for folder in given[name].split(os.pathsep) if Path(folder).is_absolute()]
        if folders:
            kept[name] = os.pathsep.join(folders)
    kept["PYTHONSAFEPATH"] = "1"  # for the children of the child
    return kept


def start_child(
    command: Sequence[str],
    *,
    folder: Path,
    stdin: int | IO[bytes] = NO_STREAM,
    stdout: int | IO[bytes] = NO_STREAM,
    stderr: int | IO[bytes] = NO_STREAM,
    pass_fds: Sequence[int] = (),
    start_new_session: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Child:
    """Start a program in a folder; the program is named by its whole path, so that no folder decides which it is.

    Return the running child. Streams go nowhere unless they are named. Settings are given to it beside those it may know.
    """
    if not Path(command[0]).is_absolute():
        raise InputError(
            f"{Path(command[0]).name} is not started",
            why="a child process is started by its whole path: a short name depends on folders",
            fix="name the program by its whole path",
        )
    return subprocess.Popen(
        list(command),
        cwd=folder,
        env=child_environment(os.environ) | dict(settings or {}),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=tuple(pass_fds),
        start_new_session=start_new_session,
    )


def python_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module of this installation, whatever lies in the working folder."""
    return [str(Path(sys.executable).absolute()), "-P", "-m", module, *words]


def ask_program(command: Sequence[str], *, seconds: float) -> str:
    """Return what a program prints, on both streams; empty where it cannot be started or does not end in time."""
    try:
        child = start_child(command, folder=Path(command[0]).parent, stdout=PIPE, stderr=subprocess.STDOUT)
    except (OSError, InputError):
        return ""
    try:
        return child.communicate(timeout=seconds)[0][:MAX_REPLY_BYTES].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return ""
