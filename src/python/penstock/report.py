# SPDX-License-Identifier: Apache-2.0
"""One HTML page with simulations and plans, which needs no network to be read."""
from __future__ import annotations

import os
from typing import Any, Optional, Sequence, Union

from . import _core, arguments, files
from .plans import Plan
from .simulation import Simulation


class Report:
    """A page of simulations (timelines, idle time by cause, memory over time where samples were kept) and plans (time by
    memory, time by term, memory by category)."""

    def __init__(self, *parts: Union[Simulation, Plan], title: str = "Penstock"):
        self._core = _core.Report(arguments.text("title", title))
        for part in parts:
            self.add(part)

    def add(self, part: Union[Simulation, Plan], name: Optional[str] = None, notes: Sequence[str] = ()) -> Report:
        """Adds a part under a name; returns the report. notes: sentences below a simulation; a plan has none."""
        name, notes = "" if name is None else arguments.text("name", name), arguments.texts("notes", notes)
        if isinstance(part, Simulation):
            self._core.add_simulation(part._core, name or part.name, notes)
            table = part.table
            self._core.add_table("Devices", table.names, [[f"{value}" for value in row.values()] for row in table.rows()])
        elif isinstance(part, Plan) and notes:
            raise _core.InputError("notes are shown with simulations; leave them out with a plan")
        elif isinstance(part, Plan):
            self._add_plan(part, name or part.question)
        else:
            raise _core.InputError(f"{arguments.shown(part)} is neither a Simulation nor a Plan")
        return self

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the page."""
        files.write("path", path, self._core.html())

    def _add_plan(self, plan: Plan, name: str) -> None:
        front = plan.pareto
        if len(front) > 1:
            self._core.add_points(f"{name}: least time by memory", [candidate.layout for candidate in front],
                                  [candidate.values["peak_bytes"] for candidate in front],
                                  [candidate.values["closed_form_s"] for candidate in front])
        rows = [candidate.layout for candidate in plan.best]
        for title, key, seconds in (("time by term", "terms_s", True), ("memory by category", "memory_bytes", False)):
            parts = list(plan.best[0].values[key])
            values: list[list[Any]] = [[float(candidate.values[key][part]) for candidate in plan.best] for part in parts]
            self._core.add_bars(f"{name}: {title}", seconds, rows, parts, values)
