# SPDX-License-Identifier: Apache-2.0
"""What scripts that start runs have in common: a text, what a run has left, waiting, and being skipped."""
import json
import sys
import time


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def wait_until(what, true, seconds, told=lambda: ""):
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"waited {seconds} s until {what}\n{told()}")
        time.sleep(0.05)


def write_corpus(folder):
    (folder / "corpus.txt").write_text("".join(f"line {i * i} of a text\n" for i in range(4000)))


def steps_of(directory):
    """The whole lines of metrics.jsonl."""
    file = directory / "metrics.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def bits_of(directory):
    numbers = [[step[key] for key in ("step", "loss", "grad_norm", "tokens")] for step in steps_of(directory)]
    return numbers, (directory / "weights.safetensors").read_bytes()
