# SPDX-License-Identifier: Apache-2.0
"""What documents save: the same tokens with attention inside documents (data.mask = "documents") and across them ("none"), one rank of
two threads, in one slice and in eight.

Usage: bench/documents.py PATH/TO/penstock [--sizes L] [--types bf16 f32] [--steps 3] [--continue]
(from the root of the repository)

The documents' lengths are drawn from a log-normal distribution with a mean of 2,048 tokens (an eighth of the sequence at other sizes) and
a deviation of their logarithms of 1; the tokens are drawn too. "pairs" are the pairs of a query and a key that are attended with the
mask, of those without. bench/peer_runs.py says which steps count and where the log is.
"""
import math
import random
import struct

from peer_runs import (FOLDER, SIZES, carry_out, cases_of, mebibytes, print_aims, ratio, run_file, shown, speed, train)

SEED, DEVIATION = 20, 1.0
SLICES = (1, 8)
NAME = "{mask}, n = {slices}"
AIMS = {("L", "bf16", 8): 0.65, ("L", "bf16", 1): 0.65}


def lengths_of(tokens, mean):
    """Of documents, until they have so many tokens."""
    draw, lengths = random.Random(SEED), []
    while sum(lengths) < tokens:
        lengths.append(max(1, round(draw.lognormvariate(math.log(mean) - DEVIATION**2 / 2, DEVIATION))))
    return lengths


def corpus(size):
    """The prefix of a pair of Megatron's with enough for one step, and the lengths of its documents."""
    *_, vocab, seq_len, batch = SIZES[size]
    prefix = FOLDER / f"documents-{size}"
    lengths = lengths_of(seq_len * batch, seq_len // 8)
    draw = random.Random(SEED + 1)
    with open(f"{prefix}.bin", "wb") as file:
        for length in lengths:
            file.write(struct.pack(f"<{length}H", *(draw.randrange(vocab) for _ in range(length))))
    with open(f"{prefix}.idx", "wb") as file:
        count = len(lengths)
        begins = [2 * sum(lengths[:i]) for i in range(count)]
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        file.write(struct.pack(f"<{count}i", *lengths) + struct.pack(f"<{count}q", *begins) + struct.pack(f"<{count + 1}q", *range(count + 1)))
    return prefix, lengths


def pairs_share(size):
    """Attended pairs with the mask, of those without, in the step's sequences."""
    *_, seq_len, batch = SIZES[size]
    _, lengths = corpus(size)
    ends, place = [], 0
    for length in lengths:
        place += length
        ends.append(place)
    cuts = sorted({*(end for end in ends if end < seq_len * batch), *(seq_len * i for i in range(batch + 1))})
    return sum((b - a) * (b - a + 1) / 2 for a, b in zip(cuts, cuts[1:])) / (batch * seq_len * (seq_len + 1) / 2)


def run(program, size, dtype, steps, slices, mask):
    directory = FOLDER / "documents-run"
    path = run_file(FOLDER / f"documents-{size}-{dtype}.toml", size, dtype, 2, steps, directory, schedule={"name": "slimpipe", "slices": slices},
                    memory={"policy": "balanced"})
    command = [program, "train", str(path), "--data.text", "", "--data.megatron", str(corpus(size)[0].resolve()), "--data.mask", mask,
               "--train.shuffle", "false"]
    return train([command], [directory], SIZES[size][-2] * SIZES[size][-1], 1)[0]


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    for slices in SLICES:
        for mask in ("none", "documents"):
            yield NAME.format(mask=mask, slices=slices), lambda slices=slices, mask=mask: run(program, size, dtype, steps, slices, mask)


def time_ratio(case, slices):
    return ratio(case, NAME.format(mask="none", slices=slices), case.get(NAME.format(mask="documents", slices=slices)), speed)


def tables(program, runs):
    cases = cases_of(runs)
    print("| size | type | mask | tokens/s | peak resident MiB | quiet steps |\n|---|---|---|---|---|---|")
    for (size, dtype), case in cases.items():
        for name, measured in case.items():
            print(f"| {size} | {dtype} | {name} | {speed(measured):,.0f} | {mebibytes(measured.get('peak_rss_bytes'))} | {measured.get('quiet_steps', '')} |")
    print("\n| size | type | pairs, documents / none | time, documents / none, n = 1 | time, documents / none, n = 8 |\n|---|---|---|---|---|")
    for (size, dtype), case in cases.items():
        print(f"| {size} | {dtype} | {shown(pairs_share(size))} | {' | '.join(shown(time_ratio(case, slices)) for slices in SLICES)} |")
    print_aims([(size, dtype, f"time, documents / none, n = {slices}", time_ratio(case, slices), False, AIMS.get((size, dtype, slices)))
                for (size, dtype), case in cases.items() for slices in SLICES])


if __name__ == "__main__":
    carry_out(__doc__, "documents", ["L"], measurements, tables, ["S", "XS"])
