# SPDX-License-Identifier: Apache-2.0
"""Schedules: for each device the list of what it computes, in order."""
from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple, Optional, Sequence, Union

from . import _core, arguments, files
from .costs import Number, program_and_costs, require_use, stage_costs
from .simulation import MOST_DRAWN, Simulation

Cell = Union[str, tuple, None]


class Action(NamedTuple):
    """What a device computes for one (stage, micro-batch, slice); kinds are F, B (whole backward), I (backward for the
    input) and W (backward for the weights)."""

    kind: str
    stage: int
    micro_batch: int
    slice: int = 0

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro_batch}" + (f".{self.slice}" if self.slice else "")


class Finding(NamedTuple):
    """Why a schedule is illegal."""

    rule: str
    """missing, duplicate, mixed, range, home, order or deadlock."""
    device: int
    """-1: no device has the action."""
    position: int
    """Of the device's row, from 0; -1: none."""
    action: str
    """As in a CSV; of rule "missing" the one that is not there."""
    text: str
    """One sentence: what is wrong and what is missing."""


class Schedule:
    """A schedule: `p` devices, each with a list of actions. Made by penstock.schedule(), read by from_csv(), or written:

        Schedule([["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])

    One list for each device, of text ("3F2", "0B1.7": stage, kind, micro-batch, slice), of tuples or Actions
    (kind, stage, micro_batch[, slice]), or None where the device is idle. It may be illegal; check() says so.
    Schedules are pickled and copied as their CSV and name.
    """

    def __init__(self, rows: Sequence[Sequence[Cell]], name: str = "own"):
        if not arguments.is_list(rows) or not hasattr(rows, "__getitem__"):
            raise _core.InputError(f"rows {arguments.shown(rows)} is not a list of lists of actions, one list for each device")
        self._core = _core.schedule_of_rows(arguments.text("name", name), rows)

    @classmethod
    def _of(cls, core: _core.Schedule) -> Schedule:
        schedule = cls.__new__(cls)
        schedule._core = core
        return schedule

    @classmethod
    def from_columns(cls, device: Any, kind: Any, stage: Any, micro_batch: Any, slice: Any = None,
                     name: str = "own") -> Schedule:
        """A schedule from one-dimensional arrays of equal length, an action a row, each device's in its order.

        Kinds are letters (an array, a data frame's column, or a string such as "FFBB"), all else integers.
        """
        import numpy

        def array(what: str, column: Any) -> Any:
            if numpy.ma.is_masked(column):
                raise _core.InputError(f"{what} has masked values; leave out their rows in all columns")
            try:
                return numpy.asarray(column)
            except ValueError as error:  # parts of several lengths
                raise _core.InputError(f"{what} is not an array: {error}") from None

        def integers(what: str, column: Any) -> Any:
            column = array(what, column)
            if column.ndim != 1 or column.dtype.kind not in "iu":
                raise _core.InputError(f"{what} is an array of shape {column.shape} and type {column.dtype}; "
                                       "expected one dimension of integers")
            if column.dtype == numpy.uint64 and numpy.any(column > 2**63 - 1):
                raise _core.InputError(f"{what} has {column.max()}; expected at most {2**63 - 1}")
            return numpy.ascontiguousarray(column, numpy.int64)

        device = integers("device", device)
        slice = numpy.zeros(len(device), numpy.int64) if slice is None else integers("slice", slice)
        letters = array("kind", list(kind) if isinstance(kind, str) else kind)
        if letters.dtype == object:  # of a column of text of a data frame
            letters = array("kind", letters.tolist())
        if letters.ndim != 1 or letters.dtype.kind not in "US" or letters.dtype not in ("U1", "S1"):
            raise _core.InputError(f"kind is an array of shape {letters.shape} and type {letters.dtype}; expected one "
                                   'dimension of the letters F, B, I and W')
        letters = numpy.ascontiguousarray(letters)
        if letters.dtype.kind == "U":
            letters = numpy.minimum(letters.view(numpy.uint32), 255).astype(numpy.uint8)
        return cls._of(_core.schedule_of_columns(arguments.text("name", name), device, letters.view(numpy.uint8),
                                                 integers("stage", stage), integers("micro_batch", micro_batch), slice))

    @classmethod
    def from_csv(cls, source: Union[str, os.PathLike]) -> Schedule:
        """From a file by its path, or from text, which has a comma or a line break.

        The form is PyTorch's compute-only pipeline CSV, with slices as in "0B1.7".
        """
        if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source and "," not in source):
            return cls._of(_core.parse_csv(*files.read("source", source, newline="")))
        if not isinstance(source, str):
            raise _core.InputError(f"source {arguments.shown(source)} is neither a path nor text")
        return cls._of(_core.parse_csv(arguments.text("source", source), "text"))

    def to_csv(self, path: Union[str, os.PathLike, None] = None) -> str:
        """The text that from_csv() reads; also written to `path` if one is given."""
        text = self._core.to_csv()
        if path is not None:
            files.write("path", path, text)
        return text

    @property
    def name(self) -> str:
        """The generator's, the file's, or the one given."""
        return self._core.name

    @property
    def devices(self) -> int:
        """p"""
        return self._core.devices

    @property
    def stages(self) -> int:
        """Of the whole model, over all devices."""
        return self._core.stages

    @property
    def micro_batches(self) -> int:
        """m"""
        return len(self._core.slices)

    @property
    def slices(self) -> list[int]:
        """n of each micro-batch, m numbers."""
        return self._core.slices

    @property
    def rows(self) -> list[list[str]]:
        """Of each device its actions as text, in order; "" where it is idle. Overlapped pairs are two actions here."""
        return self._core.rows()

    def columns(self, device: int) -> dict[str, Any]:
        """The actions of a device as NumPy arrays that share the schedule's memory, read only.

        kind (uint8: 0 idle, 1 F, 2 B, 3 I, 4 W), stage and micro_batch (int32), slice (int16).
        """
        arguments.require_numpy()
        return _core.actions(self._core, arguments.integer("device", device, 0, self.devices - 1))

    def check(self, limit: int = 20) -> list[Finding]:
        """What makes it illegal, most telling first, at most `limit` findings; an empty list: it is legal."""
        return [Finding(*found) for found in self._core.check(arguments.integer("limit", limit, 1, sys.maxsize))]

    @property
    def is_legal(self) -> bool:
        """check() finds nothing."""
        return not self._core.check(1)

    def simulate(self, costs: Any = None, *, forward: Number = None, backward: Number = None, input: Number = None,
                 weight: Number = None, transfer: Number = None, bandwidth: Number = None, copy: Optional[float] = None,
                 visit: Optional[float] = None, attention: Optional[float] = None, layers: Optional[int] = None,
                 record: Number = None, weight_record: Number = None, kv_gradient: Number = None,
                 message: Union[float, Sequence[float], None] = None, step: Number = None, offload: float = 0.0,
                 vocabulary_parallel: bool = False, exchange: str = "off", exchange_limit: int = 1000,
                 changes: Sequence[str] = (), samples: bool = False) -> Simulation:
        """Runs the schedule event by event. Raises NoAnswer if it is illegal.

        costs: None for the numbers below; a function (kind, stage, micro_batch, slice) -> seconds, asked once for each
            action; the path of a table of costs or of a run directory; penstock.measured(); penstock.Hardware.costs().
        forward, backward, input, weight: seconds of F (1), B (2), I (1) and W (1). Numbers; or, and then those that the
            schedule needs must all be given, tables [stages] or [stages][slices] (lists or arrays).
        transfer: seconds from device to device, which occupy nothing; with tables also [devices][devices].
        bandwidth: bytes per second of a link, with tables and `message`; a number or [devices][devices].
        record, weight_record, kv_gradient: bytes, with tables; numbers, [stages] or [stages][slices].
        message: bytes of a slice's hidden states between two stages (0), with tables; a number or [slices].
        step: seconds of the optimizer, with tables; a number or [stages].
        copy: seconds to copy a whole record (1), with offload. visit: seconds of a visit of the vocabulary (0).
        attention: share of F, B and I that grows with the slice's number, 0 to 1; layers: of a stage (4), for exchange.
        offload: share of each record that leaves its device, 0 to 1. exchange: "off", "paired" or
            "levelled"; exchange_limit: slices of K and V that a device may send in one slot.
        changes: what if? "device:2=1.5", "link:0-1=4", "kind:W=0.5": that many times as long.
        samples: also keep bytes over time (Simulation.memory).
        """
        offload = arguments.share("offload", offload)
        attention = None if attention is None else arguments.share("attention", attention)
        layers = None if layers is None else arguments.integer("layers", layers, 1)
        exchange_limit = arguments.integer("exchange_limit", exchange_limit, 0)
        vocabulary_parallel = arguments.flag("vocabulary_parallel", vocabulary_parallel)
        changes, samples = arguments.texts("changes", changes), arguments.flag("samples", samples)
        _core.check_exchange(arguments.text("exchange", exchange) if isinstance(exchange, str) else arguments.shown(exchange))
        if hasattr(costs, "core_program") and (offload or vocabulary_parallel or exchange != "off"):
            raise _core.InputError("offload, vocabulary_parallel and exchange: not for costs by a machine; "
                                   "penstock.plan() weighs them")
        _require_attention(exchange, costs, attention, layers)
        require_use(copy, visit, offload, vocabulary_parallel)
        numbers = dict(forward=forward, backward=backward, input=input, weight=weight, transfer=transfer,
                       bandwidth=bandwidth, copy=copy, visit=visit, attention=attention, layers=layers, record=record,
                       weight_record=weight_record, kv_gradient=kv_gradient, message=message, step=step)
        lower = lambda table: _core.lower(self._core, table, offload, vocabulary_parallel, exchange, exchange_limit)
        program, chosen = program_and_costs(costs, numbers, lower, offload, self)
        return Simulation(_core.simulate(program, chosen, changes, samples))

    def grid(self, columns: int = 160) -> str:
        """The schedule in text, a line a device in unit times, in blocks of at most `columns` characters (0: no limit);
        cells with findings are marked."""
        return self._core.grid(arguments.integer("columns", columns, 0))

    def svg(self) -> str:
        """The picture that a notebook shows, F = 1, B = 2, I = W = 1."""
        return self._core.svg()

    def _repr_svg_(self) -> Optional[str]:
        return self.svg() if self._core.size <= MOST_DRAWN else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._core == other._core

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _named(cls, name: str, text: str) -> Schedule:
        return cls._of(_core.parse_csv(text, name))

    def __reduce__(self) -> tuple:
        """For pickle and copy."""
        return type(self)._named, (self.name, self.to_csv())

    def __repr__(self) -> str:
        return (f"<Schedule {self.name}: {self.devices} devices, {self.stages} stages, {self.micro_batches} "
                "micro-batches>")


