# SPDX-License-Identifier: Apache-2.0
"""Simulation beside measurement: runs the trainer under mpirun for several schedules at p = 2, simulates each run's
program from its own action times, and prints a Markdown table. The step that is simulated has the median time of the last three.

Usage: bench/reality.py PATH/TO/penstock   (from the root of the repository)
"""
import json
import os
import pathlib
import shutil

import programs

# name, slices, chunks
SCHEDULES = [("1f1b", 1, 1), ("interleaved", 1, 2), ("zb-h1", 1, 1), ("zb-v", 1, 2), ("slimpipe", 8, 1), ("slimpipe", 8, 2)]
FOLDER = pathlib.Path("build/bench")


def write_text():
    """Two megabytes of text that no run depends on in speed."""
    path = FOLDER / "text.txt"
    if not path.exists():
        path.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))


def train(program, name, slices, chunks):
    run = FOLDER / f"reality-{name}-{slices}-{chunks}"
    shutil.rmtree(run, ignore_errors=True)
    programs.output("mpirun", "--oversubscribe", "-np", "2", program, "train", "bench/reality.toml", "--schedule.name", name,
                    "--schedule.slices", slices, "--schedule.chunks", chunks, "--output.dir", run)
    return run


def saved_bytes(run, key, device):
    summary = json.loads((run / "summary.json").read_text())["devices"][device][key]
    return sum(summary[category] for category in ("activations", "weight_records", "kv_gradients", "logits"))


def row(program, name, slices, chunks):
    run = train(program, name, slices, chunks)
    result = json.loads(programs.output(program, "simulate", run, "--json"))
    measured = result["measured"]
    error = 100 * (result["makespan_s"] / measured["makespan_s"] - 1)
    memory = [100 * (saved_bytes(run, "predicted_bytes", d) / saved_bytes(run, "measured_bytes", d) - 1) for d in (0, 1)]
    return (f"| {name} | {slices} | {chunks} | {measured['makespan_s'] * 1e3:.0f} | {result['makespan_s'] * 1e3:.0f} | {error:+.1f} % "
            f"| {100 * measured['bubble_fraction']:.1f} % | {100 * result['bubble_fraction']:.1f} % "
            f"| {memory[0]:+.1f} %, {memory[1]:+.1f} % |")


def main():
    program = programs.asked(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_text()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    print("| schedule | n | v | measured ms | simulated ms | difference | bubble measured | simulated | saved bytes, predicted against measured |")
    print("|---|---|---|---|---|---|---|---|---|")
    for schedule in SCHEDULES:
        print(row(program, *schedule), flush=True)


if __name__ == "__main__":
    main()
