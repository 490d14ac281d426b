# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import tempfile
import unittest

import penstock
import program

MEGATRON = ("--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --swiglu --group-query-attention "
            "--num-query-groups 8 --vocab-size 128256 --seq-length 8192 --micro-batch-size 1 --global-batch-size 128 "
            "--tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 8 --bf16")
JOB = '[model]\nflavor = "70B"\n[parallelism]\ntensor_parallel_degree = 8\n[activation_checkpoint]\nmode = "full"\n'


class Trainers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def test_todays_configuration_is_explained_as_by_the_program(self):
        ours = penstock.explain(megatron=MEGATRON, gpus=128)
        self.assertEqual(ours, program.run("explain", "--megatron", MEGATRON, "--gpus", 128))
        self.assertTrue(ours.fits)
        machine = os.path.join(os.path.dirname(__file__), "..", "..", "hardware", "h100.toml")
        self.assertEqual(penstock.explain(megatron=MEGATRON, gpus=128, hardware=pathlib.Path(machine)).fits, ours.fits)
        with open(self.path("job.toml"), "w") as file:
            file.write(JOB)
        ours = penstock.explain(torchtitan=self.path("job.toml"), gpus=64, hardware="h200", memory_limit="9GB")
        words = ["explain", "--torchtitan", self.path("job.toml"), "--gpus", 64, "--hardware", "h200", "--memory-limit", "9GB"]
        self.assertEqual(ours, program.run(*words, code=1))
        self.assertFalse(ours.fits)
        self.assertEqual(repr(ours), str(ours))

    def test_a_plans_configuration_is_what_the_program_exports(self):
        for engine in ("megatron", "torchtitan"):
            path = self.path(engine)
            program.run("plan", "--model", "llama-70b-gqa", "--gpus", 64, "--seq-len", 8192, "--hardware", "h100", "--engine",
                        engine, "--export", path)
            plan = penstock.plan(model="llama-70b-gqa", gpus=64, seq_len=8192, hardware="h100", engine=engine)
            with open(path) as file:
                self.assertEqual(plan.best[0].settings(), file.read())

    def test_wrong_questions_are_refused_in_the_programs_words(self):
        for text in (MEGATRON + " --fp16", MEGATRON + " --micro-batch-siz 1", MEGATRON + " --fp8-format hybrid"):
            with self.assertRaises(penstock.InputError) as caught:
                penstock.explain(megatron=text, gpus=128)
            self.assertEqual(str(caught.exception), program.refusal("explain", "--megatron", text, "--gpus", 128))
        refused = lambda text, **arguments: self.assertRaisesRegex(penstock.InputError, text, penstock.explain, **arguments)
        refused("one of the two", gpus=8)
        refused("one of the two", megatron=MEGATRON, torchtitan="job.toml", gpus=8)
        refused("none.toml: cannot be opened: No such file", torchtitan="none.toml", gpus=8)
        refused("gpus = 8.5 is not an integer", megatron=MEGATRON, gpus=8.5)
        refused("gpus = 0: expected 1 or more", megatron=MEGATRON, gpus=0)
        with self.assertRaisesRegex(penstock.InputError, "plan for megatron or torchtitan"):
            penstock.plan(model="llama-7b", gpus=8, seq_len=4096, hardware="h100").best[0].settings()
