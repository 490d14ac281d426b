# SPDX-License-Identifier: Apache-2.0
"""What the interpreter and the blocks cost an action: a model so small that a step has thousands of them, on one rank. Printed
is the time of a step that lies in no op, per op; the time of an op that lies in no kernel, by `train --profile`; and the mean
time of an op. Of the first and last, the best of the kept steps, since other programs only add to it.

Usage: bench/overhead.py PATH/TO/penstock   (from the root of the repository)
"""
import json
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path("build/bench")
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
    subprocess.run([program, "train", str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = []
    for step in json.loads((folder / "timeline.json").read_text())["steps"]:
        ops = step["devices"][0]
        busy = sum(end - start for start, end, *_ in ops)
        found.append(((max(op[1] for op in ops) - busy) / len(ops), len(ops), busy / len(ops)))
    return min(found)


def outside_kernels(program, folder, ops):
    """Seconds of an op that no kernel accounts for, mean of the last three steps."""
    shutil.rmtree(folder, ignore_errors=True)
    ended = subprocess.run([program, "train", str(FOLDER / "overhead.toml"), "--profile"], check=True, capture_output=True, text=True)
    line = next(line for line in ended.stdout.splitlines() if line.startswith("outside kernels"))
    return float(line.split()[2]) * 1e-3 / ops


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    print("| schedule | slices | ops a step | µs outside ops, per op | µs outside kernels, per op | µs in an op, mean |\n|---|---|---|---|---|---|")
    for schedule, slices in (("1f1b", 1), ("slimpipe", 8), ("zb-h1", 1)):
        outside, ops, inside = overhead(sys.argv[1], schedule, slices)
        kernels = outside_kernels(sys.argv[1], FOLDER / "overhead", ops)
        print(f"| {schedule} | {slices} | {ops} | {outside * 1e6:.2f} | {kernels * 1e6:.0f} | {inside * 1e6:.0f} |")


if __name__ == "__main__":
    main()
