#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader finds the curves of a run that trained, and drops what a resumed run did again.

Usage: read_curves.py PATH/TO/penstock

A run of five steps loses its last checkpoint and goes on after step 3 with another learning rate, to step 8. TensorBoard
must read from its two event files what metrics.jsonl says of the eight steps. Exit 0: it does; 1: not; 77: skipped, the
package cannot be had.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import packages

packages.require("tensorboard", ["tensorboard"], gigabytes=0.2)
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

KEY_OF_CURVE = {
    "train/loss": "loss",
    "train/grad_norm": "grad_norm",
    "train/learning_rate": "lr",
    "speed/step_seconds": "step_s",
    "speed/tokens_per_second": "tokens_per_second",
    "speed/mfu": "mfu",
    "speed/bubble_fraction": "bubble_fraction",
    "memory/peak_bytes": "peak_bytes",
    "evaluation/loss": "evaluation_loss",
}
RUN = """[model]
layers = 4
hidden = 16
ffn = 24
heads = 4
kv_heads = 2
[data]
text = "{folder}/corpus.txt"
seq_len = 30
validation_fraction = 0.1
[schedule]
name = "slimpipe"
slices = 4
[parallel]
pp = 2
[train]
batch = 4
threads = 1
lr_schedule = "constant"
warmup_steps = 0
checkpoint_every = 3
evaluate_every = 2
evaluate_sequences = 4
[output]
dir = "{folder}/run"
"""


def train(penstock, folder, *words):
    ended = subprocess.run([penstock, "train", f"{folder}/run.toml", "--ranks", "2", *words], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"penstock train ended with {ended.returncode}: {ended.stderr}")


def train_and_resume(penstock, folder):
    with open(f"{folder}/corpus.txt", "w") as file:
        file.writelines(f"line {number * number} of a text\n" for number in range(400))
    with open(f"{folder}/run.toml", "w") as file:
        file.write(RUN.format(folder=folder))
    train(penstock, folder, "--train.steps", "5")
    shutil.rmtree(f"{folder}/run/checkpoints/step-000005")
    train(penstock, folder, "--train.steps", "8", "--train.lr", "0.01", "--resume")


def curves_in(directory):
    """Steps and values of every curve that TensorBoard finds."""
    events = EventAccumulator(directory).Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def curves_of(metrics):
    with open(metrics) as file:
        steps = [json.loads(line) for line in file]
    return {tag: [(step["step"], step[key]) for step in steps if key in step] for tag, key in KEY_OF_CURVE.items()}


def equal(points, wanted):
    """Event files have numbers of 32 bits."""
    return len(points) == len(wanted) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 1e-7 * abs(b[1]) for a, b in zip(points, wanted))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        train_and_resume(sys.argv[1], folder)
        files = glob.glob(f"{folder}/run/events.out.tfevents.*")
        found, wanted = curves_in(f"{folder}/run"), curves_of(f"{folder}/run/metrics.jsonl")
    good = (len(files) == 2 and found.keys() == wanted.keys() and all(equal(found[tag], wanted[tag]) for tag in wanted)
            and [step for step, _ in wanted["train/loss"]] == list(range(1, 9)) and len(wanted["evaluation/loss"]) >= 4)
    print(f"TensorBoard reads {found} from {len(files)} files" + ("" if good else f"; expected {wanted} from 2"))
    sys.exit(not good)


if __name__ == "__main__":
    main()
