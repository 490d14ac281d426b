# SPDX-License-Identifier: Apache-2.0
"""What /proc tells of a process; nothing of one that is gone, or has ended and its parent does not know it yet."""
import pathlib


def name_of(process):
    """Of its program."""
    try:
        return (pathlib.Path("/proc") / str(process) / "comm").read_text().strip()
    except OSError:
        return ""


def words_in(process, file):
    """Of a file that separates them by zeros."""
    try:
        return (pathlib.Path("/proc") / str(process) / file).read_bytes().split(b"\0")
    except OSError:
        return []


def environment_of(process):
    return words_in(process, "environ")


def rank_of(process):
    """That mpirun gave to it; None: it is no rank."""
    key = b"OMPI_COMM_WORLD_RANK="
    return next((int(entry[len(key):]) for entry in environment_of(process) if entry.startswith(key)), None)
