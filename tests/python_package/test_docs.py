# SPDX-License-Identifier: Apache-2.0
"""The Python that documents show runs, in their order."""
import os
import re
import tempfile
import unittest

import numpy
import penstock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
GIVEN = dict(device=numpy.array([0, 0]), kind="FB", stage=numpy.array([0, 0]), micro_batch=numpy.array([0, 0]),
              arguments="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu --vocab-size 32000 --seq-length 4096 "
                        "--micro-batch-size 1 --bf16 --use-distributed-optimizer")


def text_of(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def blocks(name):
    return re.findall(r"```python\n(.*?)```", text_of(name), re.DOTALL)


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        with open("job.toml", "w") as file:
            file.write('[model]\nflavor = "8B"\n')
        for name in ("plans", "hardware"):  # named as from the repository's root
            os.symlink(os.path.join(ROOT, name), name)

    def run_blocks(self, name, given):
        names = dict(given)
        for block in blocks(name):
            exec(compile(block, name, "exec"), names)
        return names

    def test_the_blocks_of_docs_python_md_run_one_after_the_other(self):
        names = self.run_blocks("docs/python.md", GIVEN)
        self.assertTrue(names["schedule"].is_legal)
        for file in ("my.csv", "trace.json", "report.html"):
            self.assertGreater(os.path.getsize(file), 100, file)

    def test_costs_written_within_sentences_are_taken(self):
        calls = re.findall(r"`(simulate\(.+\))`", text_of("docs/python.md"))
        names = {"penstock": penstock, "schedule": penstock.schedule("slimpipe", p=2, m=4, n=2)}
        for call in calls:
            with self.subTest(call):
                self.assertGreater(eval("schedule." + call, names).makespan, 0)
        self.assertGreaterEqual(len(calls), 4)

    def test_the_block_of_the_readme_runs(self):
        self.assertEqual(len(blocks("README.md")), 1)
        self.assertEqual(self.run_blocks("README.md", {})["schedule"].devices, 4)

    def test_the_page_is_short(self):
        self.assertLess(len(text_of("docs/python.md").splitlines()), 100)
