#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of README.md, CONTRIBUTING.md and docs/ stand in the files that they name (bench/figures.py says how they name
them), and the check of that finds each kind of wrong figure."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402

SPEED = """machine  A processor, 2 cores, avx2
commit   0123abc+
date     2026-01-31
command  ./dev bench speed

Steps of two sizes.

| size | seconds | tokens/s |
|---|---|---|
| S | 1.25 | 6,554 |
| M | 10.5 | 780 |

the greatest difference is -3.1 %
"""
TABLE = """<!-- table of bench/results/speed.txt: | size | -->
| size | seconds | tokens/s |
|---|---|---|
| S | 1.25 | 6,554 |
| M | 10.5 | 780 |

From [bench/results/speed.txt](../bench/results/speed.txt): A processor, 2 cores, avx2; commit 0123abc+, 2026-01-31.
<!-- end -->
"""


class Repository:
    """A folder with one document, docs/page.md, and one results file."""

    def __init__(self, folder, page, results=SPEED):
        self.root = pathlib.Path(folder)
        for name, text in (("docs/page.md", page), ("bench/results/speed.txt", results)):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def findings(self):
        return figures.findings(self.root)

    def page(self):
        return (self.root / "docs/page.md").read_text()


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def accept(self, page, results=SPEED):
        self.assertEqual(Repository(self.folder, page, results).findings(), [])

    def refuse(self, page, reason, results=SPEED):
        found = Repository(self.folder, page, results).findings()
        self.assertEqual(len(found), 1, found)
        self.assertIn(reason, found[0])

    def test_a_copy_is_the_files_table_to_the_letter(self):
        self.accept(TABLE)
        self.refuse(TABLE.replace("6,554", "6,555"), "differs from bench/results/speed.txt")
        self.refuse(TABLE.replace("| M | 10.5 | 780 |\n", ""), "differs")
        self.refuse(TABLE.replace("2026-01-31", "2026-02-01"), "differs")
        self.refuse(TABLE.replace("| size | -->", "| length | -->"), "no paragraphs that begin with")
        self.refuse(TABLE.replace("results/speed", "results/slow"), "is no file of bench/results")
        self.refuse(TABLE.replace("<!-- end -->\n", ""), "has no <!-- end -->")

    def test_a_copy_with_the_paragraph_before_its_table_a_block_of_output_and_a_page(self):
        for comment in ("table of bench/results/speed.txt: Steps of", "output of bench/results/speed.txt", "page of bench/results/speed.txt",
                        "output of bench/results/speed.txt: the greatest"):
            repository = Repository(self.folder, f"# Page\n\n<!-- {comment} -->\n<!-- end -->\n")
            self.assertEqual(len(repository.findings()), 1, comment)
            figures.rewrite(repository.root, "docs/page.md")
            self.assertEqual(repository.findings(), [], comment)
            self.assertIn("-3.1 %" if "output" in comment else "| S | 1.25 | 6,554 |", repository.page())

    def test_a_copy_leaves_out_headings(self):
        repository = Repository(self.folder, "<!-- table of bench/results/speed.txt: ## Speed -->\n<!-- end -->\n",
                                SPEED.replace("Steps of two", "## Speed\n\nSteps of two"))
        figures.rewrite(repository.root, "docs/page.md")
        self.assertEqual(repository.findings(), [])
        self.assertEqual(repository.page().splitlines()[1], "Steps of two sizes.")

    def test_copying_anew_mends_copies_and_leaves_the_rest(self):
        repository = Repository(self.folder, "before\n" + TABLE.replace("1.25", "1.26") + "after\n")
        figures.rewrite(repository.root, "docs/page.md")
        self.assertEqual(repository.page(), "before\n" + TABLE + "after\n")

    def test_numbers_of_a_marked_sentence_are_printed_so_in_its_file(self):
        mark = " <!-- figures: bench/results/speed.txt -->\n"
        self.accept("M trains 780 tokens/s, S 6554; they are within 3.1 %." + mark)
        self.accept("<!-- figures: bench/results/speed.txt -->\nM takes 10.5 s.\n")
        self.accept("- M takes 10.5 s." + mark + "- of `n = 17`, S 1.25." + mark)
        self.refuse("M takes 10.6 s." + mark, "not printed in bench/results/speed.txt: 10.6")
        self.refuse("M takes 10 s." + mark, "not printed in bench/results/speed.txt: 10")
        self.refuse("They are within 3 %." + mark, "not printed")
        self.refuse("It takes 10.5 s on 4 ranks." + mark, "not printed in bench/results/speed.txt: 4")
        self.refuse("M takes 10.5 s. <!-- figures: bench/results/slow.txt -->\n", "is no file of bench/results")

    def test_what_looks_measured_has_a_comment(self):
        for figure in ("780 tokens/s", "3 %", "3%", "10.5", "12 s", "5 ms", "7 µs", "1.2 times", "100 GFLOP/s", "4 GiB", "2 minutes", "4×"):
            self.refuse(f"It is {figure} here.\n", f"no comment says which file has: {figure}")
            self.accept(f"It is {figure} here. <!-- figures: none, an aim -->\n")
        self.refuse("It is 3 % here. <!-- figures: none -->\n", "gives no reason")
        self.refuse("It is 3 % here. <!-- figures: none, seen once -->\n", "gives no reason")
        self.refuse("It is 3 % here. <!-- figures: none, held by tests/gone.cpp -->\n", "there is no file tests/gone.cpp")
        self.refuse("It is 3 % here. <!-- figures: none, published in docs/none.csv -->\n", "there is no file")
        self.accept("It is 3.1 % here. <!-- figures: none, published in bench/results/speed.txt -->\n")
        self.refuse("It is 3 % here. <!-- figures: none, published in bench/results/speed.txt -->\n", "not in bench/results/speed.txt: 3")
        self.refuse("```\nspeed  780 tokens/s\n```\n", "780 tokens/s")
        self.refuse("| run | step s |\n|---|---|\n| S | 12 |\n", "12")
        self.refuse("- one is fast\n- two take 5 s\n", "docs/page.md:2: no comment says which file has: 5 s")
        self.refuse("It is 3 % here.\n\nElsewhere 4. <!-- figures: none, an aim -->\n", "3 %")
        self.accept("Llama 70B in bf16, 1F1B at p = 2, m = 8, n = 1,024; `--transfer 0.5 s`, SC'25, §5, [a](b/1.5), \"2 GB\".\n")
        self.accept("```toml\nwait = 0.5\n```\n")

    def test_results_begin_with_machine_commit_date_and_command(self):
        for line in SPEED.splitlines()[:4]:
            self.refuse("A page.\n", "does not begin with machine, commit, date and command", SPEED.replace(line + "\n", ""))
        self.refuse("A page.\n", "does not begin", SPEED.replace("0123abc+", "0123abc, changed"))
        self.refuse("A page.\n", "is called as written by ./dev bench other", SPEED.replace("bench speed", "bench other"))
        self.refuse("A page.\n", "names a path of one machine: /home/me/run", SPEED + "\nwritten: /home/me/run\n")

    def test_figures_of_this_repository(self):
        self.assertGreater(len(figures.documents(ROOT)), 10)
        found = figures.findings(ROOT)
        self.assertFalse(found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
