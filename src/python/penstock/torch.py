# SPDX-License-Identifier: Apache-2.0
"""Schedules in torch.distributed.pipelining."""
from __future__ import annotations

import tempfile
from typing import Any, Callable, Optional, Sequence

from . import _core, arguments
from .schedules import Schedule
from .simulation import Simulation


def load(schedule: Schedule, stages: Sequence[Any], loss_fn: Optional[Callable] = None, **options: Any) -> Any:
    """PyTorch's runtime for the schedule: its step() trains a batch. Needs PyTorch with torch.distributed.pipelining.

    stages: this rank's PipelineStages, one for each stage that the schedule has on the device of the rank's number in the
    stages' group, in ascending order. loss_fn and other options: as torch.distributed.pipelining's schedules take them.
    Raises InputError for what PyTorch's runtime cannot run: slices (it would read "0F1.2" as "0F1"), a stage on two
    devices (dualpipe), offloading (of simulations, no schedule has it); NoAnswer for an illegal schedule.
    """
    if isinstance(schedule, Simulation):
        raise _core.InputError(f"{schedule!r} is a simulation, whose program may offload records and exchange context, which "
                               "PyTorch's runtime cannot do; give its Schedule")
    _require_possible(schedule)
    if not arguments.is_list(stages):
        raise _core.InputError(f"stages {arguments.shown(stages)} is not a list of PipelineStages")
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    rank = stages[0].group_rank if len(stages) else 0
    ours, theirs = stages_of(schedule, rank), [stage.stage_index for stage in stages]
    if theirs != ours:
        raise _core.InputError(f"stages {theirs}: device {rank} of {schedule.name} has the stages {ours}; give a "
                               "PipelineStage for each of them, in this order")
    runtime = _PipelineScheduleRuntime(list(stages), schedule.micro_batches, loss_fn=loss_fn, **options)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(schedule.to_csv())
        file.flush()
        runtime._load_csv(file.name, format="compute_only")
    return runtime


def stages_of(schedule: Schedule, device: int) -> list[int]:
    """The stages that a device has, ascending: those for which it needs modules."""
    return sorted({int(stage) for stage, kind in _actions(schedule, device) if kind})


def _require_schedule(schedule: Any) -> None:
    if not isinstance(schedule, Schedule):
        raise _core.InputError(f"schedule {arguments.shown(schedule)} is not a penstock.Schedule")


def _require_possible(schedule: Schedule) -> None:
    _require_schedule(schedule)
    if any(n != 1 for n in schedule.slices):
        raise _core.InputError(f"{schedule.name} has slices ({max(schedule.slices)} in a micro-batch), which PyTorch's "
                               "runtime does not know; give a schedule with n = 1")
    if not schedule.is_legal:
        raise _core.NoAnswer(f"{schedule.name}: not a legal schedule: {schedule.check(1)[0].text}")
    devices: dict[int, int] = {}
    for device in range(schedule.devices):
        for stage in stages_of(schedule, device):
            if devices.setdefault(stage, device) != device:
                raise _core.InputError(f"{schedule.name} has stage {stage} on devices {devices[stage]} and {device}, which "
                                       "PyTorch's runtime refuses; use dualpipe-v")


def _actions(schedule: Schedule, device: int) -> Any:
    _require_schedule(schedule)
    columns = schedule.columns(device)
    return zip(columns["stage"], columns["kind"])
