# SPDX-License-Identifier: Apache-2.0
"""What policies and offloading save and cost: trains at long context over two MPI ranks of one thread, and prints a
Markdown table per size: peak bytes predicted beside measured, saved bytes beside those of `none`, tokens a second.

Usage: bench/memory.py PATH/TO/penstock [--small | --size L|larger] [--offload 0,0.5,1] [--rounds 1]   (from the root of the repository)

--small runs the same table at a size of seconds, to see that it works. A figure of time is the median of three steps (the
first of a run is not counted) and of all rounds; rounds go over all settings in turn, so that a busy minute does not fall on
one setting.
"""
import json
import os
import pathlib
import shutil
import statistics

import programs
from reality import FOLDER, write_text

POLICIES = ["none", "balanced", "balanced+fc1", "full"]
SIZES = {
    "L: 4 layers, hidden 512, 2 sequences of 16,384 tokens in 8 slices": [],
    "larger: the same, 1 sequence of 24,576 tokens in 12 slices": ["--data.seq_len", "24576", "--train.batch", "1",
                                                                   "--schedule.slices", "12"],
}
SMALL = {"small: 4 layers, hidden 128, 1,024 tokens": ["--model.hidden", "128", "--model.ffn", "352", "--model.vocab", "259",
                                                       "--data.seq_len", "1024"]}


def settings_of(size, policy, offload):
    alpha = ["--memory.offload", str(offload)] if offload > 0 else []
    return ["bench/memory.toml", *size, "--memory.policy", policy, *alpha]


def simulate(program, size, policy, offload):
    """Seconds of a step by the measured speeds of this machine."""
    command = [program, "simulate", *settings_of(size, policy, offload), "--json"]
    return json.loads(programs.output(*command))["makespan_s"]


def train(program, size, policy, offload):
    run = FOLDER / "memory"
    shutil.rmtree(run, ignore_errors=True)
    programs.output("mpirun", "--oversubscribe", "-np", "2", program, "train", *settings_of(size, policy, offload), "--output.dir", run)
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    summary = json.loads((run / "summary.json").read_text())
    return [step["step_s"] for step in steps[1:]], steps[0]["tokens"], summary


def mib(count):
    return f"{count / 2**20:.1f}"


def off(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.1f} %"


def row(policy, offload, simulated, measured, none):
    seconds, tokens, summary = measured
    device = summary["devices"][0]
    predicted, measured = device["predicted_bytes"], device["measured_bytes"]
    longer = 100 * (simulated - 1)
    process = summary["processes"][0]
    hidden = "-" if summary.get("copy_hidden") is None else f"{100 * summary['copy_hidden']:.1f} %"
    saved, all_saved = measured["activations"], none[2]["devices"][0]["measured_bytes"]["activations"]
    expected = predicted["activations"] / none[2]["devices"][0]["predicted_bytes"]["activations"]
    return (f"| {policy} | {offload} | {mib(saved)} | {saved / all_saved:.3f} | {expected:.3f} | {mib(measured['total'])} "
            f"| {off(predicted['total'], measured['total'])} "
            f"| {off(process['predicted_resident_bytes'], process['measured_resident_bytes'])} "
            f"| {tokens / seconds:.0f} | {100 * (seconds / none[0] - 1):+.1f} % | {longer:+.1f} % | {hidden} |")


def table(program, name, size, offloads, rounds):
    settings = [(policy, offload) for policy in POLICIES for offload in offloads]
    counted, last = {setting: [] for setting in settings}, {}
    for _ in range(rounds):
        for setting in settings:
            seconds, *last[setting] = train(program, size, *setting)
            counted[setting] += seconds
    measured = {setting: (statistics.median(counted[setting]), *last[setting]) for setting in settings}
    print(f"{name}; 2 ranks of one thread, slimpipe, bf16; device 0\n")
    print("| policy | α | saved MiB | of none | predicted | peak MiB | prediction off | resident off | tokens/s | time over none "
          "| simulated | copies hidden |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for setting in settings:
        simulated = simulate(program, size, *setting) / simulate(program, size, "none", offloads[0])
        print(row(*setting, simulated, measured[setting], measured["none", offloads[0]]), flush=True)
    print_costs({setting: figures[0] for setting, figures in measured.items()}, offloads)


def print_costs(seconds, offloads):
    """Full recomputation and the dearest offloading, each beside its aim."""
    longer = {setting: 100 * (seconds[setting] / seconds[setting[0], offloads[0]] - 1) for setting in seconds if setting[1] != offloads[0]}
    dearest = max(longer, key=longer.get, default=None)
    print(f"\nfull takes {100 * (seconds['full', offloads[0]] / seconds['none', offloads[0]] - 1):+.1f} % over none (aim: at most +30 %)")
    if dearest:
        print(f"offloading takes at most {longer[dearest]:+.1f} % over the same policy without ({dearest[0]}, α = {dearest[1]}; aim: at most +8 %)")
    print()


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--size", choices=[name.split(":")[0] for name in SIZES], help="only this one")
    parser.add_argument("--offload", default="0,0.5,1")
    parser.add_argument("--rounds", type=programs.count, default=1)
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_text()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    offloads = [float(part) for part in arguments.offload.split(",")]
    for name, size in (SMALL if arguments.small else SIZES).items():
        if arguments.size in (None, name.split(":")[0]):
            table(arguments.program, name, size, offloads, arguments.rounds)


if __name__ == "__main__":
    main()
