# SPDX-License-Identifier: Apache-2.0
import math
import os
import tempfile
import unittest

import numpy
import penstock
import penstock.torch
import program

SLIMPIPE = dict(name="slimpipe", p=4, m=2, n=8)


class BadInput(unittest.TestCase):
    def refused(self, text, call, error=penstock.InputError):
        with self.assertRaises(error) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def test_texts_are_the_programs(self):
        for name, p, m, n in [("slimpip", 4, 2, 8), ("1f1b", 4, 2, 8), ("1f1b", 10**6, 10**6, 1), ("slimpipe", 4, 2, 40000)]:
            with self.subTest(name):
                said = program.refusal("show", "--schedule", name, "-p", p, "-m", m, "-n", n)
                with self.assertRaises(penstock.InputError) as caught:
                    penstock.schedule(name, p=p, m=m, n=n)
                self.assertEqual(str(caught.exception), said)

    def test_wrong_sizes_name_the_argument(self):
        self.refused("p = 4.5 is not an integer", lambda: penstock.schedule("1f1b", p=4.5, m=2))
        self.refused("m = '2' is not an integer", lambda: penstock.schedule("1f1b", p=4, m="2"))
        self.refused("n = None is not an integer", lambda: penstock.schedule("1f1b", p=4, m=2, n=None))
        self.refused("p = 4294967296 must be a whole number", lambda: penstock.schedule("1f1b", p=2**32, m=2))
        for latency in (math.nan, math.inf, -1.0):
            self.refused(f"latency {latency!r}: expected a finite number of forwards, 0 or more",
                         lambda: penstock.schedule("slimpipe", p=4, m=2, n=8, v=2, latency=latency))
        self.refused("latency = 'x' is not a number", lambda: penstock.schedule("1f1b", p=4, m=2, latency="x"))
        self.refused("m is missing", lambda: penstock.schedule("1f1b", p=4))
        self.refused("n lists 2 micro-batches; m = 3", lambda: penstock.schedule("slimpipe", p=2, m=3, n=[4, 4]))
        self.refused("chunks (v) must be at least 1, got 0", lambda: penstock.schedule("interleaved", p=4, m=8, v=0))
        self.refused("(p) must be at least 1, got 0", lambda: penstock.schedule("1f1b", p=0, m=8))
        self.refused("(m) must be at most 1048576, got 1048577", lambda: penstock.schedule("1f1b", p=1, m=2**20 + 1))

    def test_every_whole_number_is_taken_and_refused_alike(self):
        schedule, machine = penstock.schedule(**SLIMPIPE), penstock.Hardware("h100")
        simulation = schedule.simulate(forward=[1] * 4, backward=2, record=1, samples=True)
        exchanged = dict(exchange="paired", attention=0.5)
        for name, call in [("p", lambda p: penstock.schedule("1f1b", p=p, m=4)), ("m", lambda m: penstock.schedule("1f1b", p=2, m=m)),
                           ("n", lambda n: penstock.schedule("slimpipe", p=2, m=2, n=n)),
                           ("v", lambda v: penstock.schedule("interleaved", p=2, m=4, v=v)),
                           ("group", lambda group: penstock.schedule("slimpipe", p=2, m=2, n=4, v=2, group=group)),
                           ("device", schedule.columns), ("device", simulation.timeline), ("device", simulation.memory),
                           ("device", lambda device: penstock.torch.stages_of(schedule, device)),
                           ("limit", schedule.check), ("columns", schedule.grid), ("width", simulation.text),
                           ("layers", lambda layers: schedule.simulate(layers=layers, **exchanged)),
                           ("exchange_limit", lambda limit: schedule.simulate(exchange_limit=limit, **exchanged)),
                           ("exchange_limit", lambda limit: schedule.simulate(exchange_limit=limit)),
                           ("seq_len", lambda tokens: machine.costs("llama-7b", tokens)),
                           ("micro_batch", lambda count: machine.costs("llama-7b", 4096, micro_batch=count)),
                           ("tensor", lambda ranks: machine.costs("llama-7b", 4096, tensor=ranks)),
                           ("context", lambda ranks: machine.costs("llama-7b", 4096, context=ranks)),
                           ("cluster.gpus", lambda gpus: penstock.plan(model="llama-7b", gpus=gpus, seq_len=4096, hardware="h100"))]:
            for wrong in (2**64, 10**5000, -2**40, True, numpy.True_, 1.5, math.nan, "2", {}, numpy.array(1.0)):
                with self.subTest(name, wrong=type(wrong)):
                    self.refused(f"{name} = ", lambda: call(wrong))
            for right in (numpy.int64(2), numpy.uint8(2), numpy.array(2)):
                with self.subTest(name, right=type(right)):
                    call(right)
        self.refused("p = [1, 2] is not an integer", lambda: penstock.schedule("1f1b", p=numpy.array([1, 2]), m=2))
        self.refused("gpus = 1.5 is not an integer", lambda: penstock.explain(megatron="--bf16", gpus=1.5))

    def test_whole_numbers_below_the_least_are_refused(self):
        schedule, simulation = penstock.schedule(**SLIMPIPE), penstock.schedule(**SLIMPIPE).simulate()
        exchanged = dict(exchange="paired", attention=0.5)
        self.refused("exchange_limit = -1 must be a whole number of 0 or more", lambda: schedule.simulate(exchange_limit=-1, **exchanged))
        self.refused("exchange_limit = -1 must be a whole number of 0 or more", lambda: schedule.simulate(exchange_limit=-1))
        self.refused("exchange_limit = 1099511627776 must be a whole number up to 2147483647",
                     lambda: schedule.simulate(exchange_limit=2**40))
        self.refused("exchange_limit = 1.5 is not an integer", lambda: schedule.simulate(exchange_limit=1.5))
        self.refused("layers = 0 must be a whole number of 1 or more", lambda: schedule.simulate(layers=0, **exchanged))
        self.refused("layers = 1099511627776 must be", lambda: schedule.simulate(layers=2**40, **exchanged))
        self.refused("limit = -1 must be a whole number of 1 or more", lambda: schedule.check(-1))
        self.refused("columns = -1 must be a whole number of 0 or more", lambda: schedule.grid(-1))
        self.refused("columns = 1099511627776 must be", lambda: schedule.grid(2**40))
        self.refused("width = 0 must be a whole number of 1 or more", lambda: simulation.text(0))
        self.refused("width = 10001 must be a whole number up to 10000", lambda: simulation.text(10_001))
        self.refused("width = 2147483647 must be a whole number up to 10000", lambda: simulation.text(2**31 - 1))
        self.assertIn("\n", simulation.text(10_000))
        self.refused("device = 4 must be a whole number up to 3", lambda: simulation.timeline(4))
        self.refused("device = -1 must be a whole number of 0 or more", lambda: schedule.columns(-1))
        self.assertEqual(schedule.check(2**40), [])

    def test_every_number_is_refused_alike(self):
        schedule = penstock.schedule(**SLIMPIPE)
        calls = [("latency", lambda value: penstock.schedule("slimpipe", p=4, m=2, n=8, v=2, latency=value)),
                 ("memory_limit", lambda value: penstock.schedule("greedy", p=2, m=4, memory_limit=value)),
                 ("transfer", lambda value: penstock.schedule("greedy", p=2, m=4, costs={"transfer": value}))]
        for name in ("forward", "input", "transfer", "copy", "visit", "attention", "offload"):
            calls.append((name, lambda value, name=name: schedule.simulate(**{name: value})))
        for name in ("backward", "transfer", "bandwidth", "record", "weight_record", "kv_gradient", "message", "step"):
            calls.append((name, lambda value, name=name: schedule.simulate(**{**dict(forward=[1] * 4, backward=2, message=1), name: value})))
        for name, call in calls:
            for wrong in (10**400, 10**5000, True, numpy.True_, "1", numpy.array("x"), 1j, numpy.complex128(1j),
                          dict.fromkeys(range(4), 1), {1, 2, 3, 4}):
                with self.subTest(name, wrong=type(wrong)):
                    self.refused(f"{name} = ", lambda: call(wrong))
        self.refused("000 is too large", lambda: schedule.simulate(forward=10**400))
        self.refused("forward[1][7] = -1000", lambda: schedule.simulate(forward=[1, [1] * 7 + [-10**400], 1, 1], backward=1))
        self.refused("attention = [0.5, 0.5] is not a number", lambda: schedule.simulate(attention=numpy.array([0.5, 0.5]), exchange="paired"))
        self.assertEqual(schedule.simulate(forward=numpy.array(2)).makespan, schedule.simulate(forward=2).makespan)

    def test_flags_are_true_or_false(self):
        schedule = penstock.schedule(**SLIMPIPE)
        question = dict(model="llama-7b", gpus=8, seq_len=4096, hardware="h100")
        for name, call in [("samples", lambda flag: schedule.simulate(samples=flag)),
                           ("vocabulary_parallel", lambda flag: schedule.simulate(vocabulary_parallel=flag)),
                           ("explain", lambda flag: penstock.plan(**question, explain=flag))]:
            for wrong in (1, 0, None, "yes", numpy.array([True, False])):
                with self.subTest(name, wrong=repr(wrong)):
                    self.refused(f"{name} = ", lambda: call(wrong))
        self.refused("samples = 1 is neither True nor False", lambda: schedule.simulate(samples=1))
        sampled = schedule.simulate(samples=numpy.True_, forward=[1] * 4, backward=2, record=1)
        self.assertGreater(len(sampled.memory(0)), 0)

    def test_texts_are_text_that_can_be_written(self):
        schedule = penstock.schedule(**SLIMPIPE)
        simulation = schedule.simulate()
        plan = penstock.plan(model="llama-7b", gpus=8, seq_len=4096, hardware="h100")
        machine = penstock.Hardware("h100")
        for name, call in [("name", lambda name: penstock.schedule(name, p=2, m=2)), ("name", lambda name: penstock.Schedule([["0F0"]], name)),
                           ("name", lambda name: penstock.Schedule.from_columns([0], "F", [0], [0], name=name)),
                           ("name", lambda name: penstock.Report().add(simulation, name)), ("name", lambda name: penstock.Report().add(plan, name)),
                           ("name", lambda name: schedule.simulate(penstock.Hardware(name).costs("llama-7b", 4096))),
                           ("title", lambda title: penstock.Report(title=title)), ("directory", plan.best[0].run_file),
                           ("changes[1]", lambda word: schedule.simulate(changes=["kind:W=0.5", word])),
                           ("notes[0]", lambda word: penstock.Report().add(simulation, notes=[word])),
                           ("model", lambda model: machine.costs(model, 4096)), ("policy", lambda word: machine.costs("llama-7b", 4096, policy=word)),
                           ("megatron", lambda words: penstock.explain(megatron=words, gpus=8)),
                           ("hardware", lambda name: penstock.explain(megatron="--bf16", gpus=8, hardware=name)),
                           ("memory_limit", lambda size: penstock.explain(megatron="--bf16", gpus=8, memory_limit=size)),
                           ("a key of options", lambda key: penstock.plan(options={key: 4}))]:
            for wrong in (7, True, 10**5000, "\ud800", ("x", "y")):
                with self.subTest(name, wrong=type(wrong)):
                    self.refused(f"{name} = ", lambda: call(wrong))
        for key, wrong in [("cluster.hardware", dict(hardware="\ud800")), ("search.pp", dict(options={"search.pp": [4, "\ud800"]})),
                           ("search.pp", dict(options={"search.pp": 10**5000}))]:
            self.refused(f"{key} = ", lambda: penstock.plan(model="llama-7b", gpus=8, seq_len=4096, **wrong))
        self.refused("source = ", lambda: penstock.Schedule.from_csv("0F0,\ud800"))
        self.refused("exchange = ", lambda: schedule.simulate(exchange="\ud800"))
        self.refused("give megatron, the arguments, or torchtitan", lambda: penstock.explain(megatron="", gpus=8))

    def test_lists_are_lists(self):
        schedule = penstock.schedule(**SLIMPIPE)
        simulation = schedule.simulate()
        plan = penstock.plan(model="llama-7b", gpus=8, seq_len=4096, hardware="h100")
        self.refused("changes[0] = 3 is not text", lambda: schedule.simulate(changes=[3]))
        for wrong in (7, None, "kind:W=0.5", b"W", {"kind:W=0.5": 1}, numpy.array(3)):
            with self.subTest(wrong=repr(wrong)):
                self.refused("is not a list of texts", lambda: schedule.simulate(changes=wrong))
                self.refused("is not a list of texts", lambda: penstock.Report().add(simulation, notes=wrong))
                self.refused("is not a list of texts", lambda: penstock.Report().add(plan, notes=wrong))
        self.refused("notes are shown with simulations; leave them out with a plan", lambda: penstock.Report().add(plan, notes=["lost"]))
        self.assertEqual(schedule.simulate(changes=numpy.array(["kind:B=2"])).makespan, schedule.simulate(changes=["kind:B=2"]).makespan)
        self.refused("n = {4, 5} is not an integer", lambda: penstock.schedule("slimpipe", p=2, m=2, n={4, 5}))
        self.refused("rows {0: ['0F0']} is not a list of lists", lambda: penstock.Schedule({0: ["0F0"]}))
        self.refused("rows array(3) is not a list of lists", lambda: penstock.Schedule(numpy.array(3)))
        for column in ("device", "kind", "stage", "micro_batch", "slice"):
            columns = dict(device=[0, 0], kind="FB", stage=[0, 0], micro_batch=[0, 0], slice=[0, 0])
            self.refused(f"{column} is not an array: ",
                         lambda: penstock.Schedule.from_columns(**{**columns, column: ["F", ["B"]] if column == "kind" else [0, [1]]}))
        self.refused("schedule 7 is not a penstock.Schedule", lambda: penstock.torch.stages_of(7, 0))
        self.refused("stages 7 is not a list", lambda: penstock.torch.load(penstock.schedule("1f1b", p=2, m=2), 7))

    def test_paths_are_paths(self):
        schedule = penstock.schedule(**SLIMPIPE)
        simulation, report = schedule.simulate(), penstock.Report()
        for name, call in [("path", schedule.to_csv), ("path", simulation.save_trace), ("path", report.save), ("directory", penstock.measured),
                           ("torchtitan", lambda path: penstock.explain(torchtitan=path, gpus=8)), ("file", penstock.plan),
                           ("source", penstock.Schedule.from_csv), ("costs", schedule.simulate)]:
            for wrong in (3.5, ["x"], "a\0b", "\ud800"):
                with self.subTest(name, wrong=ascii(wrong)):
                    self.refused(name, lambda: call(wrong))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, os.fsdecode(b"caf\xe9.csv"))  # a name that is not UTF-8
            text = schedule.to_csv(path)
            self.assertEqual(penstock.Schedule.from_csv(path).to_csv(), text)

    def test_a_path_that_names_nothing_is_refused(self):
        schedule = penstock.schedule(**SLIMPIPE)
        for name, call in [("path", schedule.to_csv), ("path", schedule.simulate().save_trace), ("path", penstock.Report().save),
                           ("source", penstock.Schedule.from_csv), ("torchtitan", lambda path: penstock.explain(torchtitan=path, gpus=8)),
                           ("costs", schedule.simulate), ("file", lambda path: penstock.plan(path, model="llama-7b", gpus=8, seq_len=4096))]:
            self.refused(f"{name} = '' names no file", lambda: call(""))

    def test_times_of_numpy_are_no_numbers(self):
        schedule = penstock.schedule(**SLIMPIPE)
        for unit in ("ns", "ms", "s", "generic"):  # NumPy makes integers of nanoseconds
            one, four = numpy.timedelta64(2, unit), numpy.full(4, 2, f"m8[{unit}]")
            self.refused("forward = np.timedelta64(2", lambda: schedule.simulate(forward=one))
            self.refused("forward[0] = np.timedelta64(2", lambda: schedule.simulate(forward=four, backward=1))
            self.refused("p = np.timedelta64(2", lambda: penstock.schedule("1f1b", p=one, m=2))
            self.refused("the function returned np.timedelta64(2", lambda: schedule.simulate(lambda *action: one))
            self.refused("device is an array of shape (4,) and type timedelta64", lambda: penstock.Schedule.from_columns(four, "FFFF", *[[0] * 4] * 2))
        self.refused("forward[0] = np.datetime64(", lambda: schedule.simulate(forward=numpy.zeros(4, "M8[ns]"), backward=1))

    def test_options_are_texts_numbers_flags_and_lists_of_them(self):
        question = dict(model="llama-7b", gpus=8, seq_len=4096, hardware="h100")
        for key, wrong in (("workload.text", None), ("search.pp", {4, 8}), ("search.pp", {4: 8}), ("search.pp", b"4"), ("search.pp", [4, None])):
            with self.subTest(key, wrong=wrong):
                self.refused(f"{key} = {wrong[1] if isinstance(wrong, list) else wrong!r} is neither text, a number, True or False, nor a list",
                             lambda: penstock.plan(**question, options={key: wrong}))
        best = lambda value: {candidate.pp for candidate in penstock.plan(**question, options={"search.pp": value}).best}
        self.assertEqual(best(range(2, 5, 2)), best([2, 4]))

    def test_a_machine_has_a_name(self):
        self.refused("name = None is neither a name nor a path", lambda: penstock.Hardware(None))
        self.refused("model = None is neither a name nor a path", lambda: penstock.Hardware("h100").costs(None, 4096))

    def test_a_table_has_columns_of_one_length(self):
        self.refused("columns of several lengths: a 2, b 1", lambda: penstock.Table({"a": [1, 2], "b": [1]}))

    def test_a_million_devices_are_refused(self):
        self.refused("(p) must be at most 65536, got 1000000", lambda: penstock.schedule("gpipe", p=10**6, m=1))
        self.refused("1000000 devices; at most 65536", lambda: penstock.Schedule([["0F0"]] * 10**6))
        self.refused("device 1000000 must be from 0 to 65535", lambda: penstock.Schedule.from_columns(
            device=[10**6], kind="F", stage=[0], micro_batch=[0]))

    def test_wrong_actions_name_their_place(self):
        self.refused("device 1, position 2: \"1X0\"", lambda: penstock.Schedule([["0F0"], ["1F0", None, "1X0"]]))
        self.refused("device 0, position 1: 3.5 is not an action", lambda: penstock.Schedule([["0F0", 3.5]]))
        self.refused("position 0: stage 0.5 is not an integer", lambda: penstock.Schedule([[("F", 0.5, 0)]]))
        self.refused("position 0: kind 'FB' is unknown", lambda: penstock.Schedule([[("FB", 0, 0)]]))
        self.refused("position 0: kind 'X' is unknown; expected F, B, I or W", lambda: penstock.Schedule([[("X", 0, 0)]]))
        self.refused("position 0: kind '\\udcff' is unknown", lambda: penstock.Schedule([[("\udcff", 0, 0)]]))
        self.refused("position 0: kind 7 is unknown", lambda: penstock.Schedule([[(7, 0, 0)]]))
        self.refused("position 0: stage True is not an integer", lambda: penstock.Schedule([[("F", True, 0)]]))
        self.refused("position 0: stage <int> is too large", lambda: penstock.Schedule([[("F", 10**5000, 0)]]))
        self.refused("position 0: stage -1 must be from 0", lambda: penstock.Schedule([[("F", -1, 0)]]))
        self.refused("slice 40000 must be from 0 to 32766", lambda: penstock.Schedule([[("F", 0, 0, 40000)]]))
        self.refused("('F', 0) is not an action", lambda: penstock.Schedule([[("F", 0)]]))
        self.refused("device 0: 7 is not a list of actions", lambda: penstock.Schedule([7]))
        self.refused("'0F0' is not a list of lists", lambda: penstock.Schedule("0F0"))
        self.refused("no action", lambda: penstock.Schedule([]))
        self.refused("'\\ud800' is not an action", lambda: penstock.Schedule([["\ud800"]]))

    def test_files_that_are_no_text_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "latin1.csv")
            with open(path, "wb") as file:
                file.write(b"0F0,\xe9\n")
            self.refused(path, lambda: penstock.Schedule.from_csv(path))
            for name, text in (("program.txt", b"\xe9"), ("timeline.json", b"{}")):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(text)
            self.refused("program.txt", lambda: penstock.measured(folder))
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "metrics.jsonl"), "w").close()
            self.refused("the run has not ended", lambda: penstock.measured(folder))

    def test_a_list_may_change_while_it_is_read(self):
        class Clearing:
            def __index__(self):
                row.clear()
                return 0

        row = [("F", Clearing(), 0), "0B0"]
        self.assertEqual(penstock.Schedule([row]).rows, [["0F0", "0B0"]])
        self.assertEqual(row, [])

    def test_wrong_columns_name_the_column(self):
        good = dict(device=[0, 0], kind="FB", stage=[0, 0], micro_batch=[0, 0])
        make = lambda **other: penstock.Schedule.from_columns(**{**good, **other})
        self.assertTrue(make().is_legal)
        self.refused("stage is an array of shape (2,) and type float64", lambda: make(stage=[0.0, 1.0]))
        self.refused("device is an array of shape (1, 2)", lambda: make(device=[[0, 0]]))
        self.refused("kind has 3 rows, device 2", lambda: make(kind="FBB"))
        self.refused("kind is an array of shape (2,) and type int64", lambda: make(kind=[1, 2]))
        self.refused("row 1: kind \"Z\" is unknown", lambda: make(kind="FZ"))
        self.refused("row 1: kind", lambda: make(kind="F\u0146"))
        self.refused("row 0: stage -1", lambda: make(stage=[-1, 0]))
        self.refused("stage has 9223372036854775813; expected at most 9223372036854775807",
                     lambda: make(stage=numpy.array([0, 2**63 + 5], numpy.uint64)))
        for name, column in dict(good, slice=[0, 0]).items():
            masked = numpy.ma.masked_array(list(column), mask=[False, True])
            self.refused(f"{name} has masked values", lambda: make(**{name: masked}))
        self.assertEqual(make(stage=numpy.ma.masked_array([0, 0])), make())

    def test_wrong_costs_name_the_argument(self):
        schedule = penstock.schedule(**SLIMPIPE)
        simulate = lambda **costs: lambda: schedule.simulate(**costs)
        self.refused("forward: -1.000000 is not a time", simulate(forward=-1))
        self.refused("weight: nan is not a time", simulate(weight=math.nan))
        self.refused("forward = 'slow' is not a number", simulate(forward="slow"))
        self.refused("forward has 3 rows, expected 4 stages", simulate(forward=[1, 2, 3], backward=1))
        self.refused("forward[1] has 7 columns, expected 8", simulate(forward=[[1] * 8, [1] * 7] * 2, backward=1))
        self.refused("forward[0] has 2 columns", simulate(forward=numpy.ones((4, 2)), backward=1))
        self.refused("forward[2] = None is not a number", simulate(forward=[1, 1, None, 1], backward=1))
        for name, given in (("backward", dict(forward=[1, 1, 1, 1])), ("forward", dict(backward=[1] * 4)), ("forward", dict(record=9))):
            self.refused(f"; give {name} too, in seconds: a number, [stages] or [stages][slices]", simulate(**given))
        self.refused("no time for B of stage 0, slice 7; give backward too", simulate(forward=[1, 1, 1, 1]))
        self.refused("; give input too", lambda: penstock.schedule("zb-v", p=2, m=4).simulate(forward=[1] * 4))
        self.refused("B of stage 2, slice 0: -3.000000 is not a time", simulate(forward=1, backward=[1, 1, -3, 1]))
        self.refused("bandwidth from device 0 to 0: 0", simulate(forward=[1] * 4, backward=1, bandwidth=0, message=1))
        self.refused("bandwidth: the size of a message is missing", simulate(backward=1, bandwidth=25e9, forward=1))
        for costs in (dict(forward=1), dict(costs="none.txt"), dict(attention=0.5)):
            self.refused('exchange: "pared" is not a context exchange; expected off, paired or levelled',
                         simulate(exchange="pared", **costs))
        self.refused('"True" is not a context exchange', simulate(exchange=True))
        self.refused("record -5", simulate(forward=[1] * 4, backward=1, record=-5))
        self.refused("record 0.5: expected whole bytes", simulate(forward=[1] * 4, backward=1, record=0.5))
        self.refused("message -5", simulate(forward=[1] * 4, backward=1, message=-5))
        self.refused("message has 2 numbers; expected one, or one for each of 8 slices",
                     simulate(forward=[1] * 4, backward=1, message=[5, 5]))
        self.refused("copy applies to costs in numbers", simulate(forward=[1] * 4, backward=1, copy=1.0))
        self.refused("offload 2", simulate(offload=2))
        self.refused("copy needs offload; without it nothing is copied", simulate(copy=5))
        self.refused("copy needs offload", simulate(copy=5, costs=lambda *action: 1.0))
        self.refused("there are no records to offload", simulate(forward=[1] * 4, backward=1, offload=0.5))
        self.refused("visit: there are visits only with vocabulary_parallel", simulate(visit=5))
        self.assertEqual(schedule.simulate(copy=1, visit=0).makespan, schedule.simulate().makespan)
        self.assertGreater(schedule.simulate(copy=500, offload=1).makespan, schedule.simulate(copy=1, offload=1).makespan)
        self.refused("what-if \"device:9=1\"", simulate(changes=["device:9=1"]))
        self.refused("costs 5 is neither", simulate(costs=5))
        self.refused("are given by name, as in forward=1, backward=2", simulate(costs={"F": 1}))
        self.refused("none.txt: cannot be opened", simulate(costs="none.txt"))

    def test_wrong_functions_name_the_action(self):
        schedule = penstock.schedule(**SLIMPIPE)

        def costs(answer):
            return lambda kind, stage, micro_batch, slice: answer if (kind, stage, slice) == ("B", 2, 3) else 1.0

        where = "costs: B of stage 2, micro-batch 0, slice 3: "
        self.refused(where + "nan is not a time", lambda: schedule.simulate(costs(math.nan)))
        self.refused(where + "-0.5", lambda: schedule.simulate(costs(-0.5)))
        self.refused(where + "inf", lambda: schedule.simulate(costs(math.inf)))
        for wrong in ("x", None, True, numpy.array([1.0])):
            self.refused(f"{where}the function returned {wrong!r}; expected seconds", lambda: schedule.simulate(costs(wrong)))
        self.refused("costs is a function; leave out forward", lambda: schedule.simulate(costs(1.0), forward=2))

    def test_what_a_function_raises_goes_on_to_the_caller(self):
        def costs(kind, stage, micro_batch, slice):
            raise KeyError(f"{kind}{stage}")

        with self.assertRaisesRegex(KeyError, "F0"):
            penstock.schedule(**SLIMPIPE).simulate(costs)

    def test_what_a_number_raises_goes_on_to_the_caller(self):
        for error in (KeyError, KeyboardInterrupt):
            class Number:
                def __index__(self):
                    raise error("of the number")

                __float__ = __index__

            with self.assertRaisesRegex(error, "of the number"):
                penstock.Schedule([[("F", Number(), 0)]])
            with self.assertRaisesRegex(error, "of the number"):
                penstock.schedule(**SLIMPIPE).simulate(lambda *action: Number())
        self.refused("0.]) is not an integer", lambda: penstock.Schedule([[("F", numpy.zeros(2), 0)]]))
        self.refused("the function returned 1000", lambda: penstock.schedule(**SLIMPIPE).simulate(lambda *action: 10**400))

    def test_what_was_not_kept_says_how_to_keep_it(self):
        simulation = penstock.schedule(**SLIMPIPE).simulate()
        self.refused("no bytes over time; give Schedule.simulate() samples=True and bytes", lambda: simulation.memory(0))
        self.refused("busy: the columns are device, busy_s", lambda: simulation.table["busy"], KeyError)

    def test_wrong_questions_name_the_argument(self):
        self.refused("give a plan file; or model, gpus and seq_len", penstock.plan)
        self.refused("options ['a'] is not a dict", lambda: penstock.plan(model="llama-7b", options=["a"]))
        self.refused("model = 7 is neither a name nor a path", lambda: penstock.plan(model=7))
        self.refused("workload.global_batch = -4 must be from 1 to 1000000000",
                     lambda: penstock.plan(model="llama-7b", gpus=8, seq_len=4096, batch=-4))
        for name, key in (("gpus", "cluster.gpus"), ("seq_len", "workload.seq_len"), ("model", "model.name")):
            self.refused(f"{name} and {key} of options are both given", lambda: penstock.plan(
                model="llama-7b", gpus=8, seq_len=4096, options={key: 16}))
        self.refused("did you mean search.", lambda: penstock.plan(model="llama-7b", options={"search.p": 4}))
        self.refused("name = 7 is neither", lambda: penstock.Hardware(7))
        self.refused("tensor = 3 does not divide model.heads = 32", lambda: penstock.schedule(**SLIMPIPE).simulate(
            costs=penstock.Hardware("h100").costs("llama-7b", 4096, tensor=3)))
        self.refused("micro_batch = 2147483647 sequences of seq_len = 2147483647 tokens are more than 4294967296 tokens",
                     lambda: penstock.schedule("1f1b", p=2, m=4).simulate(
                         costs=penstock.Hardware("h100").costs("llama-7b", 2**31 - 1, micro_batch=2**31 - 1)))
        self.refused("context = 8192 is more than the 4096 tokens of seq_len", lambda: penstock.schedule("1f1b", p=2, m=4).simulate(
            costs=penstock.Hardware("h100").costs("llama-7b", 4096, context=8192)))

    def test_an_illegal_schedule_is_not_simulated(self):
        self.refused("own: not a legal schedule", penstock.Schedule([["0B0", "0F0"]]).simulate, penstock.NoAnswer)
        for row in (["0REDUCE_GRAD"], ["100000F0.20000", "0B0"]):  # of no micro-batch, and of very many
            illegal = penstock.Schedule([row])
            self.refused("own: not a legal schedule", lambda: illegal.simulate(forward=[1], backward=2), penstock.NoAnswer)

    def test_costs_of_greedy_alone(self):
        self.refused("are for greedy", lambda: penstock.schedule("1f1b", p=2, m=4, costs={"forward": 1}))
        self.refused("forward has 3 numbers; expected one, or one for each of 4 stages",
                     lambda: penstock.schedule("greedy", p=2, m=4, costs={"forward": [1, 2, 3]}))
        self.refused("costs has no 'backward'", lambda: penstock.schedule("greedy", p=2, m=4, costs={"backward": 1}))
        self.refused("memory_limit nan: a device holds", lambda: penstock.schedule("greedy", p=2, m=4, memory_limit=math.nan))
        self.refused("memory_limit 0.5", lambda: penstock.schedule("greedy", p=2, m=4, memory_limit=0.5))
        self.refused("stages (p·v) must be at most 1048576, got 45000000",
                     lambda: penstock.schedule("greedy", p=50_000, m=1, v=900))
