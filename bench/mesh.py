# SPDX-License-Identifier: Apache-2.0
"""Penstock's tensor and context parallelism over two ranks beside what a user would take for them: transformers' Llama under torch's
DTensor tensor parallelism with sequence parallelism, and under torch's context parallelism, over gloo (bench/peers/torch_tensor.py).

Usage: bench/mesh.py PATH/TO/penstock [--sizes S L] [--types f32 bf16] [--steps 3] [--runs tp ...] [--continue]
(from the root of the repository)

All have two processes of one thread, but for our one rank of two threads, which is measured before and after the ranks that share
its sequences, since a machine's speed drifts. Nobody recomputes. Tensor parallelism takes whole sequences; context parallelism, at
the length of L (and XS, to see that it works), slices of an eighth. Ratios are of runs of the same size and type; "waited" is what
a step's computation waits for the tensor group (tensor_waited_s of metrics.jsonl, empty when the program does not write it), so
"waited, overlap / none" is the share of communication that overlap leaves exposed. Beside each step of ours is the one that
`penstock simulate` gives the run file with this machine's profile, which is measured before the tables are printed. The last
table has what each mode of context parallelism moves and takes, here and simulated for four nodes of eight H100 with the speeds of
hardware/h100.toml.
torch's tensor parallelism in bf16 is the faster of autocast and FSDP2's mixed precision, which gathers in bf16; compiled (which needs
g++) it stands beside, without an aim. torch's context_parallel refuses the CPU: its row says how. Its ring attention alone, around the
CPU's attention, runs, and is what ours is compared with. What refuses is listed with its words, and --continue tries it again.
bench/peer_runs.py says which steps count, where the log is and what the peers need.
"""
import json
import os
import statistics

import programs
import run_files
from peer_runs import (FOLDER, MPIRUN, PEER_TYPES, SIZES, bound, carry_out, cases_of, mebibytes, print_aims, ratio, run_file,
                       run_peer, shown, speed, torchrun, train)

TENSOR, EXPOSED = "penstock, tp = 2", "penstock, tp = 2, no overlap"
TORCH_TENSOR, CAST, COMPILED = "torch tensor parallel", "torch tensor parallel, bf16 weights", "torch tensor parallel, compiled"
ALONE = ("penstock, 1 rank of 2 threads", "penstock, the same again")
MODES = ("heads", "query", "gather")
CONTEXT = {mode: f"penstock, cp = 2, {mode}" for mode in MODES}
TORCH_CONTEXT, RING = "torch context_parallel", "torch ring attention"
SLICES = 8
# Ranks, slices, keys of [parallel].
OURS = {TENSOR: (2, 1, dict(tp=2, tp_overlap=True)), EXPOSED: (2, 1, dict(tp=2, tp_overlap=False)),
        **{name: (1, SLICES, {}) for name in ALONE},
        **{name: (2, SLICES, dict(cp=2, cp_mode=mode)) for mode, name in CONTEXT.items()}}
SHARED_SEQUENCES = ("L", "XS")  # sizes at which they are measured
FORECAST = 0.05  # of the measured step
PROFILES = FOLDER / "mesh-profiles"
# A model of eight billion parameters with grouped queries, on four nodes.
H100_RUN = dict(model=dict(layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, vocab=128256),
                data={"text": "not read", "seq_len": 131072}, parallel={"cp": 8, "pp": 4},
                schedule={"name": "slimpipe", "slices": SLICES}, train={"batch": 4, "precision": "bf16"}, output={"dir": "not written"})
# name, whether more is better, the aim
TENSOR_RATIOS = [("tp speed / torch's", True, 1.2), ("tp memory / torch's", False, None), ("tp speed / torch's compiled", True, None),
                 ("overlap / none, time", False, None), ("waited, overlap / none", False, 0.6)]
CONTEXT_RATIOS = [*((f"cp {mode} / one rank, time", False, 1.05) for mode in MODES),
                  *((f"cp {mode} speed / torch ring's", True, 1.2) for mode in MODES), ("best cp memory / torch ring's", False, None)]


def simulated(program, path, *words):
    environment = dict(os.environ, XDG_CACHE_HOME=str(PROFILES.resolve()))
    return json.loads(programs.output(program, "simulate", path, "--json", *words, env=environment))


def run_of_ours(size, dtype, steps, name):
    """The run file of ours of that name, and its directory."""
    ranks, slices, parallel = OURS[name]
    directory = FOLDER / "mesh-run"
    file = "-".join(str(word) for word in ("mesh", size, dtype, ranks, *parallel.values()))
    return run_file(FOLDER / f"{file}.toml", size, dtype, 2 // ranks, steps, directory, parallel={"pp": 1, **parallel},
                    schedule={"name": "slimpipe", "slices": slices, "chunks": 1}, memory={"policy": "none"}), directory


def run_ours(program, size, dtype, steps, name):
    ranks = OURS[name][0]
    path, directory = run_of_ours(size, dtype, steps, name)
    command = [*(MPIRUN if ranks == 2 else []), program, "train", str(path)]
    run = train([command], [directory], SIZES[size][6] * SIZES[size][7], ranks)[0]
    return {**run, "accounted_bytes": ranks * run["accounted_bytes"]}


