# SPDX-License-Identifier: Apache-2.0
"""The planner's step beside the trainer's: measures this machine (penstock profile), plans two ranks on it, carries out
the run file that the plan wrote, and prints the measured step beside the predicted one.

A measured step is the median of a run's steps, the first of which is not counted.

Usage: bench/plan.py PATH/TO/penstock [ROUNDS]   (from the root of the repository; three rounds unless told otherwise)
"""
import json
import os
import pathlib
import re
import shutil
import statistics

import programs

FOLDER = pathlib.Path("build/bench")
STEPS = 5
PLAN = "plans/this-machine.toml"


def write_text():
    path = FOLDER / "text.txt"
    if not path.exists():
        path.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))
    return path


def json_of(*command):
    return json.loads(programs.output(*command))


def profile(program, number):
    path = (FOLDER / f"profiled-{number}.toml").resolve()
    programs.output(program, "profile", "--ranks", "2", "--out", path)
    comment = " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))
    return path, re.search(r"In (\S+ %) of the repeats another program", comment)[1]


def plan(program, hardware, text, *more):
    return [program, "plan", PLAN, "--cluster.hardware", str(hardware), "--workload.text", str(text), *more]


def train(program, run_file, number):
    run = FOLDER / f"planned-{number}"
    shutil.rmtree(run, ignore_errors=True)
    programs.output("mpirun", "--oversubscribe", "-np", "2", program, "train", run_file, "--train.steps", STEPS, "--train.threads", "1",
                    "--train.evaluate_every", "0", "--output.dir", run)
    return run


def name_of(best):
    more = [best["policy"]] + (["vocabulary sharded"] if best["vocabulary_parallel"] else [])
    more += [f"exchange {best['exchange']}"] if best["exchange"] != "off" else []
    more += [f"offload {best['offload_ratio']}"] if best["offload_ratio"] else []
    return f"{best['schedule']} n{best['slices']} v{best['chunks']} {', '.join(more)}"


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("rounds", nargs="?", type=programs.count, default=3)
    asked = parser.parse_args()
    program = asked.program
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    text = write_text().resolve()
    print("| round | plan | predicted s | measured s | difference | repeats of the profile beside other programs |\n|---|---|---|---|---|---|")
    differences = []
    for number in range(1, 1 + asked.rounds):
        hardware, noise = profile(program, number)
        run_file = FOLDER / f"planned-{number}.toml"
        best = json_of(*plan(program, hardware, text, "--json", "--run-file", str(run_file)))["best"][0]
        run = train(program, run_file, number)
        seconds = statistics.median([json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()][1:])
        differences.append(100 * (best["step_s"] / seconds - 1))
        print(f"| {number} | {name_of(best)} | {best['step_s']:.3f} | {seconds:.3f} | {differences[-1]:+.1f} % | {noise} |", flush=True)
    print(f"\nmedian of the rounds: predicted and measured differ by {statistics.median(differences):+.1f} %")


if __name__ == "__main__":
    main()
