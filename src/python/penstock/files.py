# SPDX-License-Identifier: Apache-2.0
"""Files: only regular ones are read; what is written appears complete or not at all."""
from __future__ import annotations

import contextlib
import os
import stat
from typing import Any, Optional, TextIO

from . import _core, arguments


def named(what: str, value: Any) -> str:
    """The path of a file."""
    path = arguments.path(what, value)
    if not path:
        raise _core.InputError(f"{what} = {arguments.shown(value)} names no file")
    return path


def read(what: str, value: Any, newline: Optional[str] = None, errors: str = "replace") -> tuple[str, str]:
    """The text of a file, and its path for messages."""
    path = named(what, value)
    name = arguments.printable(path)
    try:
        with open(path, encoding="utf-8", errors=errors, newline=newline, opener=_open_regular) as file:
            return file.read(), name
    except UnicodeDecodeError as error:
        raise _core.InputError(f"{name}: cannot be read: {error}") from None
    except OSError as error:
        if error.errno is None:  # not the system's: a signal handler's TimeoutError
            raise
        raise _core.InputError(f"{name}: cannot be opened: {error.strerror}") from None


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)  # opening a pipe without a writer would block
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _core.InputError(f"{arguments.printable(path)} is not a regular file")
    return descriptor


def write(what: str, value: Any, text: str) -> None:
    """Writes a file, or the one that a link names. Until the text is on disk, an earlier file stays as it was."""
    path = named(what, value)
    said = f"{what} {arguments.printable(path)}"
    target = os.path.realpath(path) if os.path.islink(path) else path
    mode = _mode_of_earlier(target, said)
    temporary = os.path.join(os.path.dirname(target), f".part-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with _create(temporary, said) as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            raise _core.RunError(f"{said} cannot be written: {error.strerror}") from None
        raise


def _mode_of_earlier(target: str, said: str) -> Optional[int]:
    """The permissions of the file that will be replaced; None without one."""
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        raise _core.InputError(f"{said} is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise _core.InputError(f"{said} is not a regular file, and would be replaced by one; name another")
    if not os.access(target, os.W_OK):
        raise _core.InputError(f"{said} cannot be written: it is read-only")
    return stat.S_IMODE(mode) & 0o777


def _create(temporary: str, said: str) -> TextIO:
    try:
        return open(temporary, "x", encoding="utf-8", newline="")
    except OSError as error:
        if error.errno is None:
            raise
        raise _core.InputError(f"{said} cannot be written: no file can be made in its folder: {error.strerror}") from None
