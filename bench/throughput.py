# SPDX-License-Identifier: Apache-2.0
"""The cost model on the published runs of bench/reference/throughput, as Markdown tables: errors where rows, configurations and
sources are left out of the fit, ranking, memory, intervals.

Usage: bench/throughput.py PATH/TO/penstock   (from the root of the repository)
"""
import json
import re

import programs
from programs import output

TABLES = ("hopper", "a100")
AIMS = {"configuration unseen": (5, 8, 18), "source unseen": (10, None, None)}
KINDS = ("engine", "hardware", "family", "source")


def section(fit, name):
    """Rows of a table of the fit: what, rows, and three times median, mean and p90."""
    lines = re.search(rf"^{name} +rows .*\n((?:.+\n)+)", fit, re.MULTILINE)[1].splitlines()
    return [re.split(r"  +", line.strip()) for line in lines]


def main():
    program = programs.asked(__doc__)
    fit = output(program, "plan", "--fit", "bench/reference")
    print("| errors of all runs, % | median | mean | p90 | aim |\n|---|---|---|---|---|")
    _, rows, *errors = section(fit, "throughput")[0]
    for what, three in zip(("fitted", *AIMS), errors):
        median, mean, p90 = three.split()
        aims = ", ".join(f"{name} ≤ {aim}" for name, aim in zip(("median", "mean", "p90"), AIMS.get(what, ())) if aim)
        print(f"| {what} | {median} | {mean} | {p90} | {aims} |")
    for kind in KINDS:
        print(f"\n| {kind} | runs | fitted: median, mean, p90, % | configuration unseen | source unseen |\n|---|---|---|---|---|")
        for name, count, *errors in section(fit, kind):
            print(f"| {name} | {count} | {' | '.join(', '.join(three.split()) for three in errors)} |")
    scores = [json.loads(output(program, "plan", "--score", f"bench/reference/throughput/{table}.csv", "--json")) for table in TABLES]
    ranking = {key: sum(score["ranking"][key] for score in scores) for key in scores[0]["ranking"]}
    runs = sum(score["errors"]["count"] for score in scores)
    fitting = runs - sum(len(score["does_not_fit"]) for score in scores)
    held = re.search(r"hold ([0-9.]+) % of runs, .*?; ([0-9.]+) %", fit)
    print("\n| what | reached | aim |\n|---|---|---|")
    print(f"| pairs in the published order | {ranking['right']:,} of {ranking['pairs']:,}, {100 * ranking['right'] / ranking['pairs']:.1f} % | ≥ 90 % |")
    print(f"| groups whose best is among our first three | {ranking['best_in_three']} of {ranking['groups']}, "
          f"{100 * ranking['best_in_three'] / ranking['groups']:.0f} % | ≥ 80 % |")
    print(f"| runs that fit their cards by our formulas; all did | {fitting} of {runs}, {100 * fitting / runs:.0f} % | |")
    print(f"| intervals of 80 % hold, by other configurations of the engine | {held[1]} % | 75 to 88 % |")
    print(f"| intervals of 80 % hold, by other sources | {held[2]} % | 75 to 88 % |")
    print("\nnot scored, since the model cannot express them:")
    for table, score in zip(TABLES, scores):
        for row in score["refused"]:
            print(f"- {table} {row['row']}, {row['model']}: {row['reason']}")


if __name__ == "__main__":
    main()