def _require_attention(exchange: str, costs: Any, attention: Optional[float], layers: Optional[int]) -> None:
    """Attention is what exchange moves."""
    if exchange == "off":
        if layers is not None:
            raise _core.InputError("layers: they count only with exchange, \"paired\" or \"levelled\"")
    elif costs is not None and not callable(costs):
        raise _core.InputError(f"exchange = {exchange!r}: these costs do not say which part of an action is attention, "
                               "which exchange moves; give numbers or a function, with attention")
    elif not attention:
        raise _core.InputError(f"exchange = {exchange!r}: there is no attention to move; give attention above 0")


def schedule(name: str, p: int, m: Optional[int] = None, n: Union[int, Sequence[int]] = 1, v: Optional[int] = None, *,
             group: int = 0, latency: float = 0.0, costs: Optional[dict] = None,
             memory_limit: Optional[float] = None) -> Schedule:
    """The schedule of that name (penstock.catalogue() lists them).

    p: devices; m: micro-batches; n: slices of a micro-batch, or a list with one number for each; v: stages a device,
    by default the schedule's own. group: slices in a group of interleaved slimpipe, 0: automatic. latency: of a
    transfer, in forwards, for that choice. Of greedy, which is made for given costs: costs, a dict with forward, input
    and weight in seconds (numbers, or lists [stages]) and transfer in seconds; memory_limit, micro-batches' worth of
    records that a device may hold, by default p as 1f1b.
    """
    name, devices, slices = arguments.text("name", name), arguments.integer("p", p), _slices(m, n)
    entry = next((entry for entry in _core.catalogue() if entry["name"] == name), None)
    chunks = arguments.integer("v", v) if v is not None else 0
    if v is not None and chunks < 1:
        raise _core.InputError(f"chunks (v) must be at least 1, got {chunks}")
    made_for = stage_costs(entry, costs, memory_limit, devices, chunks)
    return Schedule._of(_core.generate(name, devices, slices, chunks, arguments.integer("group", group),
                                       arguments.time_in("forwards", "latency", latency), made_for))


def catalogue() -> list[dict]:
    """The schedules that penstock.schedule() knows: name, summary, whether it takes slices, its chunks."""
    return _core.catalogue()


def _slices(m: Optional[int], n: Union[int, Sequence[int]]) -> list[int]:
    most = 1 << 20  # before a list is made; the limit and the message are the program's
    if arguments.is_list(n):
        slices = [arguments.integer("n", value) for value in n]
        if m is not None and len(slices) != arguments.integer("m", m):
            raise _core.InputError(f"n lists {len(slices)} micro-batches; m = {m} needs as many, or one number for all")
        return slices
    if m is None:
        raise _core.InputError("m is missing; give the number of micro-batches")
    count = arguments.integer("m", m)
    if count > most:
        raise _core.InputError(f"micro-batches (m) must be at most {most}, got {count}")
    return [arguments.integer("n", n)] * count
