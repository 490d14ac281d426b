# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile
import unittest

import penstock
import program

QUESTION = dict(model="llama-13b", gpus=32, seq_len=32768, batch=64, hardware="h100")
WORDS = ["--model", "llama-13b", "--gpus", 32, "--seq-len", 32768, "--batch", 64, "--hardware", "h100"]
CPU = os.path.join(os.path.dirname(__file__), "..", "..", "hardware", "this-machine.toml")
NOT_COMPARED = ("search_s", "candidates_per_s")  # times of the search itself


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = penstock.plan(**QUESTION)

    def test_a_plan_is_the_programs_to_the_last_digit(self):
        theirs, ours = program.answer("plan", *WORDS), json.loads(self.plan.to_json())
        self.assertEqual(self.plan.assumed, theirs["assumed"])
        for key in NOT_COMPARED:
            theirs.pop(key)
            ours.pop(key)
        self.assertEqual(ours, theirs)

    def test_the_interval_by_published_runs_is_the_programs(self):
        for words in (dict(), dict(engine="megatron"), dict(engine="torchtitan"),
                      dict(engine="nanotron", seq_len=262144)):
            with self.subTest(**words):
                question = {**QUESTION, **words}
                flags = [word for key, value in question.items() for word in (f"--{key.replace('_', '-')}", value)]
                ours, theirs = penstock.plan(**question), program.answer("plan", *flags)
                self.assertEqual(ours.interval, theirs.get("interval"))
                if ours.interval:
                    self.assertLess(ours.interval["low_s"], ours.best[0].step_s)
                    self.assertLess(ours.best[0].step_s, ours.interval["high_s"])
                    for word in ours.interval["outside"]:
                        self.assertIn(word, repr(ours))

    def test_on_a_processor_there_is_no_interval(self):
        sizes = {"model.layers": 8, "model.hidden": 512, "model.ffn": 1376, "model.heads": 8, "model.vocab": 32000}
        for peak in ("bf16", "f32"):
            with self.subTest(peak=peak), tempfile.TemporaryDirectory() as folder, open(CPU) as machine:
                path = os.path.join(folder, "machine.toml")
                with open(path, "w") as file:
                    file.write(machine.read().replace('peak = "bf16"', f'peak = "{peak}"'))
                plan = penstock.plan(gpus=2, seq_len=512, batch=8, hardware=path, options=sizes)
                self.assertIsNone(plan.interval)
                self.assertNotIn("interval", plan.to_json())

    def test_where_nothing_like_it_is_published_the_plan_says_so(self):
        outside = penstock.plan(**{**QUESTION, "engine": "nanotron", "seq_len": 1048576}).interval["outside"]
        self.assertTrue(any("tokens a sequence than" in word for word in outside), outside)

    def test_a_plan_file_and_options_are_the_programs(self):
        file = os.path.join(os.path.dirname(__file__), "..", "..", "plans", "llama-70b-128k.toml")
        ours = penstock.plan(file, options={"search.pp": [4, 8], "search.vocabulary_parallel": ["off"]})
        theirs = program.answer("plan", file, "--search.pp=4,8", "--search.vocabulary_parallel=off")
        self.assertEqual([candidate.values for candidate in ours.best], theirs["best"])
        self.assertEqual({candidate.pp for candidate in ours.best} | {4, 8}, {4, 8})

    def test_candidates_are_tables_and_objects(self):
        best = self.plan.best
        self.assertEqual(best.table["step_s"], [candidate.step_s for candidate in best])
        self.assertEqual(best.to_pandas().step_s.tolist(), best.table["step_s"])
        self.assertIn(best[0].schedule, best[0].layout)
        self.assertIn("matrix products", self.plan.why)
        self.assertIn("[parallel]", best[0].run_file())

    def test_a_run_file_is_of_plans_for_penstock(self):
        for engine in ("megatron", "nemo"):
            plan = penstock.plan(model="llama-7b", gpus=8, seq_len=4096, hardware="h100", engine=engine)
            with self.assertRaisesRegex(penstock.InputError, f'but the plan is for the engine "{engine}"; expected cluster.engine'):
                plan.best[0].run_file()

    def test_a_part_of_the_candidates_is_shown_as_they_are(self):
        self.assertEqual(self.plan.best[:2].table["step_s"], self.plan.best.table["step_s"][:2])
        self.assertEqual(repr(penstock.Hardware("h100")), "<Hardware h100>")
        self.assertEqual(repr(penstock.Hardware("h100").costs("llama-7b", 4096)), "<Costs of llama-7b, 4096 tokens, on h100>")

    def test_a_models_folder_is_planned_as_the_known_model(self):
        sizes = dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
                     num_hidden_layers=32, vocab_size=128256, num_local_experts=8, num_experts_per_tok=2,
                     tie_word_embeddings=True, model_type="mixtral", hidden_act="silu", rms_norm_eps=1e-5, rope_theta=1e6)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump(sizes, file)
            ask = lambda model: penstock.plan(model=model, gpus=32, seq_len=8192, hardware="h100")
            self.assertEqual(ask(folder).best.table["step_s"], ask("mixtral-8x7b").best.table["step_s"])
            before = os.getcwd()
            try:
                os.chdir(os.path.dirname(folder))  # a folder's bare name is one too
                one = penstock.schedule("1f1b", p=2, m=4).simulate(penstock.Hardware("h100").costs(os.path.basename(folder), 4096))
            finally:
                os.chdir(before)
            self.assertGreater(one.makespan, 0)

    def test_the_pareto_front_ascends_in_memory_and_descends_in_time(self):
        memory = [candidate.peak_bytes for candidate in self.plan.pareto]
        seconds = [candidate.closed_form_s for candidate in self.plan.pareto]
        self.assertEqual(memory, sorted(memory))
        self.assertEqual(seconds, sorted(seconds, reverse=True))
        self.assertGreater(len(memory), 2)

    def test_the_memory_table_has_a_row_for_each_device_and_adds_up(self):
        memory = self.plan.best[0].memory
        self.assertEqual(len(memory), self.plan.best[0].pp)
        for row in memory.rows():
            self.assertLessEqual(row["total"], sum(row.values()) - row["total"] - row["host"] - row["device"])
            self.assertGreater(row["weights"], 0)

    def test_one_configuration_is_explained(self):
        options = {"layout.pp": 4, "layout.tp": 8, "layout.schedule": "1f1b", "layout.policy": "full"}
        ours = penstock.plan(**QUESTION, options=options, explain=True)
        theirs = program.answer("plan", *WORDS, "--explain", *(f"--{key}={value}" for key, value in options.items()))
        self.assertEqual([candidate.values for candidate in ours.best], theirs["best"])

    def test_what_cannot_be_says_so_in_the_programs_words(self):
        with self.assertRaises(penstock.NoAnswer) as caught:
            penstock.plan(model="llama-70b-gqa", gpus=1, seq_len=8192, hardware="h100")
        self.assertEqual(str(caught.exception), program.refusal(
            "plan", "--model", "llama-70b-gqa", "--gpus", 1, "--seq-len", 8192, "--hardware", "h100", code=1))
        for wrong, (at, word) in [(dict(model="lama-7b"), (1, "lama-7b")), (dict(hardware="h8"), (9, "h8"))]:
            words = [*WORDS[:at], word, *WORDS[at + 1:]]
            with self.assertRaises(penstock.InputError) as caught:
                penstock.plan(**{**QUESTION, **wrong})
            self.assertEqual(str(caught.exception).split(";")[0], program.refusal("plan", *words).split(";")[0])
        with self.assertRaisesRegex(penstock.InputError, "cluster.gpus = 8.5 is not an integer"):
            penstock.plan(**{**QUESTION, "gpus": 8.5})

    def test_costs_by_a_machine_are_those_of_a_run_file(self):
        text = "\n".join(["[model]", "layers = 32", "hidden = 4096", "ffn = 11008", "heads = 32", "vocab = 32004", "[data]",
                          'text = "none"', "seq_len = 16384", "[train]", "batch = 8", "[parallel]", "pp = 4",
                          'layers = "even"', "[schedule]", 'name = "slimpipe"', "slices = 8"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.toml")
            with open(path, "w") as file:
                file.write(text)
            for policy in ("none", "full"):  # whose slices keep their keys and values all the same
                theirs = program.answer("simulate", path, "--hardware", "h100", "--memory.policy", policy)
                costs = penstock.Hardware("h100").costs("llama-7b", 16384, policy=policy)
                ours = penstock.schedule("slimpipe", p=4, m=8, n=8).simulate(costs)
                busy = [device["busy_s"] for device in ours.devices]
                self.assertEqual(busy, [device["busy_s"] for device in theirs["devices"]], policy)
                self.assertEqual(ours.makespan, theirs["makespan_s"], policy)
                self.assertGreater(busy[3], busy[1], "the last device has the output layer")

    def test_a_report_has_what_was_put_in(self):
        simulation = penstock.schedule("slimpipe", p=2, m=2, n=4).simulate(samples=True, forward=1.0, backward=2.0,
                                                                          record=[100, 100])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            penstock.Report(simulation, self.plan, title="My <report>").save(path)
            with open(path) as file:
                page = file.read()
        self.assertIn("My &lt;report&gt;", page)
        self.assertIn(self.plan.pareto[0].layout, page)
        self.assertIn("slimpipe", page)
        with self.assertRaisesRegex(penstock.InputError, "neither a Simulation nor a Plan"):
            penstock.Report(7)
