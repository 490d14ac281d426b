# SPDX-License-Identifier: Apache-2.0
"""Costs of a simulation: numbers, tables, functions, measured runs, hardware."""
from __future__ import annotations

import math
import os
from typing import Any, Callable, Optional, Sequence, Union

from . import _core, arguments, files

Number = Union[float, Sequence[float], Sequence[Sequence[float]], None]

TIMES = {"forward": "F", "backward": "B", "input": "I", "weight": "W", "step": "STEP"}
OF_TABLES = ("bandwidth", "record", "weight_record", "kv_gradient", "message", "step")
OF_NUMBERS = ("copy", "visit", "attention", "layers")


class Measured:
    """What the actions of a finished run took: made by penstock.measured(), given to Schedule.simulate()."""

    def __init__(self, run: Any, origin: str):
        self._run, self._origin = run, origin

    def __repr__(self) -> str:
        return f"<Measured costs of {self._origin}>"

    def core_table(self, schedule: Any) -> Any:
        return _core.measured_costs(self._run, self._origin, schedule._core)


def measured(directory: Union[str, os.PathLike]) -> Measured:
    """Mean seconds of each kind, stage and slice in the run directory's step of median time, and its links' least.

    For schedules with as many devices, stages and slices; one without slices takes the sum over the slices.
    """
    directory = arguments.path("directory", directory)
    _core.require_measured(directory)
    program = files.read("directory", os.path.join(directory, "program.txt"))
    timeline = files.read("directory", os.path.join(directory, "timeline.json"), errors="strict")
    return Measured(_core.measured_run(*program, *timeline), arguments.printable(directory))


def program_and_costs(costs: Any, numbers: dict[str, Any], lower: Callable[[Any], Any], offload: float,
                      schedule: Any) -> tuple[Any, Any]:
    """What the simulator takes, of the arguments of Schedule.simulate(). `lower` makes the program, with the bytes of the
    table it is given, or None."""
    given = {name: value for name, value in numbers.items() if value is not None}
    if costs is not None and not callable(costs) and given:
        raise _core.InputError(f"costs and {', '.join(given)} are both given; keep one")
    if hasattr(costs, "core_program"):
        return costs.core_program(schedule), costs.core_costs(schedule)
    if callable(costs):
        ours = [name for name in given if name in TIMES or name in OF_TABLES]
        if ours:
            raise _core.InputError(f"costs is a function; leave out {', '.join(ours)}")
        program = lower(None)
        return program, _core.function_costs(costs, _unit_times(given), offload, program)
    table = _table_of(costs, given, schedule)
    program = lower(table) if costs is not None else _lower_naming_arguments(lower, table)
    return program, table or _core.unit_costs(_unit_times(given), offload, program)


def _lower_naming_arguments(lower: Callable[[Any], Any], table: Any) -> Any:
    """Makes the program; of a time that is missing, the message says which argument gives it, not which line of a file."""
    try:
        return lower(table)
    except _core.InputError as error:
        missing, _, line = str(error).partition('; add a line "')
        name = next((name for name, word in TIMES.items() if line.startswith(f"{word} ")), None)
        if name is None:
            raise
        raise _core.InputError(f"{missing}; give {name} too, in seconds: a number, [stages] or [stages][slices]") from None


def require_use(copy: Any, visit: Any, offload: float, vocabulary_parallel: bool) -> None:
    """As the program, of times other than its defaults."""
    default = _core.UnitTimes()
    if copy is not None and not offload and arguments.number("copy", copy) != default.copy:
        raise _core.InputError("copy needs offload; without it nothing is copied")
    if visit is not None and not vocabulary_parallel and arguments.number("visit", visit) != default.visit:
        raise _core.InputError("visit: there are visits only with vocabulary_parallel")


def _table_of(costs: Any, given: dict[str, Any], schedule: Any) -> Any:
    """Costs in a table; None where they are a number for each kind."""
    if hasattr(costs, "core_table"):
        return costs.core_table(schedule)
    if isinstance(costs, (str, os.PathLike)):
        return _file_costs(arguments.path("costs", costs), schedule)
    if costs is not None:
        raise _core.InputError(f"costs {arguments.shown(costs)} is neither a function, a path nor measured costs; numbers and tables "
                               "are given by name, as in forward=1, backward=2")
    if any(name in OF_TABLES or arguments.is_list(value) for name, value in given.items()):
        _core.require_legal(schedule._core)  # a table has as many rows as the schedule's numbers say
        return _core.table_costs(_table(given, schedule), schedule._core)
    return None


