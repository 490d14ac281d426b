# SPDX-License-Identifier: Apache-2.0
"""Copies of a run's state in the memory of its hosts: what an attempt leaves, and what the next one must make of that."""
import dataclasses

import checks
import draw
from checks import LOST, OTHER, require


@dataclasses.dataclass(frozen=True)
class Left:
    """By an attempt that made copies."""

    folders: tuple  # one in the memory of each host
    every: int
    steps: int  # that were done when it ended


def folders_of(attempt, place):
    if attempt.transport != draw.HOSTS:
        return (place.memory,)
    return tuple(place.memory.with_name(f"{place.memory.name}-{host}") for host in place.hosts.names)


def left_by(trial, lines_before):
    """Nothing by an attempt that failed before its first step: the lines of steps are those of earlier ones, which it did not copy."""
    every = trial.attempt.copies_every()
    if not every or checks.lines_of(trial.directory) == lines_before:
        return None
    return Left(folders_of(trial.attempt, trial.place), every, trial.steps())


def expect_used(left, trial):
    """Where the same hosts go on with copies: at most as many steps are repeated as lie between two, and none where each is copied."""
    starts = trial.starts()
    if left is None or not starts or not trial.attempt.copies_every() or left.folders != folders_of(trial.attempt, trial.place):
        return
    step, source = starts[0]
    fewest = left.steps - (left.every if left.every > 1 else 0)
    told = f"goes on after step {step}, from {source}, though step {left.steps} was done and every {left.every} steps were copied"
    require(step >= fewest, LOST, told)


def expect_removed(trial):
    """By a run that has come to its end."""
    folders = folders_of(trial.attempt, trial.place) if trial.attempt.copies_every() else ()
    found = [str(file) for folder in folders for file in folder.rglob("*")]
    require(not found, OTHER, f"copies stay after the run's end: {found}\n{trial.processes.printed()}")
