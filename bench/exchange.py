# SPDX-License-Identifier: Apache-2.0
"""Context exchange on the real trainer (p = 2, ranks are threads), as a Markdown table: how unequal the devices' attention
is in a slot, measured, and what the exchange does to the speed, beside what penstock simulate makes of the run's own action
times. Medians of the last three steps.

Usage: bench/exchange.py PATH/TO/penstock   (from the root of the repository)
Attention of a slot is what its two actions' own kernels took, and what either device computed for the other's. Slots in
which not both run the same kind of work are left out. PENSTOCK_BENCH_QUICK=1 takes smaller sizes, to see that everything runs.
"""
import json
import os
import pathlib
import re
import shutil
import statistics

import programs

FOLDER = pathlib.Path("build/bench")
QUICK = os.environ.get("PENSTOCK_BENCH_QUICK") == "1"
EXCHANGES = ["off", "paired", "levelled"]


def train(program, exchange):
    run = FOLDER / f"exchange-{exchange}"
    shutil.rmtree(run, ignore_errors=True)
    command = [program, "train", "bench/exchange.toml", "--ranks", "2", "--profile", "--schedule.exchange", exchange,
               "--output.dir", str(run)]
    if QUICK:
        command += ["--data.seq_len", "1024", "--train.steps", "4"]
    programs.output(*command)
    return run


def compute_ops(program):
    """[device] -> [(number, token)] of F and B, and the exchanges: (owner's token, partner)."""
    devices, exchanges = [], []
    for line in program.splitlines():
        if line.startswith("device "):
            devices.append([])
        elif line.startswith("exchange "):
            words = line.split()
            exchanges.append({"of": words[1], "owner": int(words[3]), "partner": int(words[5])})
        elif devices and re.match(r"\d+ \d+[FB]\d", line):
            number, token = line.split()[:2]
            devices[-1].append((int(number), token))
    return devices, exchanges


def slots_of(devices):
    """Pairs of (token on device 0, token on device 1): its forward i is with the other's i - 1, backwards the reverse."""
    slots = []
    for kind, shift in (("F", 1), ("B", -1)):
        first, second = ([token for _, token in ops if kind in token] for ops in devices)
        slots += [(first[i], second[i - shift]) for i in range(len(first)) if 0 <= i - shift < len(second)]
    return slots


def attention_of(run, step):
    """A step's attention seconds by (token of the action it is for, device that computed), and the share of attention in
    all kernels' time."""
    timeline = json.loads((run / "timeline.json").read_text())["steps"][step]
    profile = json.loads((run / "profile.json").read_text())
    attends = {profile["kernels"].index(name) for name in ("attention", "attention backward", "merge")}
    devices, exchanges = compute_ops((run / "program.txt").read_text())
    seconds, attention, everything = {}, 0.0, 0.0
    for device, calls in enumerate(profile["steps"][step]["devices"]):
        spans = [(start, end, exchanges[number]["of"]) for number, start, end, waiting, _ in
                 timeline.get("exchange", [[], []])[device] if not waiting]
        spans += [(*timeline["devices"][device][number][:2], token) for number, token in devices[device]]
        for call in calls:
            kernel, _, start, end = call[:4]
            everything += end - start
            if kernel not in attends:
                continue
            attention += end - start
            # Exchange comes first: it lies inside the action that was interrupted.
            token = next(token for begin, until, token in spans if begin <= (start + end) / 2 <= until)
            seconds[token, device] = seconds.get((token, device), 0.0) + end - start
    return seconds, attention / everything


def imbalance(run):
    """The greatest attention time of a slot over the mean, and attention's share; medians of the steps with a timeline."""
    devices, _ = compute_ops((run / "program.txt").read_text())
    steps = len(json.loads((run / "timeline.json").read_text())["steps"])
    unequal, shares = [], []
    for step in range(steps):
        seconds, share = attention_of(run, step)
        loads = [[sum(seconds.get((token, device), 0.0) for token in slot) for device in (0, 1)] for slot in slots_of(devices)]
        unequal.append(statistics.mean(max(load) for load in loads) / statistics.mean(sum(load) / 2 for load in loads))
        shares.append(share)
    return statistics.median(unequal), statistics.median(shares)


def size_of(run):
    """A line that names the run's size, from its resolved run.toml."""
    section, values = "", {}
    for line in (run / "run.toml").read_text().splitlines():
        heading = re.fullmatch(r"\[(\w+)\]", line)
        setting = re.fullmatch(r"(\w+) = ([^#]*?)\s*(#.*)?", line)
        if heading:
            section = heading[1]
        elif setting:
            values[f"{section}.{setting[1]}"] = setting[2].strip('"')
    micro_batches = int(values["train.batch"]) // int(values["train.micro_batch"])
    return (f"p = {values['parallel.pp']}, m = {micro_batches}, n = {values['schedule.slices']}, v = {values['schedule.chunks']}, "
            f"sequences of {values['data.seq_len']} tokens, {values['model.layers']} layers, hidden {values['model.hidden']}, "
            f"{values['model.heads']} heads ({values['model.kv_heads']} for keys and values), {values['train.precision']}")


def simulated_step(program, run):
    """Seconds of the step with the median time: measured, and simulated from its own action times."""
    result = json.loads(programs.output(program, "simulate", run, "--json"))
    return result["measured"]["makespan_s"], result["makespan_s"]


def main():
    program = programs.asked(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = FOLDER / "text.txt"
    if not text.exists():
        text.write_text("".join(f"line {i}: {i * i}\n" for i in range(120_000)))
    head = ["exchange", "attention, greatest / mean of a slot", "tokens/s", "against off", "bubble", "step s", "simulated", "difference",
            "loss of the last step"]
    base = None
    for exchange in EXCHANGES:
        run = train(program, exchange)
        if base is None:
            print(f"{size_of(run)}\n\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]  # the first warms up
        speed = statistics.median(step["tokens_per_second"] for step in steps)
        base = base or speed
        unequal, share = imbalance(run)
        bubble = statistics.median(step["bubble_fraction"] for step in steps)
        measured, simulated = simulated_step(program, run)
        print(f"| {exchange} | {unequal:.3f} | {speed:,.0f} | {speed / base:.3f} | {bubble:.3f} | {measured:.2f} | {simulated:.2f} "
              f"| {100 * (simulated / measured - 1):+.1f} % | {steps[-1]['loss']:.6f} |", flush=True)
        if exchange == "off":
            below = f"\nAttention is {100 * share:.0f} % of the kernels' time without exchange."
    print(below)
    print_simulated(program)


def print_simulated(program):
    """More devices, where half of an action is attention, in unit times."""
    command = [program, "simulate", "--schedule", "slimpipe", "-p", "8", "-m", "4", "-n", "16", "--attention-share", "0.5", "--exchange"]
    print(f"\n`penstock {' '.join(command[1:])}`\n\n| simulated exchange | bubble |\n|---|---|")
    for exchange in EXCHANGES:
        bubble = json.loads(programs.output(*command, exchange, "--json"))["bubble_fraction"]
        print(f"| {exchange} | {100 * bubble:.1f} % |")


if __name__ == "__main__":
    main()
