# SPDX-License-Identifier: Apache-2.0
import copy
import os
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import pandas
import penstock
import program

OWN = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]


class Schedules(unittest.TestCase):
    def test_every_schedule_has_the_programs_csv_and_picture(self):
        for entry in penstock.catalogue():
            with self.subTest(entry["name"]):
                n = 4 if entry["slices"] else 1
                ours = penstock.schedule(entry["name"], p=4, m=8, n=n)
                words = ["show", "--schedule", entry["name"], "-p", 4, "-m", 8, "-n", n]
                self.assertEqual(ours.to_csv(), program.run(*words, "--format", "csv"))
                self.assertEqual(ours.svg(), program.run(*words, "--format", "svg"))
                self.assertEqual(ours.check(), [])

    def test_the_grid_is_the_programs(self):
        shown = program.run("show", "--schedule", "slimpipe", "-p", 4, "-m", 2, "-n", 8)
        self.assertEqual(penstock.schedule("slimpipe", p=4, m=2, n=8).grid(0), shown.split("\n", 1)[1])

    def test_each_micro_batch_may_have_its_own_slices(self):
        ours = penstock.schedule("slimpipe", p=2, n=[8, 4, 16])
        self.assertEqual(ours.slices, [8, 4, 16])
        self.assertEqual(ours.to_csv(), program.run("show", "--schedule", "slimpipe", "-p", 2, "-n", "8,4,16", "--format", "csv"))

    def test_a_csv_goes_both_ways(self):
        ours = penstock.schedule("zb-v", p=4, m=8)
        self.assertEqual(penstock.Schedule.from_csv(ours.to_csv()), ours)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my.csv")
            ours.to_csv(path)
            self.assertEqual(penstock.Schedule.from_csv(path), ours)
            self.assertEqual(penstock.Schedule.from_csv(path).name, path)

    def test_a_schedule_is_written_as_text_tuples_actions_or_columns(self):
        text = penstock.Schedule(OWN)
        tuples = penstock.Schedule([[("F", 0, 0), ("F", 0, 1), ("B", 0, 0), ("B", 0, 1)],
                                    [penstock.Action("F", 1, 0), ("B", numpy.int64(1), 0), ("F", 1, 1, 0), "1B1"]])
        columns = penstock.Schedule.from_columns(device=[0, 0, 0, 0, 1, 1, 1, 1], kind="FFBBFBFB",
                                                 stage=[0, 0, 0, 0, 1, 1, 1, 1], micro_batch=[0, 1, 0, 1, 0, 0, 1, 1])
        self.assertEqual(text, tuples)
        self.assertEqual(text, columns)
        self.assertEqual(text.rows, OWN)
        self.assertTrue(text.is_legal)

    def test_columns_of_a_schedule_share_its_memory_and_make_it_again(self):
        ours = penstock.schedule("slimpipe", p=3, m=2, n=6, v=2)
        parts = [ours.columns(device) for device in range(3)]
        self.assertFalse(parts[0]["stage"].flags.owndata)
        self.assertFalse(parts[0]["stage"].flags.writeable)
        joined = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
        kinds = numpy.array(list(".FBIW"))[joined.pop("kind")]
        device = numpy.repeat(range(3), [len(part["stage"]) for part in parts])
        self.assertEqual(penstock.Schedule.from_columns(device, kinds, **joined), ours)
        frame = pandas.DataFrame(dict(joined, device=device, kind=kinds))
        self.assertEqual(penstock.Schedule.from_columns(**frame), ours)
        self.assertEqual(penstock.Schedule.from_columns(**frame.astype({"kind": object})), ours)
        for wrong in (None, "FB", 7):
            with self.assertRaisesRegex(penstock.InputError, "kind is an array of shape"):
                penstock.Schedule.from_columns([0, 0], pandas.Series(["F", wrong]), [0, 0], [0, 0])

    def test_idle_cells_and_overlapping_pairs_are_kept(self):
        rows = [["0F0", None, "0B0"], ["(1F0;1B0)OVERLAP_F_B"]]
        self.assertEqual(penstock.Schedule(rows).to_csv(), "0F0,,0B0\n(1F0;1B0)OVERLAP_F_B\n")

    def test_a_schedule_is_pickled_and_copied(self):
        for ours in [penstock.schedule(entry["name"], p=2, m=4, n=2 if entry["slices"] else 1) for entry in penstock.catalogue()] + [
                penstock.Schedule([["0F0", None, "3B2.7"], []], name="mine, \u0146"), penstock.Schedule([["0F0"], ["(1F0;1B0)OVERLAP_F_B"]])]:
            for other in (pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy([ours])[0]):
                self.assertEqual(other, ours)
                self.assertEqual(other.name, ours.name)
                self.assertEqual(other.rows, ours.rows)

    def test_what_is_not_pickled_says_what_to_keep(self):
        plan = penstock.plan(model="llama-7b", gpus=8, seq_len=4096, hardware="h100")
        for value, text in ((penstock.Schedule(OWN).simulate(), "its Schedule"), (plan, r"to_json\(\)"), (plan.best[0], "its values")):
            for call in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.assertRaisesRegex(TypeError, f"a {type(value).__name__} cannot be pickled or copied; keep {text}"):
                    call(value)

    def test_findings_are_the_programs(self):
        rows = [["0F0", "0B0", "0F1"], ["1B0", "1F0", "1F1", "1F1"]]
        ours = penstock.Schedule(rows)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bad.csv")
            ours.to_csv(path)
            theirs = program.answer("check", path, code=1)["findings"]
        self.assertEqual([found._asdict() for found in ours.check()], theirs)
        self.assertGreater(len(theirs), 1)
        self.assertEqual(len(ours.check(limit=1)), 1)
        self.assertIn(">", ours.grid())

    def test_importing_takes_little_time_and_no_packages(self):
        code = ("import sys, time; start = time.process_time(); import penstock; took = time.process_time() - start;"
                "print(took, sorted({'numpy', 'pandas', 'polars', 'torch'} & set(sys.modules)))")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        took, packages = done.stdout.split(" ", 1)
        self.assertEqual(packages.strip(), "[]")
        self.assertLess(float(took), 0.5, "ten times the aim, so that a busy machine passes")

    def test_a_notebook_draws_what_has_few_actions(self):
        small, large = penstock.schedule("1f1b", p=4, m=8), penstock.schedule("1f1b", p=50, m=1000)
        self.assertEqual(small._repr_svg_(), small.svg())
        self.assertEqual(small.simulate()._repr_svg_(), small.simulate().svg())
        self.assertIsNone(large._repr_svg_())
        self.assertIsNone(large.simulate()._repr_svg_())

    def test_without_numpy_columns_say_what_is_missing(self):
        for what in ("schedule.columns(0)", "schedule.simulate().timeline(0)", "schedule.simulate(samples=True).memory(0)"):
            code = ("import sys; sys.modules['numpy'] = None; import penstock; "
                    f"schedule = penstock.schedule('1f1b', p=2, m=2); {what}")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertIn("\nModuleNotFoundError: import of numpy halted", done.stderr)

    def test_neither_libtorch_nor_mpi_is_loaded(self):
        import penstock._core

        linked = subprocess.run(["ldd", penstock._core.__file__], capture_output=True, text=True, check=True).stdout
        self.assertIn("libc.so", linked)
        for library in ("libtorch", "libmpi", "libc10"):
            self.assertNotIn(library, linked)
        self.assertLess(os.path.getsize(penstock._core.__file__), 10e6)
