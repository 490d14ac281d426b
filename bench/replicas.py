# SPDX-License-Identifier: Apache-2.0
"""Two replicas of Penstock beside what a user would take for two processes on one machine: transformers' Llama under torch's
DistributedDataParallel and under FSDP2 (fully_shard), over gloo (bench/peers/torch_data.py). And what replicas cost: beside two
runs of half the batch that know nothing of each other, at the same time.

Usage: bench/replicas.py PATH/TO/penstock [--sizes S M] [--types f32 bf16] [--steps 3] [--runs DDP ...] [--continue]
(from the root of the repository)

All have two processes of one thread. Ours recomputes nothing, as its peers, and shares the optimizer's states out. Other rows recompute as
"balanced" says, as do the two runs of half the batch, or share the weights out too, with a stage for each layer, since a stage's weights
are gathered together. The limit is the step's matrix products and attention alone (bench/peers/kernels.py), in two processes at the same
time: no trainer on these kernels is faster, so no ratio is above the limit's. "CPU s" is the processor time of a step, all processes
together, which busy programs beside it change less than its speed. "Collectives" is the time of its gathers and sums, of which a part may
be hidden behind computation; from the timeline of the last step.
FSDP2 keeps gathered weights to the end of a step, which is the faster way here; in bf16 it gathers them in bf16 and computes in that
(its mixed precision), or computes under autocast as DDP does. bench/peer_runs.py says which steps count, where the log is and what the
peers need.
"""
import json
import statistics

from peer_runs import (FOLDER, MPIRUN, PEER_TYPES, PEERS, SIZES, bound, carry_out, cases_of, mebibytes, print_missed, ratio,
                       run_file, run_peer, run_peers, shown, speed, torchrun, train)

OURS, BALANCED, PASSING, DDP = "penstock, 2 replicas", "penstock, policy = balanced", "penstock, balanced, shard = weights", "DDP, 2 replicas"
KERNELS = "kernels alone, 2 processes"
HALVES = ("two runs of half the batch", "two such runs, again")  # before and after ours: a machine's speed drifts
FSDP2, CAST = "FSDP2, 2 replicas", "FSDP2, bf16 weights"
OVERHEAD, LIMIT = "balanced / two runs, time", "limit / FSDP2's"
# name, whether more is better, the aim
RATIOS = [("speed / DDP's", True, 1.15), ("memory / DDP's", False, 0.6), ("speed / FSDP2's", True, 1.3), ("memory / FSDP2's", False, 0.6),
          (OVERHEAD, False, 1.06), (LIMIT, True, None)]


def run_ours(program, size, dtype, steps, shard, chunks, policy="balanced"):
    directory = FOLDER / "replicas-run"
    path = write(FOLDER / f"replicas-{size}-{dtype}-{shard}-{policy}.toml", size, dtype, steps, directory, chunks=chunks, policy=policy,
                 dp=2, shard=shard)
    runs = train([[*MPIRUN, program, "train", str(path)]], [directory], SIZES[size][6] * SIZES[size][7], ranks=2)
    return {**runs[0], "accounted_bytes": 2 * runs[0]["accounted_bytes"], "collective_seconds": collective_seconds(directory)}


def collective_seconds(directory):
    """Of the first rank, in the last step."""
    ops = [line.split()[1] for line in (directory / "program.txt").read_text().splitlines() if line[:1].isdigit()]
    events = json.loads((directory / "timeline.json").read_text())["steps"][-1]["devices"][0]
    return sum(end - start for op, (start, end, *_) in zip(ops, events, strict=True) if op.endswith(("GATHER_WEIGHTS", "REDUCE_GRAD")))


def run_halves(program, size, dtype, steps):
    """Runs one step more than is counted, so that both halves run during every counted step."""
    directories, micro_batches = [FOLDER / f"replicas-half-{i}" for i in range(2)], SIZES[size][7] // 2
    paths = [write(FOLDER / f"replicas-{size}-{dtype}-half-{i}.toml", size, dtype, steps + 1, directory, micro_batches)
             for i, directory in enumerate(directories)]
    runs = train([[program, "train", str(path)] for path in paths], directories, SIZES[size][6] * micro_batches, ranks=2, uncounted_end=1)
    return {**runs[0], "tokens_per_second": sum(speed(run) for run in runs), "quiet_steps": min(run["quiet_steps"] for run in runs),
            "accounted_bytes": sum(run["accounted_bytes"] for run in runs), "both": runs}


