# SPDX-License-Identifier: Apache-2.0
"""The planner's errors on the tables of bench/reference, each beside its aim, as a Markdown table.

Usage: bench/accuracy.py PATH/TO/penstock   (from the root of the repository)
"""
import re

import programs
from programs import output

# table: its aim, and whether constants are fitted to its rows
AIMS = {"atc24_memory": "mean ≤ 0.5 %, greatest ≤ 1.5 %, runs out of memory do not fit", "slimpipe_planner": "greatest ≤ 0.05 GiB, or points of the bubble",
        "atc24_throughput": "mean ≤ 1.5 %, greatest ≤ 4 %, unseen ≤ 3 %, rank ≥ 0.97", "calculon_cases": "mean ≤ 2.5 %, greatest ≤ 5 %",
        "vtrain_multi_node": "median ≤ 3.5 %, p90 ≤ 12 %, mean ≤ 6 %"}


def reached(score):
    """The errors, the least rank correlation, and what became of runs that had no room."""
    errors = re.search(r"error: (mean .*)", score)[1]
    cells = [errors, f"{min(float(rank) for rank in re.findall(r'rank correlation .*: ([-0-9.]+)', score)):.2f}"]
    refused = re.findall(r"predicted .* published: out of memory", score)
    if refused:
        cells[0] += f"; {sum('does not fit' in line for line in refused)} of {len(refused)} do not fit"
    return cells


def unseen(fit, table):
    """Mean errors with the row, and with the rows of its configuration, left out of the fit."""
    row = re.search(rf"^{table} +\d+ +\S+ % +\S+ % +(\S+ %) +(\S+ %)", fit, re.MULTILINE)
    return list(row.groups()) if row else ["no constants", "no constants"]


def main():
    program = programs.asked(__doc__)
    fit = output(program, "plan", "--fit", "bench/reference")
    print("| table | aim | error | least rank correlation | mean, row unseen | mean, configuration unseen |\n|---|---|---|---|---|---|")
    for table, aim in AIMS.items():
        cells = [table, aim, *reached(output(program, "plan", "--score", f"bench/reference/{table}.csv")), *unseen(fit, table)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
