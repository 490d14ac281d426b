# SPDX-License-Identifier: Apache-2.0
"""What bench/peers.py, bench/replicas.py and bench/mesh.py share: runs of ours and of peers (bench/peers/), watched, and their log.

Every line that a run prints goes to a file in build/bench; the tables are made of it, and --continue leaves out what it has
already. A step counts when other programs used at most 0.05 of a core meanwhile, as long as there are such steps; speeds are
those of the median step that counts. The peers need PyPI's torch and transformers in $PENSTOCK_PEERS_PYTHON (default: a
virtual environment that is made in the cache folder, 3 GB).
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import programs
import run_files


# layers, hidden, ffn, heads, kv_heads, vocab, seq_len, micro-batches; as bench/peers/common.py has them
SIZES = {"S": (8, 512, 1376, 8, 8, 8192, 2048, 4), "M": (12, 768, 2048, 12, 12, 32000, 2048, 4), "L": (4, 512, 1376, 8, 8, 8192, 16384, 2),
         "XS": (2, 64, 128, 2, 2, 512, 128, 4)}
FIELDS = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
PEER_TYPES = {"f32": "f32", "bf16": "bf16-autocast"}
QUIET = 0.05  # of a core
NOT_COUNTED = 2  # first steps
FOLDER = pathlib.Path("build/bench")
PEERS = pathlib.Path("bench/peers")
MPIRUN = ["mpirun", "--oversubscribe", "-np", "2"]
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


def announce(commands):
    for command in commands:
        print("  " + " ".join(str(word) for word in command), file=sys.stderr)


def run_peers(commands):
    """What they print as JSON; all at the same time."""
    announce(commands)
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    surroundings = environment()
    processes = [subprocess.Popen(command, env=surroundings, **pipes) for command in commands]
    results = []
    for out, err in [process.communicate() for process in processes]:
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if not lines:
            raise Failed(why(err))
        results.append(json.loads(lines[-1]))
        if "refused" in results[-1]:
            raise Failed(results[-1]["refused"])
    return results


def run_peer(command):
    return run_peers([command])[0]


def torchrun(python, script):
    """The beginning of a command of two ranks."""
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PEERS / script]


class Failed(Exception):
    """A run that gave no result; the text is what its program said."""


class OursFailed(Failed):
    """A run of Penstock, which should not have failed. Peers refuse some cases, which is a result too."""


def why(stderr):
    """The line that says it: of our program, of mpirun, or the last of a Python traceback."""
    print(stderr[-2000:], file=sys.stderr)
    said = re.search(r"^penstock: (.+)$", stderr, re.MULTILINE) or re.search(r"^mpirun noticed that (.+)$", stderr, re.MULTILINE) or \
        re.search(r"^(?:\[rank\d+\]: )?(\w+(?:Error|Exception): .+)$", stderr, re.MULTILINE)
    return said[1] if said else (stderr.split("\n")[0] or "it ended without a word")


class Watch:
    """CPU seconds of programs with their children, of the whole machine, and the greatest resident set of each process."""

    def __init__(self, processes):
        self.processes, self.cpu, self.peaks = processes, {}, {}

    def tree(self):
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    parents[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    pass
        found, grown = {process.pid for process in self.processes}, True
        while grown:
            more = {child for child, parent in parents.items() if parent in found} - found
            found, grown = found | more, bool(more)
        return found

    def own_cpu(self):
        for pid in self.tree():
            try:
                fields = pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
                self.cpu[pid] = (int(fields[11]) + int(fields[12])) / TICKS
                for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        self.peaks[pid] = 1024 * int(line.split()[1])
            except OSError:
                pass
        return sum(self.cpu.values())

    def resident(self, ranks):
        """Those of the processes that compute, together."""
        return sum(sorted(self.peaks.values())[-ranks:])

    @staticmethod
    def all_cpu():
        ticks = [int(t) for t in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def run_file(path, size, dtype, threads, steps, directory, micro_batches=None, model=(), **sections):
    """Writes the run file of a size; `model` has further keys of the model, `micro_batches` limits the batch."""
    *sizes, seq_len, batch = SIZES[size]
    text = FOLDER / "peers-text.txt"
    if not text.exists():
        text.write_text("".join(f"line {i}: {i * i}\n" for i in range(200_000)))
    return run_files.write(path, model=dict(zip(FIELDS, sizes)) | dict(model), data={"text": str(text.resolve()), "seq_len": seq_len, "validation_fraction": 0},
                           train={"steps": NOT_COUNTED + steps, "batch": micro_batches or batch, "warmup_steps": 0, "decay": "all",
                                  "lr_schedule": "constant", "loss_targets": "s-1", "clip": 0.0, "precision": dtype, "threads": threads,
                                  "checkpoint_every": 0},
                           output={"dir": str(directory)}, **sections)


def train(commands, directories, tokens, ranks, uncounted_end=0):
    """Carries out the commands at the same time, of `tokens` a step each and `ranks` together; of each the steps that count, with
    what other programs used of the machine meanwhile."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    announce(commands)
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for command in commands]
    watch, marks, running = Watch(processes), [[] for _ in directories], True
    while running:
        running = any(process.poll() is None for process in processes)
        for directory, seen in zip(directories, marks):
            metrics = directory / "metrics.jsonl"
            lines = metrics.read_text().count("\n") if metrics.exists() else 0
            if lines > len(seen):
                seen += [(watch.all_cpu(), watch.own_cpu())] * (lines - len(seen))
        if min(len(seen) for seen in marks) < NOT_COUNTED:
            watch.own_cpu()
        time.sleep(0.02)
    failed = [process for process in processes if process.returncode != 0]
    if failed:
        raise OursFailed(why(failed[0].stderr.read()))
    return [dict(steps_of(directory, seen, tokens, uncounted_end), ranks=ranks, peak_rss_bytes=watch.resident(ranks))
            for directory, seen in zip(directories, marks)]


