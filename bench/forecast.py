# SPDX-License-Identifier: Apache-2.0
"""`penstock simulate RUN.toml` beside `penstock train RUN.toml`: ten run files of different sizes, precisions, slices, policies
and ranks, simulated with the speeds of `penstock profile --quick` and of `penstock profile`, which are measured first. A
measured step is the median of the kept ones; the first is left out.

Usage: bench/forecast.py PATH/TO/penstock [NUMBER...]   (from the root of the repository)
"""
import json
import os
import pathlib
import shutil
import statistics
import time

import programs
import run_files

FOLDER = pathlib.Path("build/bench/forecast")
FIELDS = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
# Of each, and seq_len
SIZES = {"demo": (4, 128, 352, 2, 2, 259, 1024), "S": (8, 512, 1376, 8, 8, 8192, 2048), "M": (12, 768, 2048, 12, 12, 32000, 2048),
         "G": (8, 512, 1376, 8, 2, 8192, 4096), "L": (4, 512, 1376, 8, 8, 8192, 16384)}
# size, precision, ranks, threads of each, schedule, slices, chunks, policy, batch, micro-batch, steps
RUNS = [("demo", "bf16", 2, 1, "slimpipe", 4, 1, "none", 2, 1, 20),
        ("S", "bf16", 2, 1, "slimpipe", 4, 1, "none", 4, 1, 4),
        ("S", "f32", 2, 1, "1f1b", 1, 1, "none", 4, 1, 4),
        ("S", "bf16", 1, 1, "slimpipe", 8, 1, "full", 2, 1, 4),
        ("S", "bf16", 2, 1, "slimpipe", 8, 2, "balanced", 4, 1, 4),
        ("G", "f32", 1, 2, "slimpipe", 4, 1, "balanced", 2, 1, 4),
        ("G", "bf16", 2, 1, "zb-v", 1, 2, "none", 4, 1, 4),
        ("M", "bf16", 1, 2, "1f1b", 1, 1, "balanced+fc1", 2, 2, 4),
        ("M", "f32", 2, 1, "slimpipe", 4, 1, "none", 2, 1, 4),
        ("L", "bf16", 2, 1, "slimpipe", 8, 1, "none", 1, 1, 4)]


def run_file(number, text):
    size, precision, ranks, threads, schedule, slices, chunks, policy, batch, micro_batch, steps = RUNS[number]
    *sizes, seq_len = SIZES[size]
    return run_files.write(FOLDER / f"run-{number + 1}.toml",
                           model=dict(zip(FIELDS, sizes)),
                           data={"text": str(text.resolve()), "seq_len": seq_len, "validation_fraction": 0},
                           parallel={"pp": ranks},
                           schedule={"name": schedule, "slices": slices, "chunks": chunks},
                           memory={"policy": policy},
                           train={"steps": steps, "batch": batch, "micro_batch": micro_batch, "threads": threads, "precision": precision,
                                  "checkpoint_every": 0},
                           output={"dir": str(FOLDER / f"run-{number + 1}")})


def profile(program, cache, quick, ranks, threads, precision):
    """Seconds that the profile took; it is kept in the cache, where simulate finds it."""
    words = [program, "profile", "--ranks", str(ranks), "--threads", str(threads), "--precision", precision] + (["--quick"] if quick else [])
    began = time.monotonic()
    programs.output(*words, env=os.environ | {"XDG_CACHE_HOME": str(cache.resolve())})
    return time.monotonic() - began


def simulated(program, cache, path):
    words = [program, "simulate", str(path), "--json"]
    return json.loads(programs.output(*words, env=os.environ | {"XDG_CACHE_HOME": str(cache.resolve())}))["makespan_s"]


def measured(program, number, path):
    ranks = RUNS[number][2]
    directory = FOLDER / f"run-{number + 1}"
    shutil.rmtree(directory, ignore_errors=True)
    launcher = ["mpirun", "--oversubscribe", "-np", str(ranks)] if ranks > 1 else []
    programs.output(*launcher, program, "train", path)
    steps = [json.loads(line)["step_s"] for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(steps[1:])


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("numbers", metavar="NUMBER", nargs="*", type=programs.one_of([str(i + 1) for i in range(len(RUNS))]),
                        help="of a run; all unless named")
    asked = parser.parse_args()
    program, numbers = asked.program, [int(number) - 1 for number in asked.numbers] or range(len(RUNS))
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    text = FOLDER / "text.txt"
    text.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))
    caches = {True: FOLDER / "quick", False: FOLDER / "full"}
    shutil.rmtree(FOLDER / "quick", ignore_errors=True)
    shutil.rmtree(FOLDER / "full", ignore_errors=True)
    took = {True: [], False: []}
    for ranks, threads, precision in sorted({(RUNS[i][2], RUNS[i][3], RUNS[i][1]) for i in numbers}):
        for quick in caches:
            took[quick].append(profile(program, caches[quick], quick, ranks, threads, precision))
    print(f"profile --quick took at most {max(took[True]):.1f} s, profile {max(took[False]):.1f} s\n")
    print("| run | size | precision | ranks x threads | schedule | n | v | policy | measured s | quick | difference | full | difference |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    differences = {True: [], False: []}
    for number in numbers:
        size, precision, ranks, threads, schedule, slices, chunks, policy = RUNS[number][:8]
        path = run_file(number, text)
        seconds = measured(program, number, path)
        cells = []
        for quick in caches:
            forecast = simulated(program, caches[quick], path)
            differences[quick].append(100 * (forecast / seconds - 1))
            cells.append(f"{forecast:.3f} | {differences[quick][-1]:+.1f} %")
        print(f"| {number + 1} | {size} | {precision} | {ranks} x {threads} | {schedule} | {slices} | {chunks} | {policy} | {seconds:.3f} | {cells[0]} | {cells[1]} |",
              flush=True)
    worst = {quick: max(differences[quick], key=abs) for quick in caches}
    print(f"\ngreatest difference: {worst[True]:+.1f} % after --quick (aim 10 %), {worst[False]:+.1f} % after the full profile (aim 5 %)")


if __name__ == "__main__":
    main()
