# SPDX-License-Identifier: Apache-2.0
"""Penstock's tensor and context parallelism over two ranks beside what a user would take for them: transformers' Llama under torch's
DTensor tensor parallelism with sequence parallelism, and under torch's context parallelism, over gloo (bench/peers/torch_tensor.py).

Usage: bench/mesh.py PATH/TO/penstock [--sizes S L] [--types f32 bf16] [--steps 3] [--runs tp ...] [--continue]
(from the root of the repository)

All have two processes of one thread, but for our one rank of two threads, which is measured before and after the ranks that share
its sequences, since a machine's speed drifts. Nobody recomputes. Tensor parallelism takes whole sequences; context parallelism, at
the length of L (and XS, to see that it works), slices of an eighth. Ratios are of runs of the same size and type; "waited" is what
a step's computation waits for the tensor group (tensor_waited_s of metrics.jsonl, empty when the program does not write it), so
"waited, overlap / none" is the share of communication that overlap leaves exposed.
torch's tensor parallelism in bf16 is the faster of autocast and FSDP2's mixed precision, which gathers in bf16; compiled (which needs
g++) it stands beside, without an aim. torch's context_parallel refuses the CPU: its row says how. Its ring attention alone, around the
CPU's attention, runs, and is what ours is compared with. What refuses is listed with its words, and --continue tries it again.
bench/peer_runs.py says which steps count, where the log is and what the peers need.
"""
import statistics

from peer_runs import (FOLDER, MPIRUN, PEER_TYPES, SIZES, bound, carry_out, cases_of, mebibytes, print_aims, print_failed, ratio, run_file,
                       run_peer, shown, speed, torchrun, train)

TENSOR, EXPOSED = "penstock, tp = 2", "penstock, tp = 2, no overlap"
TORCH_TENSOR, CAST, COMPILED = "torch tensor parallel", "torch tensor parallel, bf16 weights", "torch tensor parallel, compiled"
ALONE = ("penstock, 1 rank of 2 threads", "penstock, the same again")
MODES = ("heads", "query", "gather")
CONTEXT = {mode: f"penstock, cp = 2, {mode}" for mode in MODES}
TORCH_CONTEXT, RING = "torch context_parallel", "torch ring attention"
SLICES = 8
SHARED_SEQUENCES = ("L", "XS")  # sizes at which they are measured
# name, whether more is better, the aim
TENSOR_RATIOS = [("tp speed / torch's", True, 1.2), ("tp memory / torch's", False, None), ("tp speed / torch's compiled", True, None),
                 ("overlap / none, time", False, None), ("waited, overlap / none", False, 0.6)]
CONTEXT_RATIOS = [*((f"cp {mode} / one rank, time", False, 1.05) for mode in MODES),
                  *((f"cp {mode} speed / torch ring's", True, 1.2) for mode in MODES), ("best cp memory / torch ring's", False, None)]


def run_ours(program, size, dtype, steps, ranks, slices=1, **parallel):
    directory = FOLDER / "mesh-run"
    name = "-".join(str(word) for word in ("mesh", size, dtype, ranks, *parallel.values()))
    path = run_file(FOLDER / f"{name}.toml", size, dtype, 2 // ranks, steps, directory, parallel={"pp": 1, **parallel},
                    schedule={"name": "slimpipe", "slices": slices, "chunks": 1}, memory={"policy": "none"})
    command = [*(MPIRUN if ranks == 2 else []), program, "train", str(path)]
    run = train([command], [directory], SIZES[size][6] * SIZES[size][7], ranks)[0]
    return {**run, "accounted_bytes": ranks * run["accounted_bytes"]}


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    ours = lambda *ranks, **parallel: lambda: run_ours(program, size, dtype, steps, *ranks, **parallel)
    peer = [*torchrun(python, "torch_tensor.py"), "--size", size, "--threads", "1", "--dtype", PEER_TYPES[dtype], "--steps", str(steps)]
    theirs = lambda *flags: lambda: run_peer([*peer, *flags])
    yield TENSOR, ours(2, tp=2, tp_overlap=True)
    yield EXPOSED, ours(2, tp=2, tp_overlap=False)
    yield TORCH_TENSOR, theirs("--mode", "tp")
    if dtype == "bf16":
        yield CAST, theirs("--mode", "tp", "--cast-weights")
    yield COMPILED, theirs("--mode", "tp", "--compile")
    if size in SHARED_SEQUENCES:
        yield ALONE[0], ours(1, SLICES)
        for mode, name in CONTEXT.items():
            yield name, ours(2, SLICES, cp=2, cp_mode=mode)
        yield ALONE[1], ours(1, SLICES)
        yield RING, theirs("--mode", "ring")
        yield TORCH_CONTEXT, theirs("--mode", "cp")