def steps_of(directory, marks, tokens, uncounted_end):
    metrics = lines_of(directory / "metrics.jsonl")
    seconds = [line["step_s"] for line in metrics]
    others = [max(0.0, (b[0] - a[0]) - (b[1] - a[1])) / s for a, b, s in zip(marks, marks[1:], seconds[1:])]
    own = [b[1] - a[1] for a, b in zip(marks, marks[1:])][NOT_COUNTED - 1:len(seconds) - 1 - uncounted_end]
    counted = list(zip(metrics, [None, *others]))[NOT_COUNTED:len(seconds) - uncounted_end]
    quiet = [line for line, other in counted if other <= QUIET] or [line for line, _ in counted]
    median = lambda key: statistics.median(line[key] for line in quiet) if all(key in line for line in quiet) else None
    summary = json.loads((directory / "summary.json").read_text())
    return {"peer": "penstock", "tokens_per_second": tokens / median("step_s"), "seconds_per_step": seconds,
            "cpu_seconds": statistics.median(own), "other_busy_cores": [round(o, 2) for o in others], "quiet_steps": sum(other <= QUIET for _, other in counted),
            "collective_hidden": summary.get("collective_hidden"), "median_seconds": median("step_s"),
            **{f"{axis}_{what}": median(f"{axis}_{key}") for axis in ("tensor", "context") for what, key in (("waited_seconds", "waited_s"), ("bytes", "bytes"))},
            "accounted_bytes": sum(device["measured_bytes"]["total"] for device in summary["devices"])}


def speed(run):
    """Tokens a second."""
    if "kernel_tokens_per_second" in run:
        return run["kernel_tokens_per_second"]
    return run["tokens_per_second"] if run["peer"] == "penstock" else run["tokens_per_second"]["median"]


def ratio(case, ours, other, value):
    return value(case[ours]) / value(other) if ours in case and other else None


def shown(value):
    return "" if value is None else f"{value:.2f}"


def mebibytes(count):
    return f"{count / 2**20:,.0f}" if count is not None else ""


def is_met(value, at_least, aim):
    return value >= aim if at_least else value <= aim


def bound(at_least, aim):
    return f"{'≥' if at_least else '≤'} {aim}"


