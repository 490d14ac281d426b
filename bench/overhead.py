# SPDX-License-Identifier: Apache-2.0
"""What the interpreter and the blocks cost an action: a model so small that a step has thousands of them, on one rank. Printed
is the time of a step that lies in no op, per op; the time of an op that lies in no kernel, by `train --profile` (mean of three
steps); and the mean time of an op. Medians of three rounds, of the last three steps of each.

Usage: bench/overhead.py PATH/TO/penstock   (from the root of the repository)
"""
import json
import pathlib
import shutil
import statistics

import programs

FOLDER = pathlib.Path("build/bench")
ROUNDS = 3
RUN = """[model]
layers = 2
hidden = 16
ffn = 16
heads = 2
kv_heads = 2
[data]
text = "{text}"
seq_len = 128
validation_fraction = 0
[schedule]
name = "{schedule}"
slices = {slices}
[train]
steps = 6
batch = 128
threads = 1
precision = "f32"
checkpoint_every = 0
[output]
dir = "{folder}"
"""


def overhead(program, schedule, slices):
    folder = FOLDER / "overhead"
    shutil.rmtree(folder, ignore_errors=True)
    text = FOLDER / "overhead.txt"
    text.write_text("".join(f"line {i}: {i * i}\n" for i in range(20_000)))
    path = FOLDER / "overhead.toml"
    path.write_text(RUN.format(text=text.resolve(), schedule=schedule, slices=slices, folder=folder))
    programs.output(program, "train", path)
    found = []
    for step in json.loads((folder / "timeline.json").read_text())["steps"]:
        ops = step["devices"][0]
        busy = sum(end - start for start, end, *_ in ops)
        found.append(((max(op[1] for op in ops) - busy) / len(ops), busy / len(ops), len(ops)))
    return found


def outside_kernels(program, folder, ops):
    """Seconds of an op that no kernel accounts for, mean of the last three steps."""
    shutil.rmtree(folder, ignore_errors=True)
    printed = programs.output(program, "train", FOLDER / "overhead.toml", "--profile")
    line = next(line for line in printed.splitlines() if line.startswith("outside kernels"))
    return float(line.split()[2]) * 1e-3 / ops


def main():
    program = programs.asked(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    print("| schedule | slices | ops a step | µs outside ops, per op | µs outside kernels, per op | µs in an op, mean |\n|---|---|---|---|---|---|")
    for schedule, slices in (("1f1b", 1), ("slimpipe", 8), ("zb-h1", 1)):
        steps, kernels = [], []
        for _ in range(ROUNDS):
            steps += overhead(program, schedule, slices)
            kernels.append(outside_kernels(program, FOLDER / "overhead", steps[0][2]))
        outside, inside = (statistics.median(step[i] for step in steps) for i in (0, 1))
        print(f"| {schedule} | {slices} | {steps[0][2]} | {outside * 1e6:.2f} | {statistics.median(kernels) * 1e6:.0f} | {inside * 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
