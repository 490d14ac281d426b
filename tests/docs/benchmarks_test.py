#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' command lines, and what they do when the program fails."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import moe
import peer_runs
import peers

SCRIPTS = sorted(path.name for path in (ROOT / "bench").glob("*.py") if "PATH/TO/penstock" in path.read_text())
SAID = "penstock: model.layers = 0: expected 1 or more"
# Those that call the program within a second of their start; the others first install packages or write a text.
SOON = ("accuracy", "checkpoints", "exchange", "forecast", "gpu", "google", "memory", "overhead", "papers", "plan", "reality", "search_speed", "shares", "slimpipe",
        "throughput")
RUN = {"size": "XS", "type": "f32", "peer": "penstock", "tokens_per_second": 1000.0, "slices": "8", "chunks": "1"}


def ended(script, *words, folder=ROOT):
    return subprocess.run([sys.executable, ROOT / "bench" / script, *words], cwd=folder, capture_output=True, text=True, timeout=60)


class CommandLines(unittest.TestCase):
    def test_help_says_what_is_measured(self):
        self.assertGreater(len(SCRIPTS), 20)
        for script in SCRIPTS:
            done = ended(script, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)
            self.assertIn(f"Usage: bench/{script} ", done.stdout)

    def test_what_is_no_program_is_refused_before_anything_is_done(self):
        for script in SCRIPTS:
            for words, said in (([], "required: program"), (["/none/penstock"], "/none/penstock is not a program")):
                done = ended(script, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), script)
                self.assertIn(said, done.stderr)

    def test_other_words_are_refused(self):
        for script, *words in (("forecast.py", "0"), ("forecast.py", "11"), ("slimpipe.py", "slicin"), ("gpu.py", "speed"), ("plan.py", "0"),
                               ("startup.py", "-1"), ("memory.py", "--rounds", "0"), ("peers.py", "--steps", "0"), ("balance.py", "more")):
            done = ended(script, "true", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), script)


class FailingPrograms(unittest.TestCase):
    def test_the_benchmark_ends_with_the_programs_words(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for part in ("bench", "hardware", "plans", "runs"):
                (folder / part).symlink_to(ROOT / part)
            for program in ("penstock", "mpirun"):
                (folder / program).write_text(f"#!/bin/sh\necho '{SAID}' >&2\nexit 2\n")
                (folder / program).chmod(0o700)
            with mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                for script in SOON:
                    done = ended(f"{script}.py", "./penstock", folder=folder)
                    self.assertEqual(done.returncode, 1, script)
                    self.assertIn(SAID, done.stderr, script)
                    self.assertNotIn("Traceback", done.stderr, script)

    def carried_out(self, *runs):
        """The exit code and what is printed of a benchmark with such runs; a text is a failure of ours, an exception is raised."""
        def measurements(program, python, size, dtype, steps):
            for number, run in enumerate(runs):
                yield f"run {number}", mock.Mock(side_effect=[run])

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed, \
                mock.patch.object(peer_runs, "FOLDER", pathlib.Path(folder)), mock.patch.object(peer_runs, "peers_python"), \
                mock.patch.object(sys, "argv", ["", "true", "--types", "f32"]), self.assertRaises(SystemExit) as end:
            peer_runs.carry_out("", "some", ["XS"], measurements, lambda program, runs: None)
        return bool(end.exception.code), printed.getvalue()

    def test_a_run_of_ours_that_fails_fails_the_benchmark(self):
        self.assertEqual(self.carried_out(RUN), (False, ""))
        refused = self.carried_out(RUN, peer_runs.Failed("no CPU"))
        self.assertFalse(refused[0])
        self.assertIn("| XS | f32 | run 1 | no CPU |", refused[1])
        failed = self.carried_out(RUN, peer_runs.OursFailed("no memory"), RUN)
        self.assertTrue(failed[0])
        self.assertIn("| XS | f32 | run 1 | no memory |", failed[1])

    def test_a_program_that_fails_to_train_is_ours(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(peer_runs.OursFailed, "no such key"):
                peer_runs.train([["sh", "-c", "echo penstock: no such key >&2; exit 2"]], [pathlib.Path(folder) / "run"], 1, 1)

    def test_what_was_not_measured_is_an_empty_cell(self):
        ours = [dict(RUN, name=name) for name in (peers.ONE, peers.TWO)]
        with contextlib.redirect_stdout(io.StringIO()) as printed, mock.patch.object(peers, "simulated", return_value=None), \
                mock.patch.object(peers, "side_by_side"):
            peers.tables("penstock", ours)
        self.assertIn("| XS | f32 | penstock, 1 rank | 1,000 |  |  |  |  |\n", printed.getvalue())
        self.assertNotIn("nan", printed.getvalue())
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            moe.tables("penstock", [dict(RUN, name="penstock", moved_share=0.05)])
        self.assertIn("| XS | f32 |  |  | 0.05 |  |", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
