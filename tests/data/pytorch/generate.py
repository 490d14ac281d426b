#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the schedules that PyTorch itself generates beside this file: <schedule>_p<devices>_m<micro-batches>[_v<stages per device>].csv.

Run with PyTorch 2.11's Python: python3 tests/data/pytorch/generate.py
"""
import csv
import pathlib
from types import SimpleNamespace

from torch.distributed.pipelining import schedules

SINGLE = {"gpipe": schedules.ScheduleGPipe, "1f1b": schedules.Schedule1F1B}
LOOPED = {
    "interleaved1f1b": schedules.ScheduleInterleaved1F1B,
    "loopedbfs": schedules.ScheduleLoopedBFS,
    "interleavedzerobubble": schedules.ScheduleInterleavedZeroBubble,
}
V_SHAPED = {"zbvzerobubble": schedules.ScheduleZBVZeroBubble, "dualpipev": schedules.ScheduleDualPipeV}


def stages_of_rank_0(devices, stages_per_device):
    """Only sizes are read by the constructors."""
    sizes = dict(group_rank=0, group_size=devices, num_stages=devices * stages_per_device, submod=None)
    return [SimpleNamespace(stage_index=i, **sizes) for i in range(stages_per_device)]


def order_of_single(schedule_class, devices, micro_batches):
    schedule = object.__new__(schedule_class)
    schedule._num_stages = devices
    schedule._n_microbatches = micro_batches
    return schedule._get_pipeline_order()


def order_of_multi(schedule_class, devices, micro_batches, stages_per_device):
    return schedule_class(stages_of_rank_0(devices, stages_per_device), micro_batches).pipeline_order


def write(name, order):
    path = pathlib.Path(__file__).parent / f"{name}.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for rank in sorted(order):
            writer.writerow(order[rank])
    print(path.name)


def main():
    for p, m in [(1, 1), (1, 3), (2, 2), (2, 5), (3, 4), (4, 4), (4, 8)]:
        for name, schedule_class in SINGLE.items():
            write(f"{name}_p{p}_m{m}", order_of_single(schedule_class, p, m))
    for p, m, v in [(1, 2, 2), (2, 2, 2), (2, 4, 3), (3, 3, 2), (3, 8, 2), (4, 3, 2), (4, 10, 2)]:
        for name, schedule_class in LOOPED.items():
            write(f"{name}_p{p}_m{m}_v{v}", order_of_multi(schedule_class, p, m, v))
    for p, m in [(1, 2), (2, 4), (2, 7), (3, 6), (4, 8), (4, 11)]:
        for name, schedule_class in V_SHAPED.items():
            write(f"{name}_p{p}_m{m}_v2", order_of_multi(schedule_class, p, m, 2))
    # Fewer micro-batches than the schedule wants: the redundant actions become idle cells.
    write("zbvzerobubble_p4_m2_v2", order_of_multi(V_SHAPED["zbvzerobubble"], 4, 2, 2))


if __name__ == "__main__":
    main()