def print_missed(judged):
    """How many aims are met, and those that are not. Of each its size, type, name, value, whether more is better, and the bound."""
    judged = [row for row in judged if row[3] is not None and row[5] is not None]
    missed = [f"| {size} | {dtype} | {name} | {shown(value)} | {bound(at_least, aim)} |"
              for size, dtype, name, value, at_least, aim in judged if not is_met(value, at_least, aim)]
    print(f"\n{len(judged) - len(missed)} of {len(judged)} aims are met.")
    print("\n| size | type | missed | reached | aim |\n|---|---|---|---|---|\n" + "\n".join(missed or ["| - | - | none | - | - |"]))


def print_aims(judged):
    """All of them, one a line; what print_missed takes."""
    print("\n| size | type | aim | bound | reached | |\n|---|---|---|---|---|---|")
    for size, dtype, name, value, at_least, aim in judged:
        if aim is not None:
            verdict = "not measured" if value is None else "met" if is_met(value, at_least, aim) else "missed"
            print(f"| {size} | {dtype} | {name} | {bound(at_least, aim)} | {shown(value)} | {verdict} |")


def cases_of(runs):
    """{(size, type): {name: run}}, in the order of SIZES; says so when the runs are of several commits."""
    commits = sorted({run["commit"] for run in runs if "commit" in run})
    if len(commits) > 1:
        print(f"Runs of several commits, by --continue: {', '.join(commits)}\n")
    cases = {}
    sizes = list(SIZES)
    place = lambda run: (sizes.index(run["size"]) if run["size"] in sizes else len(sizes), run["type"] == "bf16")
    for run in sorted(runs, key=place):
        case = cases.setdefault((run["size"], run["type"]), {})
        if "failed" not in run:
            case[run["name"]] = run
    return cases


def failed_runs(runs):
    """Of each that was tried and never gave a result the last try."""
    measured = {(run["size"], run["type"], run["name"]) for run in runs if "failed" not in run}
    failed = {(run["size"], run["type"], run["name"]): run for run in runs if "failed" in run}
    return [run for key, run in failed.items() if key not in measured]


def print_failed(runs):
    rows = [f"| {run['size']} | {run['type']} | {run['name']} | {run['failed']} |" for run in failed_runs(runs)]
    if rows:
        print("\n| size | type | did not run | because |\n|---|---|---|---|\n" + "\n".join(rows))


def commit():
    return subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def carry_out(description, name, sizes, measurements, tables, more_sizes=()):
    """Reads the command line, measures (by default, at `sizes`), prints tables(program, runs) of all runs and those that failed, and ends
    the benchmark: with 1 when one of Penstock failed. measurements(program, python, size, dtype, steps) yields the name of each run of a
    case and what carries it out; of one that fails, "failed" says why, and --continue tries it again."""
    parser = programs.parser(description)
    parser.add_argument("--sizes", nargs="+", choices=[*sizes, *more_sizes], default=sizes)
    parser.add_argument("--types", nargs="+", choices=PEER_TYPES, default=list(PEER_TYPES))
    parser.add_argument("--steps", type=programs.count, default=3, help="counted steps of each run")
    parser.add_argument("--runs", nargs="+", default=[""], help="only those in whose names one of these patterns is found")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="measure only what the log lacks")
    arguments = parser.parse_args()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.jsonl"
    known = lines_of(path) if arguments.go_on and path.exists() else []
    with open(path, "a" if known else "w") as log:
        measure(arguments, measurements, log, {(run["size"], run["type"], run["name"]) for run in known if "failed" not in run})
    runs = lines_of(path)
    tables(arguments.program, runs)
    print_failed(runs)
    sys.exit(any(run.get("peer") == "penstock" for run in failed_runs(runs)))


def measure(arguments, measurements, log, known):
    python = peers_python()
    for size in arguments.sizes:
        for dtype in arguments.types:
            for name, measured in measurements(arguments.program, python, size, dtype, arguments.steps):
                wanted = (size, dtype, name) not in known and any(re.search(pattern, name) for pattern in arguments.runs)
                if wanted:
                    log.write(json.dumps(dict(result_of(measured), size=size, type=dtype, name=name, commit=commit())) + "\n")
                    log.flush()


def result_of(measured):
    try:
        return measured()
    except OursFailed as failure:
        return {"failed": str(failure), "peer": "penstock"}
    except Failed as failure:
        return {"failed": str(failure)}
