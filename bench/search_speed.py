# SPDX-License-Identifier: Apache-2.0
"""How long the planner searches on clusters of three sizes, and the whole command with the simulation of the best, as a Markdown
table; medians of three searches.

Usage: bench/search_speed.py PATH/TO/penstock   (from the root of the repository)
"""
import re
import statistics
import time

import programs

CLUSTERS = ((128, 32), (1024, 256), (16384, 4096))  # GPUs, sequences a step
LINE = re.compile(r"(\d+) candidates, (\d+) judged by memory, (\d+) fit and are timed; ([0-9.]+) s")


def search(program, gpus, batch):
    """Counts and seconds of the search as printed, and the seconds of the command."""
    command = [program, "plan", "plans/llama-70b-128k.toml", "--cluster.gpus", str(gpus), "--workload.global_batch", str(batch)]
    began = time.monotonic()
    printed = programs.output(*command)
    return [*map(float, LINE.search(printed).groups()), time.monotonic() - began]


def main():
    program = programs.asked(__doc__)
    print("| GPUs | candidates | judged by memory | fit, and are timed | search s | whole command s |\n|---|---|---|---|---|---|")
    for gpus, batch in CLUSTERS:
        found = [search(program, gpus, batch) for _ in range(3)]
        counts = " | ".join(f"{count:,.0f}" for count in found[0][:3])
        searched, whole = (statistics.median(one[i] for one in found) for i in (3, 4))
        print(f"| {gpus:,} | {counts} | {searched:.2f} | {whole:.1f} |", flush=True)


if __name__ == "__main__":
    main()
