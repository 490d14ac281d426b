# SPDX-License-Identifier: Apache-2.0
"""SlimPipe's numbers against its theory, measured on the real trainer (ranks are threads), as Markdown tables.

Usage: bench/slimpipe.py PATH/TO/penstock [PART...]   (from the root of the repository)
Parts: schedules, slicing, vocabulary; all when none is named. PENSTOCK_BENCH_QUICK=1 takes smaller sizes, to see that
everything runs.
"""
import json
import os
import pathlib
import shutil
import statistics

import programs

FOLDER = pathlib.Path("build/bench")
QUICK = os.environ.get("PENSTOCK_BENCH_QUICK") == "1"

# name, slices, chunks
SCHEDULES = [("1f1b", 1, 1), ("interleaved", 1, 2), ("seq1f1b", 8, 1), ("slimpipe", 8, 1), ("slimpipe", 8, 2)]
MICRO_BATCHES = 8


def write_text():
    path = FOLDER / "text.txt"
    if not path.exists():
        path.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))


def train(program, name, ranks, *settings):
    run = FOLDER / f"slimpipe-{name}"
    shutil.rmtree(run, ignore_errors=True)
    programs.output(program, "train", "bench/slimpipe.toml", "--ranks", ranks, "--parallel.pp", ranks, "--output.dir", run, *settings)
    return run


def simulate(program, run, *flags):
    return json.loads(programs.output(program, "simulate", run, "--json", *flags))


def devices(run):
    return json.loads((run / "summary.json").read_text())["devices"]


def steps(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]  # the first warms up


def mega(count):
    return f"{count / 1e6:.2f}"


# --- peaks of saved activations, bubbles, predictions ------------------------------------------------------------------

def record_bytes(tokens):
    """Saved by all eight layers for so many tokens: (6h + 2ρh + 3f) numbers a token and layer, and f32 statistics."""
    h, f, heads, kv_heads = 256, 688, 4, 2
    numbers = 6 * h + 2 * h * kv_heads // heads + 3 * f
    return tokens * 8 * (4 * numbers + 4 * (heads + 2))


def in_flight(name, p, r, n, v):
    """Slice-chunks in flight on device r by the schedule's formula."""
    m = MICRO_BATCHES
    target = {"1f1b": p - r, "interleaved": (v - 1) * p + 2 * (p - r - 1) + 1, "seq1f1b": n + p - r - 1,
              "slimpipe": n * v + 2 * (p - r - 1)}[name]
    return min(m * n * v, target)


def saved(bytes_of):
    return sum(bytes_of[category] for category in ("activations", "weight_records", "kv_gradients", "logits"))


def off(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.1f} %"


def span(values):
    return f"{min(values):+.1f} to {max(values):+.1f} %"


def time_columns(p):
    """What times() gives, and a sentence about it."""
    cores = len(os.sched_getaffinity(0))
    if p <= cores:
        return ("By the clock on the wall. Simulated: from the run's own action times.",
                ["tokens/s", "bubble measured", "simulated", "step ms", "simulated", "difference"])
    return (f"{p} ranks share {cores} cores. Simulated: from the processor seconds of the run's actions, as if each rank had a core; on the "
            f"{cores} cores here a step takes at least all devices' work divided by {cores}.",
            ["bubble simulated", "step ms simulated", "step ms here", "work ms / cores", "difference"])


def times(program, run, p):
    """Step and bubble, measured beside simulated. With more ranks than cores the cores are shared: simulated from processor
    seconds is what a core for each rank would take, and the step here takes at least the devices' work divided by the cores."""
    cores = len(os.sched_getaffinity(0))
    measured = statistics.median(step["step_s"] for step in steps(run))
    if p <= cores:
        own = simulate(program, run)
        rate = statistics.median(step["tokens_per_second"] for step in steps(run))
        wall = own["measured"]["makespan_s"]
        return [f"{rate:.0f}", f"{100 * own['measured']['bubble_fraction']:.1f} %", f"{100 * own['bubble_fraction']:.1f} %",
                f"{wall * 1e3:.0f}", f"{own['makespan_s'] * 1e3:.0f}", off(own["makespan_s"], wall)]
    own = simulate(program, run, "--processor-time")
    shared = max(own["makespan_s"], sum(device["busy_s"] for device in own["devices"]) / cores)
    return [f"{100 * own['bubble_fraction']:.1f} %", f"{own['makespan_s'] * 1e3:.0f}", f"{measured * 1e3:.0f}", f"{shared * 1e3:.0f}",
            off(shared, measured)]


def schedule_rows(program, p):
    peaks = {}
    for name, n, v in SCHEDULES:
        run = train(program, f"{name}-{n}-{v}-p{p}", p, "--schedule.name", name, "--schedule.slices", n, "--schedule.chunks", v)
        unit = record_bytes(1024) / (p * n * v)
        measured = [device["measured_bytes"]["activations"] for device in devices(run)]
        formula = [in_flight(name, p, r, n, v) * unit for r in range(p)]
        peaks[name, v] = measured[0]
        predicted = [100 * (saved(d["predicted_bytes"]) / saved(d["measured_bytes"]) - 1) for d in devices(run)]
        cells = [name, n, v, " ".join(mega(b) for b in measured), " ".join(mega(b) for b in formula),
                 span([100 * (a / b - 1) for a, b in zip(measured, formula)]), span(predicted), *times(program, run, p)]
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
    print(f"\nslimpipe's peak on device 0 as part of 1f1b's: {peaks['slimpipe', 1] / peaks['1f1b', 1]:.4f} (n = 8)\n")


