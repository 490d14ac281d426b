# SPDX-License-Identifier: Apache-2.0
"""Penstock beside its peers on the same work, one after the other on the same machine: transformers' Llama in one process,
torch.distributed.pipelining over two, and the step's matrix products and attention alone (bench/peers/).

Usage: bench/peers.py PATH/TO/penstock [--sizes S M L] [--types f32 bf16] [--steps 3] [--runs ZBV ...] [--continue]
(from the root of the repository)

Ours: one rank recomputes as "balanced" says, and at L as "balanced+fc1" too; two run slimpipe with the vocabulary sharded, in
as many slices and chunks as are fastest in simulation by this machine's table (schedule.slices = 0, chunks = 0). bench/peer_runs.py
says which steps count, where the log is and what the peers need.
"""
import json
import re

import programs
from peer_runs import (FOLDER, MPIRUN, PEER_TYPES, PEERS, SIZES, carry_out, cases_of, print_missed, ratio, run_file, run_peer,
                       shown, speed, torchrun, train)


PIPELINES = {"1F1B": {"S": "4,4", "M": "7,5", "L": "2,2", "XS": "1,1"},
             "Interleaved1F1B": {"S": "2,2,2,2", "M": "4,3,3,2", "L": "1,1,1,1", "XS": "0,1,1,0"},
             "ZBVZeroBubble": {"S": "2,2,2,2", "M": "3,4,3,2", "L": "1,1,1,1", "XS": "0,1,1,0"}}
CHOSEN = 0  # by the program
RATIOS = ["one rank / kernels", "one rank / transformers", "its memory", "two ranks / best pipelining", "their memory", "simulated / measured time",
          "n = 8 / n = 1, time", "balanced+fc1, its memory", "its time / balanced"]
ONE, TWO, TRANSFORMERS = "penstock, 1 rank", "penstock, 2 ranks", "transformers"
SLICED, LESS = f"{ONE}, 8 slices", f"{ONE}, balanced+fc1"


def run_ours(program, size, dtype, ranks, slices, steps, policy="balanced"):
    directory = FOLDER / "peers-run"
    path = run_file(FOLDER / f"peers-{size}-{dtype}-{ranks}-{slices}.toml", size, dtype, 2 // ranks, steps, directory, parallel={"pp": ranks},
                    schedule={"name": "slimpipe", "slices": slices, "chunks": CHOSEN if ranks == 2 else 1, "vocabulary_parallel": ranks == 2},
                    memory={"policy": policy})
    runs = train([[*(MPIRUN if ranks == 2 else []), program, "train", str(path)]], [directory], SIZES[size][6] * SIZES[size][7], ranks)
    simulated = json.loads(programs.output(program, "simulate", directory, "--json"))
    chosen = dict(re.findall(r"^(slices|chunks) = (\d+)", (directory / "run.toml").read_text(), re.MULTILINE))
    return {**runs[0], **chosen, "simulated_seconds": simulated["makespan_s"], "measured_seconds": simulated["measured"]["makespan_s"]}


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    peer_type = PEER_TYPES[dtype]
    at = ["--size", size, "--threads"]
    yield "kernels alone", lambda: run_peer([python, PEERS / "kernels.py", *at, "2", "--dtype", dtype, "--repeats", "3"])
    yield ONE, lambda: run_ours(program, size, dtype, 1, 1, steps)
    if size == "L":
        yield SLICED, lambda: run_ours(program, size, dtype, 1, 8, steps)
        yield LESS, lambda: run_ours(program, size, dtype, 1, 1, steps, "balanced+fc1")
    yield TRANSFORMERS, lambda: run_peer([python, PEERS / "hf_train.py", *at, "2", "--dtype", peer_type, "--steps", str(steps)])
    yield TWO, lambda: run_ours(program, size, dtype, 2, CHOSEN, steps, "none")
    for schedule, stages in PIPELINES.items():
        yield f"pipelining {schedule}, 2 ranks", lambda: run_peer(
            [*torchrun(python, "torch_pipeline.py"), *at, "1", "--dtype", peer_type, "--steps", str(steps), "--schedule", schedule,
             "--layers-per-stage", stages[size]])


