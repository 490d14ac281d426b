# SPDX-License-Identifier: Apache-2.0
"""Penstock beside its peers on the same work, one after the other on the same machine: transformers' Llama in one process,
torch.distributed.pipelining over two, and the step's matrix products and attention alone (bench/peers/).

Usage: bench/peers.py PATH/TO/penstock [--sizes S M L] [--types f32 bf16] [--steps 3] [--runs ZBV ...] [--continue]
(from the root of the repository)

Ours: one rank recomputes as "balanced" says, two run interleaved slimpipe with the vocabulary sharded. A step counts when
other programs used at most 0.05 of a core meanwhile, as long as there are such steps; speeds are those of the median step
that counts. Every line that a run prints goes to build/bench/peers.jsonl; the tables are made of it, and --continue leaves
out what it has already. The peers need PyPI's torch and transformers in $PENSTOCK_PEERS_PYTHON (default: a virtual
environment that is made in the cache folder, 3 GB).
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import run_files


# layers, hidden, ffn, heads, kv_heads, vocab, seq_len, micro-batches; as bench/peers/common.py has them
SIZES = {"S": (8, 512, 1376, 8, 8, 8192, 2048, 4), "M": (12, 768, 2048, 12, 12, 32000, 2048, 4), "L": (4, 512, 1376, 8, 8, 8192, 16384, 2)}
FIELDS = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
PIPELINES = {"1F1B": {"S": "4,4", "M": "7,5", "L": "2,2"}, "Interleaved1F1B": {"S": "2,2,2,2", "M": "4,3,3,2", "L": "1,1,1,1"},
             "ZBVZeroBubble": {"S": "2,2,2,2", "M": "3,4,3,2", "L": "1,1,1,1"}}
SLICES = {"S": 4, "M": 4, "L": 8}  # at two ranks; one rank: 1, at L also 8
RATIOS = ["one rank / kernels", "one rank / transformers", "its memory", "two ranks / best pipelining", "their memory", "simulated / measured time",
          "n = 8 / n = 1, time"]
QUIET = 0.05  # of a core
ONE, SLICED, TWO, TRANSFORMERS = "penstock, 1 rank", "penstock, 1 rank, sliced", "penstock, 2 ranks", "transformers"
FOLDER = pathlib.Path("build/bench")
PEERS = pathlib.Path("bench/peers")
TICKS = os.sysconf("SC_CLK_TCK")


def peers_python():
    given = os.environ.get("PENSTOCK_PEERS_PYTHON")
    if given:
        return given
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "penstock" / "peers"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        print(f"installing torch and transformers into {home} (3 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "torch==2.11.0", "transformers==5.23.0"], check=True)
        (home / "ready").touch()
    return str(python)


def environment():
    """The peers' best allocator, where it is installed; ours brings its own."""
    found = subprocess.run("ldconfig -p | awk '/libtcmalloc_minimal.so.4/ {print $NF; exit}'", shell=True, capture_output=True, text=True)
    preload = found.stdout.strip()
    if not preload:
        print("no tcmalloc (apt install libtcmalloc-minimal4): the peers run slower than they could", file=sys.stderr)
    return dict(os.environ, LD_PRELOAD=preload, CUDA_VISIBLE_DEVICES="")