def schedules(program):
    for p in (2, 4):
        print(f"\n## p = {p}, m = {MICRO_BATCHES}, sequences of 1024 tokens, 8 layers, hidden 256, f32\n")
        sentence, columns = time_columns(p)
        head = ["schedule", "n", "v", "peak saved MB on devices 0, 1, ..", "formula", "difference", "all saved bytes, predicted against measured",
                *columns]
        print(sentence + "\n")
        print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
        schedule_rows(program, p)


# --- what slicing costs -------------------------------------------------------------------------------------------------

def slicing(program):
    """The long-context size of bench/peers.py with one sequence a step; the median of three runs' steps, n in turn."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    precision = "bf16" if "avx512_bf16" in flags or "amx_bf16" in flags else "f32"
    seq_len = 2048 if QUICK else 16384
    size = ["--model.layers", 4, "--model.hidden", 512, "--model.ffn", 1376, "--model.heads", 8, "--model.kv_heads", 8,
            "--model.vocab", 8192, "--data.seq_len", seq_len, "--train.batch", 1, "--train.steps", 2, "--train.threads", 0,
            "--train.precision", precision]
    runs = {1: [], 8: []}
    for _ in range(3):
        for n, found in runs.items():
            run = train(program, f"slicing-{n}", 1, "--schedule.name", "slimpipe", "--schedule.slices", n, *size)
            seconds = statistics.median(step["step_s"] for step in steps(run))
            found.append((seconds, devices(run)[0], simulate(program, run)["makespan_s"]))
    median = {n: sorted(found, key=lambda entry: entry[0])[1] for n, found in runs.items()}
    print(f"\n## What slicing costs: one rank, all cores, {seq_len} tokens, 4 layers, hidden 512, {precision}\n")
    print("| n | step s | simulated from its action times | difference | of n = 1 | peak MiB | predicted | difference |\n|---|---|---|---|---|---|---|---|")
    for n, (seconds, device, simulated) in median.items():
        measured, predicted = device["measured_bytes"]["total"] / 2**20, device["predicted_bytes"]["total"] / 2**20
        print(f"| {n} | {seconds:.2f} | {simulated:.2f} | {off(simulated, seconds)} | {off(seconds, median[1][0])} | {measured:.0f} | {predicted:.0f} "
              f"| {off(predicted, measured)} |", flush=True)


# --- vocabulary parallelism ---------------------------------------------------------------------------------------------

def compute_seconds(program, run):
    """Processor seconds of each device's compute, of the step with the median in total."""
    document = json.loads((run / "timeline.json").read_text())
    totals = [[sum(entry[2] for entry in ops if len(entry) > 2) for ops in step["devices"]] for step in document["steps"]]
    return sorted(totals, key=sum)[len(totals) // 2]


def vocabulary(program):
    vocab, seq_len, batch = (4000, 256, 4) if QUICK else (32000, 1024, 4)
    size = ["--model.hidden", 512, "--model.ffn", 1376, "--model.heads", 8, "--model.kv_heads", 8, "--model.vocab", vocab,
            "--data.seq_len", seq_len, "--train.batch", batch, "--train.steps", 4, "--schedule.name", "slimpipe", "--schedule.slices", 8]
    print(f"\n## Vocabulary parallelism: p = 4, V = {vocab}, hidden 512, 8 layers, {batch} sequences of {seq_len} tokens, n = 8\n")
    sentence, columns = time_columns(4)
    head = ["vocabulary", "compute ms of devices 0, 1, .. (processor time)", "max/mean", *columns, "peak MiB of devices", "predicted MiB",
            "difference", "logits MiB at their peak"]
    print(sentence + "\n\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for sharded in ("false", "true"):
        run = train(program, f"vocabulary-{sharded}", 4, *size, "--schedule.vocabulary_parallel", sharded)
        seconds = compute_seconds(program, run)
        peaks = [d["measured_bytes"]["total"] / 2**20 for d in devices(run)]
        logits = [d["measured_bytes"]["logits"] / 2**20 for d in devices(run)]
        predicted = [d["predicted_bytes"]["total"] / 2**20 for d in devices(run)]
        errors = [100 * (a / b - 1) for a, b in zip(predicted, peaks)]
        cells = ["sharded" if sharded == "true" else "on the first and last device", " ".join(f"{s * 1e3:.0f}" for s in seconds),
                 f"{max(seconds) / statistics.mean(seconds):.3f}", *times(program, run, 4), " ".join(f"{b:.0f}" for b in peaks),
                 " ".join(f"{b:.0f}" for b in predicted), span(errors), " ".join(f"{b:.1f}" for b in logits)]
        print("| " + " | ".join(cells) + " |", flush=True)


PARTS = {"schedules": schedules, "slicing": slicing, "vocabulary": vocabulary}


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", type=programs.one_of(PARTS), help="all unless named")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_text()
    for part in asked.parts or PARTS:
        PARTS[part](asked.program)


if __name__ == "__main__":
    main()
