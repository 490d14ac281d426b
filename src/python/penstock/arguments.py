# SPDX-License-Identifier: Apache-2.0
"""Arguments as the core takes them. What it cannot take raises InputError, which names the argument."""
from __future__ import annotations

import math
import operator
import os
from collections.abc import Set
from typing import Any

from . import _core

MOST = 2**31 - 1  # of the core's int


def shown(value: Any) -> str:
    """A value in a message, in short; only its type where Python does not print it, as 10**5000."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return f"<{type(value).__name__}>"


def require_numpy() -> None:
    """For results that are NumPy's arrays: raises ModuleNotFoundError where it is missing."""
    import numpy  # noqa: F401


def plain(value: Any) -> Any:
    """Arrays as lists and NumPy's scalars as Python's; all else as it is, and NumPy's times, which it would make integers of
    if they are in nanoseconds."""
    return value.tolist() if hasattr(type(value), "tolist") and not _is_time(value) else value


def _is_time(value: Any) -> bool:
    """Of NumPy: a span or a date, or an array of them."""
    return getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")


def is_list(value: Any) -> bool:
    """It has parts in an order: a list, a tuple, an array; not text, a dict or a set."""
    kind = type(plain(value))
    return hasattr(kind, "__len__") and not hasattr(kind, "keys") and not issubclass(kind, (str, bytes, Set))


def integer(what: str, value: Any, least: int = -MOST - 1, most: int = MOST) -> int:
    value = plain(value)
    if isinstance(value, bool) or _is_time(value) or not hasattr(type(value), "__index__"):
        raise _core.InputError(f"{what} = {shown(value)} is not an integer")
    given = operator.index(value)
    if not least <= given <= most:
        bound = f"up to {most}" if given > most else f"of {least} or more"
        raise _core.InputError(f"{what} = {shown(given)} must be a whole number {bound}")
    return given


def number(what: str, value: Any) -> float:
    value = plain(value)
    if isinstance(value, (str, bytes, bool)) or _is_time(value) or not hasattr(type(value), "__float__"):
        raise _core.InputError(f"{what} = {shown(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        if type(value) is not int:  # what a __float__ raises goes on to the caller
            raise
        raise _core.InputError(f"{what} = {shown(value)} is too large") from None


def share(what: str, value: Any) -> float:
    given = number(what, value)
    if not 0 <= given <= 1:
        raise _core.InputError(f"{what} {given!r}: expected a share from 0 to 1")
    return given


def time_in(unit: str, what: str, value: Any) -> float:
    """The value, a finite number of the unit."""
    given = number(what, value)
    if not (math.isfinite(given) and given >= 0):
        raise _core.InputError(f"{what} {given!r}: expected a finite number of {unit}, 0 or more")
    return given


def flag(what: str, value: Any) -> bool:
    value = plain(value)
    if not isinstance(value, bool):
        raise _core.InputError(f"{what} = {shown(value)} is neither True nor False")
    return value


def text(what: str, value: Any) -> str:
    """The value, text that UTF-8 can encode."""
    if not isinstance(value, str) or printable(value) != value:
        raise _core.InputError(f"{what} = {shown(value)} is not text")
    return value


def texts(what: str, values: Any) -> list[str]:
    values = plain(values)
    if isinstance(values, (str, bytes)) or hasattr(values, "keys") or not hasattr(type(values), "__iter__"):
        raise _core.InputError(f"{what} = {shown(values)} is not a list of texts")
    return [text(f"{what}[{i}]", value) for i, value in enumerate(values)]


def path(what: str, value: Any) -> str:
    """Of a file or a directory; it may have bytes that are no text, as names of files may."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise _core.InputError(f"{what} = {shown(value)} is neither a name nor a path")
    name = os.fsdecode(value)
    try:
        if b"\0" not in os.fsencode(name):
            return name
    except UnicodeEncodeError:
        pass
    raise _core.InputError(f"{what} = {shown(name)} cannot be a path")


def printable(words: str) -> str:
    """With "?" for what UTF-8 cannot encode."""
    return words if words.isascii() else words.encode("utf-8", "replace").decode("utf-8")