def add_forecasts(program, cases):
    """The simulated step of each run of ours, with a profile of this machine that is measured now."""
    profiled = set()
    for (size, dtype), case in cases.items():
        for name in case.keys() & OURS.keys():
            ranks = OURS[name][0]
            if (dtype, ranks) not in profiled:
                words = [program, "profile", "--ranks", str(ranks), "--threads", str(2 // ranks), "--precision", dtype]
                programs.output(*words, env=dict(os.environ, XDG_CACHE_HOME=str(PROFILES.resolve())))
                profiled.add((dtype, ranks))
            case[name]["forecast_seconds"] = simulated(program, run_of_ours(size, dtype, 1, name)[0])["makespan_s"]


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    ours = lambda name: (name, lambda: run_ours(program, size, dtype, steps, name))
    peer = [*torchrun(python, "torch_tensor.py"), "--size", size, "--threads", "1", "--dtype", PEER_TYPES[dtype], "--steps", str(steps)]
    theirs = lambda *flags: lambda: run_peer([*peer, *flags])
    yield ours(TENSOR)
    yield ours(EXPOSED)
    yield TORCH_TENSOR, theirs("--mode", "tp")
    if dtype == "bf16":
        yield CAST, theirs("--mode", "tp", "--cast-weights")
    yield COMPILED, theirs("--mode", "tp", "--compile")
    if size in SHARED_SEQUENCES:
        for name in (ALONE[0], *CONTEXT.values(), ALONE[1]):
            yield ours(name)
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


def forecast_off(run):
    """How far the simulated step is from the measured one."""
    return run["forecast_seconds"] / run["median_seconds"] - 1 if "forecast_seconds" in run else None


def print_runs(cases):
    print("| size | type | what | tokens/s | CPU s | peak resident MiB | of that before the model | accounted MiB | waited, ms | simulated | quiet steps |")
    print("|---" * 11 + "|")
    for (size, dtype), case in cases.items():
        for label, run in case.items():
            waited, off = run.get("tensor_waited_seconds") or run.get("context_waited_seconds"), forecast_off(run)
            memory = [mebibytes(run.get(key)) for key in ("peak_rss_bytes", "rss_before_model_bytes", "accounted_bytes")]
            cells = [size, dtype, label, f"{speed(run):,.0f}", f"{run['cpu_seconds']:.1f}", *memory,
                     "" if waited is None else f"{1e3 * waited:.0f}", "" if off is None else f"{100 * off:+.1f} %", str(run["quiet_steps"])]
            print(f"| {' | '.join(cells)} |")


def print_ratios(columns, found):
    print(f"\n| size | type | {' | '.join(name for name, *_ in columns)} |\n|---|---" + "|---" * len(columns) + "|")
    print(f"| aim | | {' | '.join(bound(at_least, aim) if aim else '' for _, at_least, aim in columns)} |")
    for (size, dtype), cells in found.items():
        print(f"| {size} | {dtype} | " + " | ".join(shown(cell) for cell in cells) + " |")


def mode_cells(run):
    """What a mode moves and takes on two ranks of this machine."""
    if run is None:
        return [""] * 3
    return [mebibytes(run["context_bytes"]), f"{1e3 * run['context_waited_seconds']:.0f}", f"{run['median_seconds']:.2f}"]


def print_modes(program, cases):
    """A row for each mode; its columns here at each size and type, then simulated on H100s."""
    path = run_files.write(FOLDER / "mesh-h100.toml", **H100_RUN)
    here = {key: case for key, case in cases.items() if any(name in case for name in CONTEXT.values())}
    heads = [f"{size} {dtype}: {what}" for size, dtype in here for what in ("MiB a step", "waited, ms", "step, s")]
    print(f"\n| mode | {' | '.join(heads + ['H100s, simulated: step, s', 'most memory, GiB'])} |")
    print("|---" * (len(heads) + 3) + "|")
    for mode in ("heads", "mixed", "query", "gather"):
        found = simulated(program, path, "--hardware", "h100", "--parallel.cp_mode", mode)
        memory = max(device["peak_bytes"] for device in found["devices"])
        cells = [cell for case in here.values() for cell in mode_cells(case.get(CONTEXT.get(mode)))]
        cells += [f"{found['makespan_s']:.2f}", f"{memory / 2**30:.1f}"]
        print(f"| {mode} | {' | '.join(cells)} |")


def judged_forecasts(cases):
    for key, case in cases.items():
        for label, run in case.items():
            if forecast_off(run) is not None:
                yield (*key, f"simulated step, {label}: off by", abs(forecast_off(run)), False, FORECAST)


def tables(program, runs):
    cases = cases_of(runs)
    add_forecasts(program, cases)
    print_runs(cases)
    judged = []
    for columns, ratios, sizes in ((TENSOR_RATIOS, tensor_ratios, SIZES), (CONTEXT_RATIOS, context_ratios, SHARED_SEQUENCES)):
        found = {key: ratios(case) for key, case in cases.items() if key[0] in sizes}
        if found:
            print_ratios(columns, found)
        judged += [(*key, name, value, at_least, aim) for key, cells in found.items() for value, (name, at_least, aim) in zip(cells, columns)]
    print_modes(program, cases)
    print_aims([*judged, *judged_forecasts(cases)])


if __name__ == "__main__":
    carry_out(__doc__, "mesh", ["S", "L"], measurements, tables, ["XS"])
