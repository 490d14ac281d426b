# SPDX-License-Identifier: Apache-2.0
"""Where a training step's time goes, by penstock train --profile: shares of the compute time and rates of arithmetic on one rank
of two threads, at the size S of the peers and at a long context; medians of the last three steps.

Usage: bench/shares.py PATH/TO/penstock   (from the root of the repository)
PENSTOCK_BENCH_QUICK=1 takes smaller sizes, to see that everything runs.
"""
import json
import os
import pathlib
import shutil
import statistics

import programs
from reality import FOLDER, write_text

QUICK = os.environ.get("PENSTOCK_BENCH_QUICK") == "1"
S = ["--model.layers", "8", "--data.seq_len", "2048", "--train.batch", "4", "--memory.policy", "balanced"]
LONG = ["--data.seq_len", "1024" if QUICK else "8192", "--train.batch", "2"]
CASES = {"S bf16": [*S, "--train.precision", "bf16"], "S f32": [*S, "--train.precision", "f32"],
         f"{LONG[1]} tokens bf16, none": [*LONG, "--memory.policy", "none"], f"{LONG[1]} tokens bf16, full": [*LONG, "--memory.policy", "full"]}
# a row's name, and the kernels in it
PARTS = {"matrix products, forward and input gradients": ("product", "product backward"), "weight gradients": ("weight gradient",),
         "attention forward": ("attention",), "attention backward": ("attention backward",),
         "SwiGLU, norms, rotation, loss, embedding, sums, optimizer": None}
RATES = ["matrix products, forward and input gradients", "weight gradients", "attention forward", "attention backward"]


def train(program, settings):
    run = FOLDER / "shares"
    shutil.rmtree(run, ignore_errors=True)
    programs.output(program, "train", "bench/memory.toml", "--profile", "--parallel.pp", "1", "--schedule.name", "1f1b", "--schedule.slices", "1",
                    "--train.threads", "2", "--train.steps", "4", *settings, "--output.dir", run)
    return json.loads((run / "profile.json").read_text()), json.loads((run / "timeline.json").read_text())


def part_of(kernel):
    return next((part for part, kernels in PARTS.items() if kernels is None or kernel in kernels))


def step_shares(profile, step, timeline):
    """Percent of a step's compute time by part, and GFLOP/s by part."""
    seconds, flops = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, 0.0)
    for kernel, _, start, end, work, _ in step["devices"][0]:
        part = part_of(profile["kernels"][kernel])
        seconds[part] += end - start
        flops[part] += work
    compute = sum(op[1] - op[0] for op in timeline["devices"][0])
    shares = {part: 100 * spent / compute for part, spent in seconds.items()}
    shares["outside kernels"] = 100 - sum(shares.values())
    return shares, {part: flops[part] / seconds[part] / 1e9 for part in RATES}


def main():
    program = programs.asked(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_text()
    shares, rates = {}, {}
    for case, settings in CASES.items():
        profile, timeline = train(program, settings)
        steps = [step_shares(profile, *pair) for pair in zip(profile["steps"], timeline["steps"])]
        shares[case] = {part: statistics.median(step[0][part] for step in steps) for part in steps[0][0]}
        rates[case] = {part: statistics.median(step[1][part] for step in steps) for part in RATES}
    for head, table, unit, decimals in (("share of compute time", shares, " %", 1), ("GFLOP/s", rates, "", 0)):
        print(f"| {head} | {' | '.join(table)} |\n{'|---' * (len(table) + 1)}|")
        for part in next(iter(table.values())):
            print(f"| {part} | " + " | ".join(f"{table[case][part]:.{decimals}f}{unit}" for case in table) + " |")
        print()


if __name__ == "__main__":
    main()