def fastest(case, *names):
    return max((case[name] for name in names if name in case), key=speed, default=None)


def resident(run):
    return run["peak_rss_bytes"]


def tensor_ratios(case):
    """The columns of TENSOR_RATIOS, None where a run is missing."""
    torch, none = fastest(case, TORCH_TENSOR, CAST), case.get(EXPOSED)
    waits = [case.get(name, {}).get("tensor_waited_seconds") for name in (TENSOR, EXPOSED)]
    return [ratio(case, TENSOR, torch, speed), ratio(case, TENSOR, torch, resident), ratio(case, TENSOR, case.get(COMPILED), speed),
            ratio(case, TENSOR, none, lambda run: 1 / speed(run)), waits[0] / waits[1] if None not in waits and waits[1] else None]


def context_ratios(case):
    """The columns of CONTEXT_RATIOS, None where a run is missing."""
    alone, ring = [speed(case[name]) for name in ALONE if name in case], case.get(RING)
    best = fastest(case, *CONTEXT.values())
    times = [statistics.mean(alone) / speed(case[name]) if alone and name in case else None for name in CONTEXT.values()]
    return [*times, *(ratio(case, name, ring, speed) for name in CONTEXT.values()), resident(best) / resident(ring) if best and ring else None]


def print_runs(cases):
    print("| size | type | what | tokens/s | CPU s | peak resident MiB | of that before the model | accounted MiB | waited, ms | quiet steps |")
    print("|---" * 10 + "|")
    for (size, dtype), case in cases.items():
        for label, run in case.items():
            waited = run.get("tensor_waited_seconds")
            memory = [mebibytes(run.get(key)) for key in ("peak_rss_bytes", "rss_before_model_bytes", "accounted_bytes")]
            cells = [size, dtype, label, f"{speed(run):,.0f}", f"{run['cpu_seconds']:.1f}", *memory,
                     "" if waited is None else f"{1e3 * waited:.0f}", str(run["quiet_steps"])]
            print(f"| {' | '.join(cells)} |")


def print_ratios(columns, found):
    print(f"\n| size | type | {' | '.join(name for name, *_ in columns)} |\n|---|---" + "|---" * len(columns) + "|")
    print(f"| aim | | {' | '.join(bound(at_least, aim) if aim else '' for _, at_least, aim in columns)} |")
    for (size, dtype), cells in found.items():
        print(f"| {size} | {dtype} | " + " | ".join(shown(cell) for cell in cells) + " |")


def tables(runs):
    cases = cases_of(runs)
    print_runs(cases)
    judged = []
    for columns, ratios, sizes in ((TENSOR_RATIOS, tensor_ratios, SIZES), (CONTEXT_RATIOS, context_ratios, SHARED_SEQUENCES)):
        found = {key: ratios(case) for key, case in cases.items() if key[0] in sizes}
        if found:
            print_ratios(columns, found)
        judged += [(*key, name, value, at_least, aim) for key, cells in found.items() for value, (name, at_least, aim) in zip(cells, columns)]
    print_aims(judged)
    print_failed(runs)


if __name__ == "__main__":
    tables(carry_out(__doc__, "mesh", ["S", "L"], measurements, ["XS"]))
