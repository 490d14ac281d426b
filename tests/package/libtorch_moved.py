#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A build whose LibTorch is gone takes python3's, or says that there is none.

Usage: libtorch_moved.py PATH/TO/penstock

In a mount namespace LibTorch's folder is hidden; its wheel is mounted elsewhere, where python3 finds it or not. Exit 0: so it is;
1: not; 77: skipped.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from unpack_elsewhere import PLAIN, SOURCE, STEPS, expect, namespace


def main(program):
    linked = subprocess.run(["ldd", f"{program}-compute"], check=True, capture_output=True, text=True).stdout
    site = pathlib.Path(re.search(r"libtorch_cpu\.so => (\S+)", linked)[1]).parents[2]
    with tempfile.TemporaryDirectory() as scratch:
        moved = pathlib.Path(scratch) / "site"
        moved.mkdir()
        script = f"mount --bind '{site}' '{moved}' && mount -t tmpfs none '{site}' && exec env -i \"$@\""

        def run(*environment):
            words = [program, "train", SOURCE / "runs" / "demo.toml", "--data.text", SOURCE / "docs" / "options.md", "--output.dir", "out",
                     "--parallel.pp", "1", *STEPS]
            return subprocess.run([*namespace(), "sh", "-c", script, "sh", *(f"{name}={value}" for name, value in PLAIN.items()), *environment,
                                   *map(str, words)], cwd=scratch, capture_output=True, text=True)

        found = run(f"PYTHONPATH={moved}")
        expect(found.returncode == 0 and "loss" in found.stdout + found.stderr, f"python3's LibTorch is taken:\n{found.stderr}")
        (pathlib.Path(scratch) / "python3").write_text("#!/bin/sh\n")
        (pathlib.Path(scratch) / "python3").chmod(0o755)
        lost = run(f"PATH={scratch}:{PLAIN['PATH']}")
        expect(lost.returncode == 3 and "nor among the packages of python3" in lost.stderr, f"exit {lost.returncode}: {lost.stderr}")
        expect(len(lost.stderr.splitlines()) == 1, lost.stderr)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