def run_peer(command):
    print("  " + " ".join(str(word) for word in command), file=sys.stderr)
    result = subprocess.run(command, env=environment(), capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(result.stderr[-2000:], file=sys.stderr)
        return None
    return json.loads(lines[-1])


class Watch:
    """CPU seconds of a program with its children, of the whole machine, and the program's greatest resident set."""

    def __init__(self, process):
        self.process, self.peaks = process, {}

    def tree(self):
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    parents[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    pass
        found, grown = {self.process.pid}, True
        while grown:
            more = {child for child, parent in parents.items() if parent in found} - found
            found, grown = found | more, bool(more)
        return found

    def own_cpu(self):
        total = 0
        for pid in self.tree():
            try:
                fields = pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
                total += int(fields[11]) + int(fields[12])
                for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        self.peaks[pid] = 1024 * int(line.split()[1])
            except OSError:
                pass
        return total / TICKS

    @staticmethod
    def all_cpu():
        ticks = [int(t) for t in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def run_file(size, dtype, ranks, slices, steps):
    *sizes, seq_len, micro_batches = SIZES[size]
    text = FOLDER / "peers-text.txt"
    if not text.exists():
        text.write_text("".join(f"line {i}: {i * i}\n" for i in range(200_000)))
    return run_files.write(FOLDER / f"peers-{size}-{dtype}-{ranks}-{slices}.toml",
                           model=dict(zip(FIELDS, sizes)),
                           data={"text": str(text.resolve()), "seq_len": seq_len, "validation_fraction": 0},
                           parallel={"pp": ranks},
                           schedule={"name": "slimpipe", "slices": slices, "chunks": ranks, "vocabulary_parallel": ranks == 2},
                           memory={"policy": "none" if ranks == 2 else "balanced"},
                           train={"steps": steps, "batch": micro_batches, "warmup_steps": 0, "decay": "all", "lr_schedule": "constant",
                                  "loss_targets": "s-1", "clip": 0.0, "precision": dtype, "threads": 2 // ranks, "checkpoint_every": 0},
                           output={"dir": f"{FOLDER}/peers-run"})


def run_ours(program, size, dtype, ranks, slices, steps):
    """Steps after the first two, each with what other programs used of the machine meanwhile."""
    directory = FOLDER / "peers-run"
    shutil.rmtree(directory, ignore_errors=True)
    command = [program, "train", str(run_file(size, dtype, ranks, slices, steps + 2))]
    if ranks == 2:
        command = ["mpirun", "--oversubscribe", "-np", "2", *command]
    print("  " + " ".join(command), file=sys.stderr)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    watch, marks, metrics = Watch(process), [], directory / "metrics.jsonl"
    while process.poll() is None:
        lines = metrics.read_text().count("\n") if metrics.exists() else 0
        if lines > len(marks):
            marks += [(watch.all_cpu(), watch.own_cpu())] * (lines - len(marks))
        elif len(marks) < 2:
            watch.own_cpu()
        time.sleep(0.02)
    if process.returncode != 0:
        print(process.stderr.read()[-2000:], file=sys.stderr)
        return None
    seconds = [json.loads(line)["step_s"] for line in metrics.read_text().splitlines()]
    others = [max(0.0, (b[0] - a[0]) - (b[1] - a[1])) / s for a, b, s in zip(marks, marks[1:], seconds[1:])]
    counted = list(zip(seconds[2:], others[1:]))
    quiet = [s for s, other in counted if other <= QUIET] or [s for s, _ in counted]
    summary = json.loads((directory / "summary.json").read_text())
    tokens = SIZES[size][6] * SIZES[size][7]
    simulated = json.loads(subprocess.run([program, "simulate", str(directory), "--json"], check=True, capture_output=True).stdout)
    return {"peer": "penstock", "size": size, "dtype": dtype, "ranks": ranks, "slices": slices,
            "simulated_seconds": simulated["makespan_s"], "measured_seconds": simulated["measured"]["makespan_s"], "tokens_per_second": tokens / statistics.median(quiet),
            "seconds_per_step": seconds, "other_busy_cores": [round(o, 2) for o in others],
            "quiet_steps": sum(other <= QUIET for _, other in counted), "peak_rss_bytes": sum(sorted(watch.peaks.values())[-ranks:]),
            "accounted_bytes": sum(device["measured_bytes"]["total"] for device in summary["devices"])}


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    peer_type = {"f32": "f32", "bf16": "bf16-autocast"}[dtype]
    at = ["--size", size, "--threads"]
    yield "kernels alone", lambda: run_peer([python, PEERS / "kernels.py", *at, "2", "--dtype", dtype, "--repeats", "3"])
    yield ONE, lambda: run_ours(program, size, dtype, 1, 1, steps)
    if size == "L":
        yield SLICED, lambda: run_ours(program, size, dtype, 1, SLICES[size], steps)
    yield TRANSFORMERS, lambda: run_peer([python, PEERS / "hf_train.py", *at, "2", "--dtype", peer_type, "--steps", str(steps)])
    yield TWO, lambda: run_ours(program, size, dtype, 2, SLICES[size], steps)
    for schedule, stages in PIPELINES.items():
        yield f"pipelining {schedule}, 2 ranks", lambda: run_peer(
            [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PEERS / "torch_pipeline.py", *at, "1",
             "--dtype", peer_type, "--steps", str(steps), "--schedule", schedule, "--layers-per-stage", stages[size]])


def measure(program, arguments, log, known):
    python = peers_python()
    for size in arguments.sizes:
        for dtype in arguments.types:
            for name, carry_out in measurements(program, python, size, dtype, arguments.steps):
                wanted = (size, dtype, name) not in known and any(re.search(pattern, name) for pattern in arguments.runs)
                run = carry_out() if wanted else None
                if run:
                    log.write(json.dumps(dict(run, type=dtype, name=name, commit=commit())) + "\n")
                    log.flush()


def speed(run):
    if "kernel_tokens_per_second" in run:
        return run["kernel_tokens_per_second"]
    return run["tokens_per_second"] if run["peer"] == "penstock" else run["tokens_per_second"]["median"]


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


def tables(runs):
    commits = sorted({run["commit"] for run in runs if "commit" in run})
    if len(commits) > 1:
        print(f"Runs of several commits, by --continue: {', '.join(commits)}\n")
    print("| size | type | what | tokens/s | of kernels | peak resident MiB | accounted MiB | quiet steps |\n|---|---|---|---|---|---|---|---|")
    cases = {}
    for run in runs:
        cases.setdefault((run["size"], run["type"]), {})[run["name"]] = run
    for (size, dtype), case in cases.items():
        limit = speed(case["kernels alone"]) if "kernels alone" in case else float("nan")
        for label, run in case.items():
            resident = f"{run['peak_rss_bytes'] / 2**20:,.0f}" if "peak_rss_bytes" in run else ""
            accounted = f"{run['accounted_bytes'] / 2**20:,.0f}" if "accounted_bytes" in run else ""
            print(f"| {size} | {dtype} | {label} | {speed(run):,.0f} | {speed(run) / limit:.2f} | {resident} | {accounted} | {run.get('quiet_steps', '')} |")
    side_by_side(cases)
    print(f"\n| size | type | {' | '.join(RATIOS)} |\n|---|---" + "|---" * len(RATIOS) + "|")
    found = {key: ratios(case) for key, case in cases.items()}
    for (size, dtype), cells in found.items():
        print(f"| {size} | {dtype} | " + " | ".join(shown(cell) for cell in cells) + " |")
    print_aims(found)


def ratios(case):
    """The columns of RATIOS, None where a run is missing."""
    best, resident = best_pipelining(case)[1], lambda run: run["peak_rss_bytes"]
    return [ratio(case, ONE, case.get("kernels alone"), speed), ratio(case, ONE, case.get(TRANSFORMERS), speed),
            ratio(case, ONE, case.get(TRANSFORMERS), resident), ratio(case, TWO, best, speed), ratio(case, TWO, best, resident),
            simulated(case.get(TWO)), ratio(case, ONE, case.get(SLICED), speed)]


def print_aims(found):
    """How many aims are met, and those that are not."""
    missed, count = [], 0
    for (size, dtype), cells in found.items():
        for name, value, (at_least, aim) in zip(RATIOS, cells, aims(size, dtype)):
            if value is None or aim is None:
                continue
            count += 1
            if value < aim if at_least else value > aim:
                missed.append(f"| {size} | {dtype} | {name} | {shown(value)} | {'≥' if at_least else '≤'} {aim} |")
    print(f"\n{count - len(missed)} of {count} aims are met.")
    print("\n| size | type | missed | reached | aim |\n|---|---|---|---|---|\n" + "\n".join(missed or ["| - | - | none | - | - |"]))


def aims(size, dtype):
    """(whether more is better, the bound) of each of RATIOS."""
    f32 = dtype == "f32"
    return [(True, 0.94 if f32 else 0.92 if size == "L" else 0.85), (True, None),
            (False, {"S": 0.6 if f32 else 0.55, "M": 0.65, "L": 0.4 if f32 else 0.35}[size]),
            (True, 1.4 if size == "L" else 1.1 if f32 else 1.25), (False, {"S": 0.55, "M": 0.6, "L": 0.4}[size]),
            (True, 0.95), (False, 1.05)]


def ratio(case, ours, other, value):
    return value(case[ours]) / value(other) if ours in case and other else None


def simulated(run):
    return run["simulated_seconds"] / run["measured_seconds"] if run else None


def shown(value):
    return "" if value is None else f"{value:.2f}"


def commit():
    return subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--types", nargs="+", choices=("f32", "bf16"), default=["f32", "bf16"])
    parser.add_argument("--steps", type=int, default=3, help="counted steps of each run")
    parser.add_argument("--runs", nargs="+", default=[""], help="only those in whose names one of these patterns is found")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="measure only what peers.jsonl lacks")
    arguments = parser.parse_args()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "peers.jsonl"
    known = lines_of(path) if arguments.go_on and path.exists() else []
    with open(path, "a" if known else "w") as log:
        measure(arguments.program, arguments, log, {(run["size"], run["type"], run["name"]) for run in known})
    tables(lines_of(path))


if __name__ == "__main__":
    main()
