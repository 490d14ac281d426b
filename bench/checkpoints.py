# SPDX-License-Identifier: Apache-2.0
"""What checkpoints and copies in the host's memory take from training, and how soon a run that goes on is at its first step.

Usage: bench/checkpoints.py PATH/TO/penstock [--size M] [--rounds 2] [--type f32]   (from the root of the repository)

Two ranks under mpirun train with one of them every ten steps, and with none; runs alternate. Counted is the wall time of ten steps
with all that is between them, so the work beside training that slows it counts too; the first twenty are not counted, since the first
checkpoint and the first two copies take fresh memory from the system, which is told apart. Then a run of one step, and the one that
goes on from it: from the command's start to the beginning of its first step.
"""
import json
import pathlib
import shutil
import statistics
import time

import programs
import run_files
from forecast import SIZES

FOLDER = pathlib.Path("build/bench/checkpoints")
EVERY = 10
WARM = 2 * EVERY  # steps until all memory has been used once
STEPS = WARM + 2 * EVERY + 1
KINDS = {"none": {}, "checkpoints": {"checkpoint_every": EVERY}, "copies": {"buddy_every": EVERY}}
AIM, START_AIM = 1.03, 2.0


def run_file(size, precision, kind, steps):
    layers, hidden, ffn, heads, kv_heads, vocab, seq_len = SIZES[size]
    text = FOLDER / "text.txt"
    text.write_text("".join(f"line {i}: {i * i}\n" for i in range(400_000)))
    train = {"steps": steps, "batch": 2, "precision": precision, "threads": 1, "lr_schedule": "constant", "checkpoint_every": 0, "evaluate_every": 0}
    return run_files.write(FOLDER / f"{kind}.toml",
                           model={"layers": layers, "hidden": hidden, "ffn": ffn, "heads": heads, "kv_heads": kv_heads, "vocab": vocab},
                           data={"text": str(text.resolve()), "seq_len": seq_len, "validation_fraction": 0}, parallel={"pp": 2},
                           schedule={"slices": 4}, train=train | KINDS[kind], output={"dir": str(FOLDER / kind)})


def train(program, file, *words):
    """Seconds since 1970 when the command began, and the lines of its metrics."""
    began = time.time()
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", program, "train", str(file), *words]
    programs.output(*command)
    folder = FOLDER / file.stem
    return began, [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Steps:
    """Step times of one run."""

    def __init__(self, lines):
        ends = [line["time"] for line in lines[WARM:]]
        held = [line.get("checkpoint_s", 0) for line in lines]
        self.seconds = [(later - earlier) / EVERY for earlier, later in zip(ends[::EVERY], ends[EVERY::EVERY])]  # a step, each ten
        self.first = sum(held[:WARM + 1])
        self.held_up = sum(held[WARM + 1:]) / (len(lines) - WARM - 1)


def steps_of(program, size, precision, kind):
    shutil.rmtree(FOLDER / kind, ignore_errors=True)
    _, lines = train(program, run_file(size, precision, kind, STEPS))
    return Steps(lines)


def seconds_to_first_step(program, size, precision, kind):
    """Of a run of one step, and of the one that goes on from its checkpoint, and what of that was loading."""
    shutil.rmtree(FOLDER / kind, ignore_errors=True)
    file = run_file(size, precision, kind, 1)
    words = ["--train.checkpoint_every", "1"]
    began, lines = train(program, file, *words)
    again, later = train(program, file, *words, "--resume", "--train.steps", "2")
    return (lines[0]["time"] - lines[0]["step_s"] - began, later[1]["time"] - later[1]["step_s"] - again, later[1]["start"]["load_s"])


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("--size", default="M", choices=SIZES)
    parser.add_argument("--type", default="f32")
    parser.add_argument("--rounds", type=programs.count, default=2)
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = {kind: [] for kind in KINDS}
    for _ in range(asked.rounds):
        for kind in KINDS:
            found[kind].append(steps_of(asked.program, asked.size, asked.type, kind))
    least = {kind: min(min(run.seconds) for run in runs) for kind, runs in found.items()}
    print(f"{asked.size}, {asked.type}, two ranks; every {EVERY} steps; the least mean of ten steps, of {asked.rounds} runs\n")
    print("| kept | s a step | of none (aim) | held up, s a step | the first ones together, once, s |\n|---|---|---|---|---|")
    for kind, runs in found.items():
        held_up, first = (statistics.median(values) for values in zip(*((run.held_up, run.first) for run in runs)))
        aim = "" if kind == "none" else f" ({AIM})"
        print(f"| {kind} | {least[kind]:.3f} | {least[kind] / least['none']:.3f}{aim} | {held_up:.3f} | {first:.2f} |")
    starts = [seconds_to_first_step(asked.program, asked.size, asked.type, "checkpoints") for _ in range(3)]
    fresh, resumed, load = (statistics.median(values) for values in zip(*starts))
    print(f"\nfrom the command to the first step: {fresh:.2f} s; going on from a checkpoint: {resumed:.2f} s, of which loading {load:.2f} s; "
          f"{resumed / fresh:.2f} times (aim {START_AIM})")


if __name__ == "__main__":
    main()
