# SPDX-License-Identifier: Apache-2.0
"""How soon Penstock answers: `penstock show --help`, and the first step of the demo, over two MPI ranks as ./dev demo starts it and
over two threads. Printed are medians of the rounds, from the start of the process to its first byte of output, or to the time
that metrics.jsonl gives for step 1.

What LibTorch and MPI take by themselves is the time of `penstock-compute --version`, which loads them and prints a line; under
mpirun, of two of them, so that the launcher's own time is in it. "ours" is the first step without that. All files have been
read before. The demo's text is the one of ./dev demo, and two steps of it are trained.

Usage: bench/startup.py PATH/TO/penstock [ROUNDS]   (from the root of the repository)
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import programs

ROUNDS = 7
FOLDER = pathlib.Path("build/bench/startup")
TEXT = pathlib.Path("build/demo/gcide.txt")
DICTIONARY = "/usr/share/dictd/gcide.dict.dz"
MPIRUN = ["mpirun", "--oversubscribe", "-np", "2"]
HELP_AIM, STEP_AIM = 0.020, 0.5
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def first_output(command):
    """Seconds until the command prints something."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        process.stdout.read(1)
        seconds = time.perf_counter() - began
        process.stdout.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}")
    return seconds


def first_step(launcher, program, options):
    """Seconds until the first step of the demo is noted."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    command = [*launcher, program, "train", "runs/demo.toml", *options, "--train.steps", "2", "--output.dir", str(FOLDER)]
    began = time.time()
    programs.output(*command, env=ENVIRONMENT)
    with open(FOLDER / "metrics.jsonl", encoding="utf-8") as metrics:
        return json.loads(metrics.readline())["time"] - began


def make_text():
    if TEXT.exists():
        return
    TEXT.parent.mkdir(parents=True, exist_ok=True)
    with open(TEXT, "wb") as text:
        subprocess.run(["zcat", DICTIONARY], check=True, stdout=text)


def milliseconds(values):
    return f"{1000 * statistics.median(values):.0f}"


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("rounds", nargs="?", type=programs.count, default=ROUNDS)
    asked = parser.parse_args()
    program, rounds = asked.program, asked.rounds
    compute = program + "-compute"
    make_text()
    helps = [first_output([program, "show", "--help"]) for _ in range(rounds + 1)][1:]
    print(f"Medians of {rounds} rounds, in ms.\n")
    print("| until | ms | slowest | aim |\n|---|---|---|---|")
    met = "met" if statistics.median(helps) <= HELP_AIM else "missed"
    print(f"| `penstock show --help` prints | {1000 * statistics.median(helps):.1f} | {1000 * max(helps):.1f} | ≤ {1000 * HELP_AIM:.0f}, {met} |")
    print("\n| first step of the demo | whole | LibTorch and MPI loaded | ours | slowest | aim, ours |\n|---|---|---|---|---|---|")
    precision = ["--train.precision", "bf16" if "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text() else "f32"]
    for name, launcher, options in (("two MPI ranks", MPIRUN, []), ("two threads", [], ["--ranks", "2"])):
        loads, steps = [], []
        for _ in range(rounds + 1):
            loads.append(first_output([*launcher, compute, "--version"]))
            steps.append(first_step(launcher, program, [*options, *precision]))
        loads, steps = loads[1:], steps[1:]
        ours = [step - load for step, load in zip(steps, loads)]
        met = "met" if statistics.median(ours) <= STEP_AIM else "missed"
        print(f"| {name} | {milliseconds(steps)} | {milliseconds(loads)} | {milliseconds(ours)} | {1000 * max(ours):.0f} | "
              f"≤ {1000 * STEP_AIM:.0f}, {met} |")
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
