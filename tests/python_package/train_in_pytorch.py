#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""penstock.torch.load(): schedules made and written in Python train in PyTorch's pipeline runtime.

Usage: train_in_pytorch.py PATH/TO/penstock

Two processes (gloo, CPU) train two steps of each; every micro-batch's loss must equal that of the same model trained
without a pipeline. Exit 0: all equal; 1: not; 77: skipped, packages cannot be had.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "pytorch"), os.path.join(HERE, "..", "python")]
import wheel

sys.path[:0] = wheel.install(sys.argv[1])
import load_schedules
import penstock
import penstock.torch
import torch
import torch.distributed as dist
import torch.multiprocessing

OWN = [["0F0", "0F1", "0F2", "0B0", "0B1", "0B2"], ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2"]]
MADE = [("1f1b", 4, None), ("interleaved", 4, 2), ("zb-v", 4, None), ("dualpipe-v", 6, None)]


def schedules():
    return [penstock.Schedule(OWN)] + [penstock.schedule(name, p=load_schedules.DEVICES, m=m, v=v) for name, m, v in MADE]


def refused(expected, call):
    try:
        call()
    except (penstock.InputError, penstock.NoAnswer) as error:
        if expected in str(error):
            return 0
        expected = f"{expected!r}, but {str(error)!r}"
    print(f"not refused with {expected}")
    return 1


def losses(schedule, rank):
    layers = {stage: load_schedules.make_layer(stage) for stage in penstock.torch.stages_of(schedule, rank)}
    parts = [load_schedules.Stage(layer, stage, schedule.stages, torch.device("cpu")) for stage, layer in layers.items()]
    runtime = penstock.torch.load(schedule, parts, loss_fn=torch.nn.functional.mse_loss)
    inputs, targets = load_schedules.make_data(schedule.micro_batches)
    last, steps = schedule.stages - 1 in layers, []
    for _ in range(2):
        found = []
        arguments = {"target": targets, "losses": found} if last else {}
        runtime.step(*([inputs] if 0 in layers else []), return_outputs=False, **arguments)
        load_schedules.descend(layers.values())
        steps.append([loss.item() for loss in found])
    return steps if last else None


def refusals(rank):
    """What cannot go is refused by name."""
    stage = load_schedules.Stage(load_schedules.make_layer(rank), rank, 2, torch.device("cpu"))
    make = lambda name, **sizes: penstock.schedule(name, p=2, **sizes)
    load = penstock.torch.load
    return (refused("slimpipe has slices (4 in a micro-batch)", lambda: load(make("slimpipe", m=2, n=4), [stage])) +
            refused("dualpipe has stage 0 on devices 0 and 1", lambda: load(make("dualpipe", m=4), [stage])) +
            refused("may offload records", lambda: load(make("1f1b", m=4).simulate(offload=0.5), [stage])) +
            refused("not a legal schedule", lambda: load(penstock.Schedule([["0B0", "0F0"], ["1F0", "1B0"]]), [stage])) +
            refused(f"device {rank} of interleaved has the stages [{rank}, {rank + 2}]",
                    lambda: load(make("interleaved", m=4), [stage])) +
            refused("is not a penstock.Schedule", lambda: load("1f1b", [stage])))


def run_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=load_schedules.DEVICES)
    failures = refusals(rank)
    for schedule in schedules():
        got = losses(schedule, rank)
        if got is not None:
            wanted = load_schedules.plain_losses(schedule.stages, schedule.micro_batches)
            good = torch.allclose(torch.tensor(got), torch.tensor(wanted), rtol=1e-12, atol=1e-14)
            failures += not good
            print(f"{schedule}: {'equal' if good else f'DIFFERS: {got}, not {wanted}'}", flush=True)
        dist.barrier()
    dist.destroy_process_group()
    sys.exit(failures > 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run_rank, (folder,), nprocs=load_schedules.DEVICES)


if __name__ == "__main__":
    main()
