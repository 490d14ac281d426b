# SPDX-License-Identifier: Apache-2.0
"""What a simulated step took, and why."""
from __future__ import annotations

import os
from typing import Any, Optional, Union

from . import _core, arguments, files
from .tables import Table


MOST_COLUMNS = 10_000
MOST_DRAWN = 20_000  # actions or ops that a notebook draws unasked, a few MB


class Simulation:
    """A simulated step: times in seconds since it began, sizes in bytes."""

    def __init__(self, core: Any):
        self._core = core

    @property
    def name(self) -> str:
        """Of the schedule."""
        return self._core.name

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end."""
        return self._core.makespan

    @property
    def bubble_fraction(self) -> float:
        """1 - (sum of busy) / (p * makespan): the whole step, ramps included."""
        return self._core.bubble_fraction

    @property
    def span_bubble_fraction(self) -> float:
        """Idle inside a device's span over that span, mean over the devices."""
        return self._core.span_bubble_fraction

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Of each: busy_s, idle_s and its causes ramp_s, transfer_s, copy_s, imbalance_s and dependency_s; peak_in_flight
        and peak_in_flight_until_input (slice-chunks); peak_bytes, peak_bytes_by_category, peak_away_bytes."""
        return self._core.devices()

    @property
    def table(self) -> Table:
        """A row for each device, with the columns of `devices`, categories as peak_<category>_bytes."""
        rows = []
        for number, device in enumerate(self.devices):
            by_category = device.pop("peak_bytes_by_category")
            rows.append({"device": number, **device, **{f"peak_{name}_bytes": value for name, value in by_category.items()}})
        return Table({name: [row[name] for row in rows] for name in rows[0]})

    def timeline(self, device: int) -> dict[str, Any]:
        """The ops of a device in their order, as NumPy arrays of equal length that share the simulation's memory, read
        only: start and end (float64, seconds), kind (uint8, an index into penstock.simulation.KINDS), stage,
        micro_batch and peer (int32; peer -1: none), slice (int16), bytes (int64)."""
        arguments.require_numpy()
        return _core.timeline(self._core, self._device(device))

    @property
    def timelines(self) -> Table:
        """The ops of all devices, copied into one table, with a column `device` and kinds as text."""
        import numpy

        parts = [self.timeline(device) for device in range(len(self.devices))]
        columns = {"device": numpy.repeat(numpy.arange(len(parts)), [len(part["start"]) for part in parts])}
        columns.update({name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]})
        columns["kind"] = numpy.array(KINDS)[columns["kind"]]
        return Table(columns)

    def memory(self, device: int) -> Table:
        """Bytes that the device holds, by category, from each `time` (seconds) until the next row's; without copies. Of
        simulations with samples=True."""
        arguments.require_numpy()
        table = Table(_core.memory(self._core, self._device(device)))
        if len(table) == 0:
            raise _core.InputError("no bytes over time; give Schedule.simulate() samples=True and bytes, as in forward=[1] * stages, "
                                   "backward=2, record=1000")
        return table

    def to_json(self) -> str:
        """What `penstock simulate --json` prints, without a line break."""
        return self._core.to_json().rstrip("\n")

    def svg(self) -> str:
        """The timeline as a picture, which a notebook shows."""
        return self._core.svg()

    def _repr_svg_(self) -> Optional[str]:
        return self.svg() if self._core.size <= MOST_DRAWN else None

    def text(self, width: int = 100) -> str:
        """The table of devices and the timeline as text, `width` characters wide, 10,000 at most."""
        return self._core.to_table() + "\n" + self._core.terminal(arguments.integer("width", width, 1, MOST_COLUMNS))

    def save_trace(self, path: Union[str, os.PathLike]) -> None:
        """A Chrome trace, which Perfetto opens."""
        files.write("path", path, self._core.trace())

    def __reduce__(self) -> tuple:
        raise TypeError("a Simulation cannot be pickled or copied; keep its Schedule, which can, or to_json()")

    def __repr__(self) -> str:
        return f"<Simulation of {self.name}: {self.makespan:.6g} s, bubble {100 * self.bubble_fraction:.1f} %>"

    def _device(self, device: int) -> int:
        return arguments.integer("device", device, 0, len(self._core.devices()) - 1)


KINDS: tuple[str, ...] = tuple(_core.kinds())
"""Words of the ops: F, B, I, W, SEND_F, RECV_F, ..., STEP."""