def side_by_side(cases):
    """tokens/s, and peak resident MiB, of a size and type in one row."""
    print("\n| tokens/s and peak resident MiB | kernels | penstock, 1 rank | transformers | penstock, 2 ranks | best pipelining, 2 ranks |")
    print("|---|---|---|---|---|---|")
    both = lambda run: f"{speed(run):,.0f} / {run['peak_rss_bytes'] / 2**20:,.0f}" if run else ""
    for (size, dtype), case in cases.items():
        kernels = f"{speed(case['kernels alone']):,.0f}" if "kernels alone" in case else ""
        name, best = best_pipelining(case)
        cells = [f"{size} {dtype}", kernels, both(case.get(ONE)), both(case.get(TRANSFORMERS)), both(case.get(TWO)),
                 f"{both(best)} ({name.split()[1].rstrip(',')})" if best else ""]
        print(f"| {' | '.join(cells)} |")


def best_pipelining(case):
    """The name and the run of the fastest schedule of torch.distributed.pipelining."""
    return max(((label, run) for label, run in case.items() if label.startswith("pipelining")), key=lambda item: speed(item[1]),
               default=("", None))


def tables(program, runs):
    cases = cases_of(runs)
    print("| size | type | what | tokens/s | of kernels | peak resident MiB | accounted MiB | quiet steps |\n|---|---|---|---|---|---|---|---|")
    for (size, dtype), case in cases.items():
        for label, run in case.items():
            resident = f"{run['peak_rss_bytes'] / 2**20:,.0f}" if "peak_rss_bytes" in run else ""
            accounted = f"{run['accounted_bytes'] / 2**20:,.0f}" if "accounted_bytes" in run else ""
            name = f"{label}, n = {run['slices']}, v = {run['chunks']}" if label == TWO else label
            print(f"| {size} | {dtype} | {name} | {speed(run):,.0f} | {shown(ratio(case, label, case.get('kernels alone'), speed))} | {resident} | {accounted} | {run.get('quiet_steps', '')} |")
    side_by_side(cases)
    print(f"\n| size | type | {' | '.join(RATIOS)} |\n|---|---" + "|---" * len(RATIOS) + "|")
    found = {key: ratios(case) for key, case in cases.items()}
    for (size, dtype), cells in found.items():
        print(f"| {size} | {dtype} | " + " | ".join(shown(cell) for cell in cells) + " |")
    print_missed([(*key, name, value, *aim) for key, cells in found.items() for name, value, aim in zip(RATIOS, cells, aims(*key))])


def ratios(case):
    """The columns of RATIOS, None where a run is missing."""
    best, resident = best_pipelining(case)[1], lambda run: run["peak_rss_bytes"]
    return [ratio(case, ONE, case.get("kernels alone"), speed), ratio(case, ONE, case.get(TRANSFORMERS), speed),
            ratio(case, ONE, case.get(TRANSFORMERS), resident), ratio(case, TWO, best, speed), ratio(case, TWO, best, resident),
            simulated(case.get(TWO)), ratio(case, ONE, case.get(SLICED), speed), ratio(case, LESS, case.get(TRANSFORMERS), resident),
            ratio(case, ONE, case.get(LESS), speed)]


def aims(size, dtype):
    """(whether more is better, the bound) of each of RATIOS."""
    if size == "XS":  # to see that it works
        return [(True, None)] * len(RATIOS)
    f32, long = dtype == "f32", size == "L"
    return [(True, 0.94 if f32 else 0.92 if long else 0.85), (True, None),
            (False, {"S": 0.6 if f32 else 0.55, "M": 0.65, "L": None}[size]),
            (True, 1.4 if long else 1.1 if f32 else 1.25), (False, {"S": 0.55, "M": 0.6, "L": 0.4}[size]),
            (True, 0.95), (False, 1.05), (False, 0.4 if f32 else 0.35), (False, 1.01)]  # at L less is kept where that costs no time


def simulated(run):
    return run["simulated_seconds"] / run["measured_seconds"] if run else None


if __name__ == "__main__":
    carry_out(__doc__, "peers", ["S", "M", "L"], measurements, tables, ["XS"])
