# SPDX-License-Identifier: Apache-2.0
"""Trains by the whole program on a card that is none (fake_card.cpp) and by the processor, and compares the losses and gradient norms
of every step; goes on from a checkpoint of the one on the other; and what a card cannot do yet is refused by name.

Usage: train_by_card.py PENSTOCK PENSTOCK-ON-FAKE-CARD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# The greatest relative difference of a loss or a gradient norm in four steps. Sums have another order on a card.
TOLERANCE = {"f64": 1e-12, "f32": 1e-6, "bf16": 1e-3}
RUN = """
[model]
layers = 3
hidden = 64
ffn = 128
heads = 4
kv_heads = 2
[data]
text = "TEXT"
seq_len = 96
validation_fraction = 0.1
[schedule]
name = "slimpipe"
slices = 3
[train]
steps = 4
batch = 4
micro_batch = 2
threads = 1
checkpoint_every = 2
"""
CASES = [("f64",), ("f32",), ("bf16",), ("f64", "--memory.policy", "balanced"), ("bf16", "--memory.policy", "full"),
         ("f64", "--model.tied_embeddings", "true"), ("f64", "--numerics.tensor", "2"), ("f32", "--model.ffn", "100", "--data.seq_len", "91"),
         ("f64", "--schedule.name", "zb-h1", "--schedule.slices", "1"), ("f64", "--model.head_norms", "true"),
         ("f64", "--ranks", "2", "--parallel.pp", "2"), ("bf16", "--ranks", "3", "--parallel.pp", "3", "--model.tied_embeddings", "true"),
         ("f32", "--ranks", "2", "--parallel.pp", "2", "--schedule.name", "zb-v", "--schedule.slices", "1", "--model.layers", "4")]
REFUSED = [(("--ranks", "2", "--parallel.dp", "2"), "parallel.dp = 2"), (("--ranks", "2", "--parallel.tp", "2"), "parallel.tp = 2"),
           (("--ranks", "2", "--parallel.cp", "2", "--parallel.cp_mode", "gather"), "parallel.cp = 2"), (("--schedule.slices", "0"), "speeds of a card"),
           (("--ranks", "2", "--parallel.pp", "2", "--schedule.vocabulary_parallel", "true"), "schedule.vocabulary_parallel = true"),
           (("--ranks", "2", "--parallel.pp", "2", "--schedule.exchange", "paired", "--model.layers", "4"), "schedule.exchange"), (("--model.experts", "4"), "model.experts = 4"),
           (("--memory.offload", "1.0"), "memory.offload above 0"), (("--train.device", "cpu"), "start penstock")]


def train(program, folder, *words):
    return subprocess.run([program, "train", "run.toml", *words], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PENSTOCK_PROGRESS=""))


def steps(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines() if '"step"' in line]


def trained(program, folder, out, *words):
    done = train(program, folder, "--output.dir", out, *words)
    assert done.returncode == 0, f"{program} {' '.join(words)}:\n{done.stderr}"
    return steps(folder / out)


def difference(one, other):
    assert [step["step"] for step in one] == [step["step"] for step in other] == [1, 2, 3, 4]
    return max(abs(a[key] - b[key]) / abs(a[key]) for a, b in zip(one, other) for key in ("loss", "grad_norm"))


def write_run(folder):
    text = pathlib.Path(__file__).parents[2] / "docs" / "options.md"
    (folder / "run.toml").write_text(RUN.replace("TEXT", str(text)))


def main(processor, card, tolerance=TOLERANCE):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write_run(folder)
        for number, (precision, *words) in enumerate(CASES):
            words = ["--train.precision", precision, *words]
            by_processor = trained(processor, folder, f"processor-{number}", *words)
            by_card = trained(card, folder, f"card-{number}", *words)
            off = difference(by_processor, by_card)
            print(f"{' '.join(words):70} {off:.1e}")
            assert off <= tolerance[precision], f"more than {tolerance[precision]}"
        # The first two steps by the one, the others by the other.
        for number, programs in enumerate([(processor, card), (card, processor)]):
            out, words = f"both-{number}", ["--train.precision", "f64"]
            for path, program, more in [(out, programs[0], ["--train.steps", "2", "--train.lr_schedule", "constant"]),
                                        (out, programs[1], ["--resume", "--train.lr_schedule", "constant"])]:
                done = train(program, folder, "--output.dir", path, *words, *more)
                assert done.returncode == 0, done.stderr
            whole = trained(processor, folder, f"whole-{number}", *words, "--train.lr_schedule", "constant")
            assert difference(whole, steps(folder / out)) <= tolerance["f64"]
        for words, named in REFUSED:
            done = train(card, folder, "--output.dir", "refused", *words)
            assert done.returncode == 2 and named in done.stderr, f"{words}: exit {done.returncode}, {done.stderr}"
            assert not (folder / "refused").exists()


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
