# SPDX-License-Identifier: Apache-2.0
"""What packing and slices of equal work do for documents of very unequal lengths: bench/balance.toml by `penstock data`, with the
speeds of an H100, without context exchange and with it.

Usage: bench/balance.py PATH/TO/penstock   (from the root of the repository)

The lengths are a seeded mixture of log-normal distributions: most documents below 4 K tokens, one in a hundred above 64 K, none longer
than a sequence. Nothing is trained, and nothing but the planning is timed: all other figures are the same on every machine.
"""
import json
import pathlib
import random

import programs
from peer_runs import print_aims

FOLDER = pathlib.Path("build/bench")
SEED, DOCUMENTS, LONGEST = 20, 60_000, 262_144
MIXTURE = [(0.91, 6.8, 0.6), (0.08, 9.6, 0.7), (0.01, 11.6, 0.35)]  # share, mean and deviation of the logarithm
STEPS = "16"  # all batches of a window
KEYS = ("packing", "cut", "slice_tokens")
EXCHANGES = ("off", "levelled")


def lengths():
    draw = random.Random(SEED)
    found = []
    for _ in range(DOCUMENTS):
        place = draw.random()
        for share, mean, deviation in MIXTURE:
            if place < share:
                break
            place -= share
        found.append(min(LONGEST, max(1, round(draw.lognormvariate(mean, deviation)))))
    return found


def outcomes(program, listed, exchange):
    command = [program, "data", str(listed), "bench/balance.toml", "--hardware", "hardware/h100.toml", "--steps", STEPS, "--json",
               "--schedule.exchange", exchange]
    return {tuple(row[key] for key in KEYS): row for row in json.loads(programs.output(*command))}


def main(program):
    FOLDER.mkdir(parents=True, exist_ok=True)
    listed = FOLDER / "long-tail.txt"
    drawn = lengths()
    listed.write_text("".join(f"{length}\n" for length in drawn))
    below, above = (sum(map(test, drawn)) / len(drawn) for test in (lambda n: n < 4096, lambda n: n > 65536))
    print(f"{len(drawn):,} documents, {sum(drawn) / 1e6:,.0f} M tokens: {below:.1%} below 4,096, {above:.1%} above 65,536\n")
    print("| exchange | packing | cut | slices | padding | slots | micro-batches | replicas | idle | tokens/s |\n|---|---|---|---|---|---|---|---|---|---|")
    found = {exchange: outcomes(program, listed, exchange) for exchange in EXCHANGES}
    for exchange, rows in found.items():
        for (packing, cut, slice_tokens), row in rows.items():
            if slice_tokens and (exchange, packing, cut) != ("levelled", "balanced", "work"):
                continue  # packed sequences are nearly full: as with 32 slices
            slices = f"of {slice_tokens:,}" if slice_tokens else "32"
            print(f"| {exchange} | {packing} | {cut} | {slices} | {row['padding']:.1%} | {row['work_of_slots']:.3f} | "
                  f"{row['work_of_micro_batches']:.2f} | {row['work_of_replicas']:.3f} | {row['idle']:.1%} | {row['tokens_per_second']:,.0f} |")
    best, equal = found["levelled"]["balanced", "work", 0], found["off"]["balanced", "tokens", 0]
    every = [row for rows in found.values() for row in rows.values()]
    longest, share = max(row["planning_s"] for row in every), max(row["planning_s"] / row["step_s"] for row in every)
    print(f"\nPlanning a step takes {1000 * longest:.0f} ms here at most, and at most {share:.2%} of the simulated step.")
    print_aims([("8B", "bf16", "slots, balanced, cut by work, levelled", best["work_of_slots"], False, 1.05),
                ("8B", "bf16", "planning, of a step", share, False, 0.01),
                ("8B", "bf16", "replicas, balanced", best["work_of_replicas"], False, 1.03),
                ("8B", "bf16", "idle, cut by work and levelled / slices equally long", best["idle"] / equal["idle"], False, 0.33)])


if __name__ == "__main__":
    main(programs.asked(__doc__))
