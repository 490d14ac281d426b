# SPDX-License-Identifier: Apache-2.0
"""timeline.json of a run directory. Its form is described in src/train/record/step_timeline.h; what the program refuses is
refused here, in the same words."""
from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from . import _core

COMPUTE = {"F", "B", "I", "W", "STEP", "LOSS", "EMBED_GRAD"}
OP = re.compile(r"\d+ \d*([A-Z_]+)")  # of a program's text: "3 0SEND_F0.1 to 1"
MEMORY_NUMBERS = 10  # of a compute op: a peak, and the live bytes of nine categories


class Step(NamedTuple):
    """Seconds since the step began, of the first pipeline."""

    times: list[list[float]]
    """[device]: start and end of its first op, then of the next."""
    exchange: list[list[float]]
    """[device]: exchange, start, end, waiting, processor seconds of its first span, then of the next; empty without exchange."""

    @property
    def makespan(self) -> float:
        return max(max(device[1::2], default=0.0) for device in self.times)


class Shape(NamedTuple):
    """How many entries a program's timeline has."""

    ops: list[int]
    """[device]"""
    compute: list[int]
    """[device]: ops of the compute lane, which have memory."""
    exchanges: int


def parse(text: str, program: Any, origin: str) -> list[Step]:
    """The steps of a timeline, one or more. Raises InputError that begins with the origin."""
    try:
        document = json.loads(text, parse_float=_finite, parse_int=_integer, parse_constant=_finite)
    except (ValueError, RecursionError):
        document = None
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        raise _core.InputError(f'{origin}: is not a timeline; expected {{"steps": [...]}}')
    if not steps:
        raise _core.InputError(f"{origin}: holds no step")
    shape = shape_of(program)
    return [_step(entry, shape, origin) for entry in steps]


def shape_of(program: Any) -> Shape:
    shape = Shape([], [], 0)
    for line in program.to_text().split("\n"):
        if line.startswith("device "):
            shape.ops.append(0)
            shape.compute.append(0)
        elif line.startswith("exchange "):
            shape = shape._replace(exchanges=shape.exchanges + 1)
        elif op := OP.match(line):
            shape.ops[-1] += 1
            shape.compute[-1] += op[1] in COMPUTE
    return shape


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _integer(word: str) -> Any:
    """Beyond 64 bits a float, as in the program."""
    number = int(word) if len(word) <= 20 else 2**64
    return number if -2**63 <= number < 2**64 else _finite(word)


def _step(entry: Any, shape: Shape, origin: str) -> Step:
    number = entry.get("step") if isinstance(entry, dict) else None
    if type(number) is not int:
        raise _core.InputError(f'{origin}: a step has no number "step"')
    where = f"{origin}: step {number}"
    devices = entry.get("devices")
    if isinstance(devices, list) and len(devices) > len(shape.ops):
        raise _core.InputError(f"{where}: has {len(devices)} devices; the program has {len(shape.ops)}")
    times = [_times(_at(entry.get("devices"), rank), ops, f"{where}, rank {rank}") for rank, ops in enumerate(shape.ops)]
    exchange = [_spans(_at(entry.get("exchange"), rank), shape.exchanges, f"{where}, rank {rank}")
                for rank in range(len(shape.ops))] if shape.exchanges else []
    _check_ranks(entry.get("ranks"), shape, where)
    if "memory" in entry:
        for rank, ops in enumerate(shape.compute):
            _check_memory(_at(entry["memory"], rank), ops, f"{where}, rank {rank}")
    return Step(times, exchange)


def _at(lists: Any, rank: int) -> Any:
    return lists[rank] if isinstance(lists, list) and rank < len(lists) else None


def _are_numbers(entry: Any, kinds: tuple[type, ...] = (int, float)) -> bool:
    return isinstance(entry, list) and all(type(number) in kinds for number in entry)


def _times(entries: Any, ops: int, place: str) -> list[float]:
    found = len(entries) if isinstance(entries, list) else 0
    if found != ops:
        raise _core.InputError(f"{place}: has {found} of its {ops} ops")
    times: list[float] = []
    for op, entry in enumerate(entries):
        if not _are_numbers(entry) or len(entry) not in (2, 3):
            raise _core.InputError(f"{place}: op {op} has no start and end")
        if entry[1] < entry[0]:
            raise _core.InputError(f"{place}: op {op} ends before it starts")
        if len(entry) == 3 and entry[2] < 0:
            raise _core.InputError(f"{place}: processor seconds of an op are not a time")
        times += map(float, entry[:2])
    return times


def _spans(entries: Any, exchanges: int, place: str) -> list[float]:
    if not isinstance(entries, list):
        raise _core.InputError(f"{place}: its exchange is missing")
    spans: list[float] = []
    for entry in entries:
        if not _are_numbers(entry) or len(entry) != 5 or type(entry[0]) is not int or not 0 <= entry[0] < exchanges:
            raise _core.InputError(f"{place}: exchange is not a list of [exchange, start, end, waiting, processor seconds]")
        if entry[2] < entry[1] or entry[4] < 0:
            raise _core.InputError(f"{place}: exchange ends before it starts, or has an invalid time")
        if spans and entry[1] < spans[-4]:
            raise _core.InputError(f"{place}: its exchange is not in order of time")
        spans += map(float, entry)
    return spans


def _check_ranks(lists: Any, shape: Shape, where: str) -> None:
    """If several ranks form a device, the ops of each rank, device by device."""
    if lists is None:
        return
    devices = len(shape.ops)
    if not isinstance(lists, list) or not lists or len(lists) % devices != 0:
        raise _core.InputError(f'{where}: "ranks" is not a list with as many ranks for each of {devices} devices')
    for rank, entries in enumerate(lists):
        _times(entries, shape.ops[rank * devices // len(lists)], f"{where}, rank {rank}")


def _check_memory(entries: Any, ops: int, place: str) -> None:
    if not isinstance(entries, list) or len(entries) != ops:
        raise _core.InputError(f"{place}: memory is not given for every compute op")
    if not all(_are_numbers(entry, (int,)) and len(entry) == MEMORY_NUMBERS for entry in entries):
        raise _core.InputError(f"{place}: memory is not a list of a peak and the bytes of each category")
