# SPDX-License-Identifier: Apache-2.0
"""Carries out a Google Benchmark program in three rounds and prints the medians as Markdown tables, one for each set of counters.

Usage: bench/google.py PROGRAM [SECONDS]   (each round of a benchmark takes at least so long; 0.2 unless told otherwise)
"""
import itertools
import json
import statistics

import programs

ROUNDS = 3
UNITS = {"us": "µs"}
# A benchmark that counts this is held against the limit: a share of the rate of a copy of as many bytes.
LIMITED, LIMIT = "of_copy", 0.6
# counter: its head in the table, what it is divided by, decimals
COUNTERS = {"flops_per_second": ("GFLOP/s", 1e9, 1), "bytes_per_second": ("GB/s", 1e9, 2), "actions_per_second": ("million actions/s", 1e6, 2),
            "copy_bytes_per_second": ("copy's GB/s", 1e9, 2), "of_copy": ("of the copy's rate", 1, 2),
            "actions": ("million actions", 1e6, 3), "bytes_per_action": ("bytes an action", 1, 1)}


def rounds_of(program, seconds):
    """name -> its rounds, in the order of the program."""
    command = [program, f"--benchmark_repetitions={ROUNDS}", f"--benchmark_min_time={seconds}", "--benchmark_format=json",
               "--benchmark_enable_random_interleaving=false"]
    found = {}
    for entry in json.loads(programs.output(*command))["benchmarks"]:
        if entry["run_type"] == "iteration" and not entry.get("error_occurred"):  # a processor may lack what one needs
            found.setdefault(entry["run_name"].split("/iterations")[0].removesuffix("/process_time").removesuffix("/manual_time"), []).append(entry)
    return found


def shape(entries):
    """What has one table: the unit of time and the counters."""
    return entries[0]["time_unit"], tuple(counter for counter in COUNTERS if counter in entries[0])


def row(name, entries):
    # "real_time" of a benchmark that measures itself is what it measured, processor time too.
    times = sorted(entry["real_time" if LIMITED in entry else "cpu_time"] for entry in entries)
    median = statistics.median(times)
    cells = [name, f"{median:.4g}" if median < 1000 else f"{median:,.0f}", f"{100 * (times[-1] / times[0] - 1):.1f} %"]
    for counter in shape(entries)[1]:
        _, divisor, decimals = COUNTERS[counter]
        cells.append(f"{statistics.median(entry[counter] for entry in entries) / divisor:,.{decimals}f}")
    if LIMITED in entries[0]:
        share = statistics.median(entry[LIMITED] for entry in entries)
        cells.append(f"≥ {LIMIT}, {'met' if round(share, 2) >= LIMIT else 'missed'}")
    return f"| {' | '.join(cells)} |"


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("seconds", nargs="?", default="")
    asked = parser.parse_args()
    print(f"Processor time, medians of {ROUNDS} rounds; spread: the slowest over the quickest.")
    for (unit, counters), group in itertools.groupby(rounds_of(asked.program, asked.seconds or "0.2").items(), lambda item: shape(item[1])):
        head = ["benchmark", UNITS.get(unit, unit), "spread", *(COUNTERS[counter][0] for counter in counters)]
        head += ["limit"] * (LIMITED in counters)
        print(f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
        print("\n".join(row(name, entries) for name, entries in group))


if __name__ == "__main__":
    main()
