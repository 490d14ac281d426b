#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our unsliced schedules, written by `penstock show --format csv`, train in PyTorch's own pipeline runtime.

Usage: load_schedules.py PATH/TO/penstock

Two processes (gloo, CPU) load each schedule with _PipelineScheduleRuntime (format compute_only) and train two steps; every
micro-batch's loss must equal that of the same model trained without a pipeline. PyTorch is the wheel whose LibTorch
Penstock is linked with. Exit 0: all equal; 1: not; 77: skipped, packages cannot be had.
"""
import os
import subprocess
import sys
import tempfile

DEVICES = 2
# Name, micro-batches, stages per device. dualpipe has every stage on two devices, which PyTorch's runtime refuses.
SCHEDULES = [
    ("gpipe", 4, 1),
    ("1f1b", 1, 1),
    ("1f1b", 4, 1),
    ("interleaved", 4, 2),
    ("interleaved", 6, 3),
    ("breadth-first", 4, 2),
    ("zb-h1", 4, 1),
    ("zb-h2", 4, 1),
    ("zb-v", 4, 2),
    ("v-half", 4, 2),
    ("v-min", 4, 2),
    ("dualpipe-v", 6, 2),
]
WIDTH = 8
ROWS = 3  # samples in a micro-batch
RATE = 0.5

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import packages

packages.require_torch()
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime


class Stage(PipelineStage):
    def _get_init_p2p_neighbors_ops(self):
        """PyTorch's are for NCCL; in a V a device would send to itself, which gloo cannot."""
        return []


def make_layer(stage):
    torch.manual_seed(stage)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()).double()


def make_data(micro_batches):
    torch.manual_seed(1000)
    shape = (micro_batches * ROWS, WIDTH)
    return torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)


def descend(modules):
    with torch.no_grad():
        for module in modules:
            for parameter in module.parameters():
                parameter -= RATE * parameter.grad
                parameter.grad = None


def plain_losses(stages, micro_batches):
    """Losses of every micro-batch in two steps, without a pipeline."""
    layers = [make_layer(stage) for stage in range(stages)]
    inputs, targets = make_data(micro_batches)
    steps = []
    for _ in range(2):
        losses = []
        for x, target in zip(inputs.chunk(micro_batches), targets.chunk(micro_batches)):
            for layer in layers:
                x = layer(x)
            losses.append(torch.nn.functional.mse_loss(x, target))
        (sum(losses) / micro_batches).backward()
        descend(layers)
        steps.append([loss.item() for loss in losses])
    return steps


def stages_on(row):
    """The stages that one line of the CSV runs."""
    letters = "FBIW"
    cells = [cell.strip("()") for cell in row.replace(")OVERLAP_F_B", "").replace(";", ",").split(",") if cell]
    return sorted({int(cell[: min(cell.find(c) for c in letters if c in cell)]) for cell in cells})


def pipeline_losses(csv, micro_batches, rank):
    """The same from PyTorch's runtime; None on ranks without the last stage."""
    with open(csv) as file:
        rows = [stages_on(row.strip()) for row in file]
    stages = 1 + max(max(row) for row in rows)
    layers = {stage: make_layer(stage) for stage in rows[rank]}
    parts = [Stage(layers[stage], stage, stages, torch.device("cpu")) for stage in rows[rank]]
    runtime = _PipelineScheduleRuntime(parts, micro_batches, loss_fn=torch.nn.functional.mse_loss)
    runtime._load_csv(csv, format="compute_only")
    inputs, targets = make_data(micro_batches)
    has_first, has_last = 0 in layers, stages - 1 in layers
    steps = []
    for _ in range(2):
        losses = []
        arguments = {"target": targets, "losses": losses} if has_last else {}
        runtime.step(*([inputs] if has_first else []), return_outputs=False, **arguments)
        descend(layers.values())
        steps.append([loss.item() for loss in losses])
    return steps if has_last else None


def run_rank(rank, folder, jobs):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=DEVICES)
    failures = 0
    for name, micro_batches, chunks, csv in jobs:
        got = pipeline_losses(csv, micro_batches, rank)
        if got is not None:
            wanted = plain_losses(DEVICES * chunks, micro_batches)
            good = torch.allclose(torch.tensor(got), torch.tensor(wanted), rtol=1e-12, atol=1e-14)
            failures += not good
            print(f"{name} m={micro_batches} v={chunks}: {'equal' if good else f'DIFFERS: {got}, not {wanted}'}", flush=True)
        dist.barrier()
    dist.destroy_process_group()
    if failures:
        sys.exit(1)


def write_schedules(penstock, folder):
    jobs = []
    for name, micro_batches, chunks in SCHEDULES:
        command = [penstock, "show", "--schedule", name, "-p", DEVICES, "-m", micro_batches, "-v", chunks, "--format", "csv"]
        csv = os.path.join(folder, f"{name}_{micro_batches}_{chunks}.csv")
        with open(csv, "w") as file:
            subprocess.run([str(word) for word in command], stdout=file, check=True)
        jobs.append((name, micro_batches, chunks, csv))
    return jobs


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        jobs = write_schedules(sys.argv[1], folder)
        torch.multiprocessing.spawn(run_rank, (folder, jobs), nprocs=DEVICES)
    print(f"{len(jobs)} schedules trained in PyTorch {torch.__version__} as without a pipeline")


if __name__ == "__main__":
    main()