def stage_costs(entry: Optional[dict], costs: Optional[dict], memory_limit: Optional[float], devices: int,
                chunks: int) -> Any:
    """What a schedule is made for."""
    made_for = _core.StageCosts()
    if entry is None or not entry["made_for_costs"]:
        if costs is not None or memory_limit is not None:
            raise _core.InputError("costs and memory_limit are for greedy, which is made for them; other schedules do "
                                   "not depend on them")
        return made_for
    if costs is not None and not isinstance(costs, dict):
        raise _core.InputError(f"costs {arguments.shown(costs)} is not a dict with forward, input, weight and transfer")
    chunks = chunks or entry["default_chunks"]
    given = dict(costs or {})
    for name in ("forward", "input", "weight"):
        value = given.pop(name, 1.0)
        count = max(devices * chunks, 1) if arguments.is_list(value) else 1  # one for all stages
        setattr(made_for, name, _column(name, value, count, "stages", _seconds))
    made_for.transfer = _seconds("transfer", given.pop("transfer", 0.0))
    if given:
        raise _core.InputError(f"costs has no {arguments.shown(next(iter(given)))}; expected forward, input, weight and transfer")
    if memory_limit is not None:
        limit = arguments.number("memory_limit", memory_limit)
        if not limit >= 1:
            raise _core.InputError(f"memory_limit {limit!r}: a device holds at least one micro-batch; expected 1 or "
                                   "more")
        made_for.limit = math.floor(min(limit, 1e9) * chunks)
    return made_for


def _file_costs(path: str, schedule: Any) -> Any:
    if os.path.isdir(path):
        return measured(path).core_table(schedule)
    return _core.parsed_costs(*files.read("costs", path), schedule._core)


def _unit_times(given: dict[str, Any]) -> Any:
    times = _core.UnitTimes()
    for name, value in given.items():
        setattr(times, name, value if name == "layers" else arguments.number(name, value))
    return times


def _table(given: dict[str, Any], schedule: Any) -> Any:
    wrong = [name for name in OF_NUMBERS if name in given]
    if wrong:
        raise _core.InputError(f"{wrong[0]} applies to costs in numbers; leave it out with tables")
    stages, slices, devices = schedule.stages, max(schedule.slices), schedule.devices
    table = _core.Table()
    seconds = {}
    for name, word in TIMES.items():
        if name in given:
            seconds[word] = _cells(name, given[name], stages, slices, "[stages][slices]")
    table.seconds = seconds
    table.latency = _cells("transfer", given.get("transfer", 0.0), devices, devices, "[devices][devices]")
    rates = _cells("bandwidth", given.get("bandwidth", math.inf), devices, devices, "[devices][devices]")
    if "message" not in given and any(map(math.isfinite, rates)):
        raise _core.InputError("bandwidth: the size of a message is missing; give message, bytes of a slice's hidden "
                               "states")
    table.bytes_per_second = rates
    for name in ("record", "weight_record", "kv_gradient"):
        setattr(table, name, _cells(name, given.get(name, 0.0), stages, slices, "[stages][slices]"))
    table.message = _column("message", given.get("message", 0.0), slices, "slices", arguments.number)
    return table


def _cells(name: str, value: Any, rows: int, columns: int, shape: str) -> list[float]:
    """A number, a number for each row, or one for each row and column; as rows, one after the other."""
    value = arguments.plain(value)
    if not arguments.is_list(value):
        return [arguments.number(name, value)] * (rows * columns)
    if len(value) != rows:
        raise _core.InputError(f"{name} has {len(value)} rows, expected {rows} {shape.split(']')[0][1:]}: a number, "
                               f"[{shape.split(']')[0][1:]}] or {shape}")
    cells: list[float] = []
    for i, row in enumerate(value):
        row = arguments.plain(row)
        if not arguments.is_list(row):
            cells += [arguments.number(f"{name}[{i}]", row)] * columns
            continue
        if len(row) != columns:
            raise _core.InputError(f"{name}[{i}] has {len(row)} columns, expected {columns}: {shape}")
        cells += [arguments.number(f"{name}[{i}][{j}]", cell) for j, cell in enumerate(row)]
    return cells


def _column(name: str, value: Any, count: int, of: str, number: Callable[[str, Any], float]) -> list[float]:
    value = arguments.plain(value)
    if not arguments.is_list(value):
        return [number(name, value)] * count
    if len(value) != count:
        raise _core.InputError(f"{name} has {len(value)} numbers; expected one, or one for each of {count} {of}")
    return [number(f"{name}[{i}]", cell) for i, cell in enumerate(value)]


def _seconds(name: str, value: Any) -> float:
    return arguments.time_in("seconds", name, value)
