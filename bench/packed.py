# SPDX-License-Identifier: Apache-2.0
"""Documents packed without padding, beside transformers' packing (bench/peers/hf_packed.py: positions tell it where documents begin), on the
documents of bench/documents.py: one rank of two threads in one slice, and transformers with two threads, with each kind of attention.

Usage: bench/packed.py PATH/TO/penstock [--sizes S] [--types f32 bf16] [--steps 3] [--continue]
(from the root of the repository; bench/peer_runs.py says which steps count and where the log is)
"""
import documents
from peer_runs import FOLDER, PEER_TYPES, PEERS, carry_out, cases_of, mebibytes, print_aims, ratio, run_peer, shown, speed

ATTENTIONS = ("sdpa", "eager")
OURS = "penstock"
AIMS = [("speed / best of transformers", True, 1.3), ("memory / its memory", False, 0.6)]


def run_transformers(python, size, dtype, steps, attention):
    listed = FOLDER / f"documents-{size}.txt"
    listed.write_text("".join(f"{length}\n" for length in documents.corpus(size)[1]))
    return run_peer([python, PEERS / "hf_packed.py", "--size", size, "--threads", "2", "--dtype", PEER_TYPES[dtype], "--steps", str(steps),
                     "--lengths", listed, "--attention", attention])


def measurements(program, python, size, dtype, steps):
    """The name of each run of a case, and what carries it out."""
    yield OURS, lambda: documents.run(program, size, dtype, steps, 1, "documents")
    for attention in ATTENTIONS:
        yield f"transformers, {attention}", lambda attention=attention: run_transformers(python, size, dtype, steps, attention)


def ratios(case):
    """Our speed and memory beside the faster of transformers."""
    best = max((run for name, run in case.items() if name != OURS), key=speed, default=None)
    return [ratio(case, OURS, best, value) for value in (speed, lambda run: run["peak_rss_bytes"])]


def tables(program, runs):
    cases = cases_of(runs)
    print("| size | type | run | tokens/s | peak resident MiB | quiet steps |\n|---|---|---|---|---|---|")
    for (size, dtype), case in cases.items():
        for name, measured in case.items():
            print(f"| {size} | {dtype} | {name} | {speed(measured):,.0f} | {mebibytes(measured.get('peak_rss_bytes'))} | {measured.get('quiet_steps', '')} |")
    print(f"\n| size | type | {' | '.join(name for name, _, _ in AIMS)} |\n|---|---|---|---|")
    for (size, dtype), case in cases.items():
        print(f"| {size} | {dtype} | {' | '.join(shown(value) for value in ratios(case))} |")
    print_aims([(size, dtype, name, value, more, aim if size == "S" else None) for (size, dtype), case in cases.items()
                for (name, more, aim), value in zip(AIMS, ratios(case))])


if __name__ == "__main__":
    carry_out(__doc__, "packed", ["S"], measurements, tables, ["XS"])
