#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader finds the curves of a run, and drops what a resumed run did again.

Usage: read_curves.py PATH/TO/write_events

write_events DIRECTORY writes two files: steps 1 to 5, then, as a run that goes on after step 3, steps 4 to 6. Exit 0: read
as written; 1: not; 77: skipped, the package cannot be had.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import packages

packages.require("tensorboard", ["tensorboard"], gigabytes=0.2)
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WANTED = {
    "train/loss": [(1, 1.0), (2, 0.5), (3, 1 / 3), (4, 10.25), (5, 10.2), (6, 10 + 1 / 6)],
    "speed/tokens_per_second": [(step, 1000.0 * step) for step in range(1, 7)],
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        events = EventAccumulator(folder).Reload()
        tags = events.Tags()["scalars"]
        found = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags}
    good = found.keys() == WANTED.keys() and all(
        len(found[tag]) == len(points)
        and all(a[0] == b[0] and abs(a[1] - b[1]) < 1e-6 for a, b in zip(found[tag], points))
        for tag, points in WANTED.items())
    print(f"TensorBoard reads {found}" + ("" if good else f"; expected {WANTED}"))
    sys.exit(not good)


if __name__ == "__main__":
    main()
