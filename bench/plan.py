# SPDX-License-Identifier: Apache-2.0
"""The planner's step beside the trainer's: measures this machine (penstock profile), plans two ranks on it, carries out
the run file that the plan wrote, and prints the measured step beside the predicted one.

Two measured figures: the median step, which is what a quiet machine takes; and the step composed by `penstock
simulate` of the median time of every action on its stage and slice, its disturbed runs left out (the quicker half over
micro-batches and steps counts), which a machine that is busy with other work disturbs less.

Usage: bench/plan.py PATH/TO/penstock [ROUNDS]   (from the root of the repository; two rounds unless told otherwise)
"""
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

FOLDER = pathlib.Path("build/bench")
STEPS = 5
PLAN = "plans/this-machine.toml"


def write_text():
    path = FOLDER / "text.txt"
    if not path.exists():
        path.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))
    return path


def json_of(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def profile(program, number):
    path = (FOLDER / f"profiled-{number}.toml").resolve()
    subprocess.run([program, "profile", "--ranks", "2", "--out", str(path)], check=True, stderr=subprocess.DEVNULL)
    noise = next(line for line in path.read_text().splitlines() if " % of the" in line)
    return path, noise.split(". In ")[-1].lstrip("# ")


def plan(program, hardware, text, *more):
    return [program, "plan", PLAN, "--cluster.hardware", str(hardware), "--workload.text", str(text), *more]


def train(program, run_file, number):
    run = FOLDER / f"planned-{number}"
    shutil.rmtree(run, ignore_errors=True)
    subprocess.run(["mpirun", "--oversubscribe", "-np", "2", program, "train", str(run_file), "--train.steps", str(STEPS),
                    "--train.threads", "1", "--train.evaluate_every", "0", "--output.dir", str(run)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run


def tokens_of_ops(run):
    """The tokens of each device's ops ("0F0.1", "STEP"), in the order of program.txt."""
    devices = []
    for line in (run / "program.txt").read_text().splitlines():
        words = line.split()
        if words and words[0] == "device":
            devices.append([])
        elif devices and words:
            devices[-1].append(words[1])
    return devices


def action_of(token):
    """Kind, stage and slice of a compute op ("3F2.1" gives F, 3, 1), None of any other."""
    found = re.fullmatch(r"(\d+)([FBIW])\d+(?:\.(\d+))?", token)
    if found:
        return found[2], int(found[1]), int(found[3] or 0)
    return ("STEP", 0, 0) if token == "STEP" else None


def composed_step(program, run, best):
    """Seconds of a step of undisturbed actions, as the simulator puts them together, and of the optimizer."""
    ops = tokens_of_ops(run)
    times = collections.defaultdict(list)
    for step in json.loads((run / "timeline.json").read_text())["steps"]:
        for device, events in enumerate(step["devices"]):
            for op, (start, end) in zip(ops[device], events):
                action = action_of(op)
                if action:
                    times[action].append(end - start)
    quiet = {action: statistics.median(sorted(found)[:(len(found) + 1) // 2]) for action, found in times.items()}
    table = FOLDER / "actions.costs"
    table.write_text("".join(f"{kind} {stage} {piece} {seconds}\n" for (kind, stage, piece), seconds in quiet.items()
                             if kind != "STEP") + "STEP * * 0\n")
    result = json_of(program, "simulate", "--schedule", best["schedule"], "-p", str(best["pp"]), "-m",
                     str(4 // best["micro_batch"] // best["dp"]), "-n", str(best["slices"]), "-v", str(best["chunks"]),
                     "--costs", str(table), "--json")
    return result["makespan_s"] + quiet.get(("STEP", 0, 0), 0.0), quiet


def by_kind(quiet, best):
    """Mean seconds of F and B of a slice-chunk."""
    return {kind: statistics.mean(seconds for (k, _, _), seconds in quiet.items() if k == kind)
            for kind in sorted({k for k, _, _ in quiet}) if kind != "STEP"}


def main():
    program = sys.argv[1]
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    text = write_text().resolve()
    print("| round | plan | predicted s | median step s | difference | composed of actions s | difference | noise while profiling |")
    print("|---|---|---|---|---|---|---|---|")
    for number in range(1, 1 + (int(sys.argv[2]) if len(sys.argv) > 2 else 2)):
        hardware, noise = profile(program, number)
        run_file = FOLDER / f"planned-{number}.toml"
        best = json_of(*plan(program, hardware, text, "--json", "--run-file", str(run_file)))["best"][0]
        run = train(program, run_file, number)
        steps = [json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()][1:]
        median = statistics.median(steps)
        composed, quiet = composed_step(program, run, best)
        name = f"{best['schedule']} n{best['slices']} v{best['chunks']} {best['policy']}"
        difference = lambda measured: f"{100 * (best['step_s'] / measured - 1):+.1f} %"
        print(f"| {number} | {name} | {best['step_s']:.3f} | {median:.3f} | {difference(median)} | {composed:.3f} "
              f"| {difference(composed)} | {noise} |", flush=True)
        print(f"  actions: {', '.join(f'{k} {1e3 * v:.2f} ms' for k, v in by_kind(quiet, best).items())}", file=sys.stderr)


if __name__ == "__main__":
    main()