def run_kernels(python, size, dtype):
    """Each process carries out whole steps, so their speeds add up."""
    command = [python, PEERS / "kernels.py", "--size", size, "--threads", "1", "--dtype", dtype, "--repeats", "3"]
    runs = run_peers([command, command])
    return {**runs[0], "kernel_tokens_per_second": sum(run["kernel_tokens_per_second"] for run in runs)}


def write(path, size, dtype, steps, directory, micro_batches=None, chunks=1, policy="balanced", **parallel):
    return run_file(path, size, dtype, 1, steps, directory, micro_batches, parallel={"pp": 1, **parallel},
                    schedule={"name": "slimpipe", "slices": 1, "chunks": chunks}, memory={"policy": policy})


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    peer = [*torchrun(python, "torch_data.py"), "--size", size, "--threads", "1", "--dtype", PEER_TYPES[dtype], "--steps", str(steps)]
    yield HALVES[0], lambda: run_halves(program, size, dtype, steps)
    yield BALANCED, lambda: run_ours(program, size, dtype, steps, "optimizer", 1)
    yield HALVES[1], lambda: run_halves(program, size, dtype, steps)
    yield OURS, lambda: run_ours(program, size, dtype, steps, "optimizer", 1, "none")
    yield PASSING, lambda: run_ours(program, size, dtype, steps, "weights", SIZES[size][0])
    yield KERNELS, lambda: run_kernels(python, size, dtype)
    yield DDP, lambda: run_peer([*peer, "--wrapper", "DDP"])
    yield FSDP2, lambda: run_peer([*peer, "--wrapper", "FSDP2", "--keep-weights"])
    if dtype == "bf16":
        yield CAST, lambda: run_peer([*peer, "--wrapper", "FSDP2", "--keep-weights", "--cast-weights"])


def faster_fsdp2(case):
    return max((case[name] for name in (FSDP2, CAST) if name in case), key=speed, default=None)


def ratios(case):
    """The columns of RATIOS, None where a run is missing."""
    resident, ddp, fsdp2 = (lambda run: run["peak_rss_bytes"]), case.get(DDP), faster_fsdp2(case)
    apart = [speed(case[name]) for name in HALVES if name in case]
    overhead = statistics.mean(apart) / speed(case[BALANCED]) if apart and BALANCED in case else None
    return [ratio(case, OURS, ddp, speed), ratio(case, OURS, ddp, resident), ratio(case, OURS, fsdp2, speed),
            ratio(case, OURS, fsdp2, resident), overhead, ratio(case, KERNELS, fsdp2, speed)]


def tables(program, runs):
    cases = cases_of(runs)
    print("| size | type | what | tokens/s | CPU s | peak resident MiB | of that before the model | accounted MiB | collectives, ms | of these hidden | quiet steps |")
    print("|---" * 11 + "|")
    for (size, dtype), case in cases.items():
        for label, run in case.items():
            collectives = f"{1e3 * run['collective_seconds']:.0f}" if "collective_seconds" in run else ""
            memory = [mebibytes(run.get(key)) for key in ("peak_rss_bytes", "rss_before_model_bytes", "accounted_bytes")]
            cpu = f"{run['cpu_seconds']:.1f}" if "cpu_seconds" in run else ""
            cells = [size, dtype, label, f"{speed(run):,.0f}", cpu, *memory, collectives, shown(run.get("collective_hidden")), str(run.get("quiet_steps", ""))]
            print(f"| {' | '.join(cells)} |")
    found = {key: ratios(case) for key, case in cases.items()}
    print(f"\n| size | type | {' | '.join(name for name, *_ in RATIOS)} |\n|---|---" + "|---" * len(RATIOS) + "|")
    print(f"| aim | | {' | '.join(bound(at_least, aim) if aim else '' for _, at_least, aim in RATIOS)} |")
    for (size, dtype), cells in found.items():
        print(f"| {size} | {dtype} | " + " | ".join(shown(cell) for cell in cells) + " |")
    print_missed([(*key, name, value, at_least, aim if key[0] == "S" or name != OVERHEAD else None)
                  for key, cells in found.items() for value, (name, at_least, aim) in zip(cells, RATIOS)])


if __name__ == "__main__":
    carry_out(__doc__, "replicas", ["S", "M"], measurements, tables, ["XS"])
