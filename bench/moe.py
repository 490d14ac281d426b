# SPDX-License-Identifier: Apache-2.0
"""Penstock's mixture of experts beside transformers' Mixtral, in one process of two threads each: a standard size
(bench/peers/common.py) whose layers have eight experts as wide as its ffn, two of them for a token (bench/peers/hf_moe.py, with each of
transformers' ways to multiply experts). Neither has a balance loss.

Usage: bench/moe.py PATH/TO/penstock [--sizes S] [--types f32 bf16] [--steps 3] [--runs penstock ...] [--continue]
(from the root of the repository)

Ours recomputes as "balanced" says, and beside that as "balanced+fc1" and "full" do, which keep less. "kernels" is the time of the
step's matrix products and attention alone, with LibTorch's kernels and an even load (bench/peers/kernels.py): "kernels / best of
transformers" is what a trainer without kernels of its own could reach at most. The share of dispatch and combine is of the kernels' time of a profiled step (train --profile).
bench/peer_runs.py says which steps count, where the log is and what the peers need.
"""
import json

from peer_runs import (FOLDER, PEER_TYPES, PEERS, SIZES, carry_out, cases_of, mebibytes, print_aims, ratio, run_file, run_peer,
                       shown, speed, train)

EXPERTS, CHOSEN = 8, 2
OURS, KERNELS = "penstock", "kernels alone"
LEANER = {f"penstock, {policy}": policy for policy in ("balanced+fc1", "full")}
IMPLEMENTATIONS = ("eager", "grouped_mm", "batched_mm")
RATIOS = [("speed / best of transformers", True, 1.3), ("its memory", False, 0.6), ("dispatch and combine", False, 0.08),
          *((f"{policy}, {what}", what == "speed", None) for policy in LEANER.values() for what in ("speed", "memory")),
          ("kernels / best of transformers", True, None), ("speed / kernels", True, None)]


def run_ours(program, size, dtype, steps, policy="balanced"):
    directory = FOLDER / "moe-run"
    path = run_file(FOLDER / f"moe-{size}-{dtype}.toml", size, dtype, 2, steps, directory,
                    model={"experts": EXPERTS, "experts_per_token": CHOSEN}, schedule={"name": "slimpipe", "slices": 1},
                    memory={"policy": policy})
    run = train([[program, "train", str(path), "--profile"]], [directory], SIZES[size][6] * SIZES[size][7], 1)[0]
    return {**run, "moved_share": moved_share(directory / "profile.json")}


def moved_share(path):
    """Of the time of all kernels of the last profiled step, that of dispatch and combine."""
    profile = json.loads(path.read_text())
    seconds = {}
    for calls in profile["steps"][-1]["devices"]:
        for kernel, _, begin, end, *_ in calls:
            name = profile["kernels"][kernel]
            seconds[name] = seconds.get(name, 0) + end - begin
    return (seconds["dispatch"] + seconds["combine"]) / sum(seconds.values())


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    yield OURS, lambda: run_ours(program, size, dtype, steps)
    for name, policy in LEANER.items():
        yield name, lambda policy=policy: run_ours(program, size, dtype, steps, policy)
    experts = ["--experts", str(EXPERTS), "--experts-per-token", str(CHOSEN)]
    yield KERNELS, lambda: run_peer([python, PEERS / "kernels.py", "--size", size, "--threads", "2", "--dtype",
                                     "f32" if dtype == "f32" else "bf16", "--repeats", "3", *experts])
    for name in IMPLEMENTATIONS:
        yield f"transformers, {name}", lambda name=name: run_peer(
            [python, PEERS / "hf_moe.py", "--size", size, "--threads", "2", "--dtype", PEER_TYPES[dtype], "--steps", str(steps),
             *experts, "--implementation", name])


def best_of_transformers(case):
    return max((run for name, run in case.items() if name.startswith("transformers")), key=speed, default=None)


def ratios(case):
    resident = lambda run: run["peak_rss_bytes"]
    best = best_of_transformers(case)
    leaner = [ratio(case, name, best, what) for name in LEANER for what in (speed, resident)]
    return [ratio(case, OURS, best, speed), ratio(case, OURS, best, resident), case[OURS]["moved_share"] if OURS in case else None,
            *leaner, ratio(case, KERNELS, best, speed), ratio(case, OURS, case.get(KERNELS), speed)]


def tables(program, runs):
    cases = cases_of(runs)
    print("| size | type | what | tokens/s | peak resident MiB | accounted MiB | quiet steps |\n|---|---|---|---|---|---|---|")
    for (size, dtype), case in cases.items():
        for name, run in case.items():
            print(f"| {size} | {dtype} | {name} | {speed(run):,.0f} | {mebibytes(run.get('peak_rss_bytes'))} | "
                  f"{mebibytes(run.get('accounted_bytes'))} | {run.get('quiet_steps', '')} |")
    print(f"\n| size | type | {' | '.join(name for name, _, _ in RATIOS)} |\n|---|---" + "|---" * len(RATIOS) + "|")
    for (size, dtype), case in cases.items():
        print(f"| {size} | {dtype} | {' | '.join(shown(value) for value in ratios(case))} |")
    print_aims([(*key, name, value, more, aim) for key, case in cases.items() for (name, more, aim), value in zip(RATIOS, ratios(case))])


if __name__ == "__main__":
    carry_out(__doc__, "moe", ["S"], measurements, tables, ["XS"])
