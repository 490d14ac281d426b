# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import tempfile
import unittest

import numpy
import penstock
import program

REQUESTS = 200
SEED = 20251


def random_request(dice):
    """Sizes and costs of a simulation that may or may not be possible."""
    entry = dice.choice(penstock.catalogue())
    p = dice.randint(1, 6)
    request = {"name": entry["name"], "p": p, "m": dice.choice([p, 2 * p, dice.randint(1, 12)]),
               "n": dice.choice([p, 2 * p, dice.randint(1, 9)]) if entry["slices"] else 1}
    if entry["any_chunks"] and dice.random() < 0.7:
        request["v"] = dice.randint(1, 3)
    times = {name: round(dice.uniform(0.1, 3), dice.randint(0, 9))
             for name in ("forward", "backward", "input", "weight") if dice.random() < 0.6}
    if dice.random() < 0.5:
        times["transfer"] = round(dice.uniform(0, 0.5), 6)
    lowering = {}
    if entry["name"] == "slimpipe" and dice.random() < 0.4:
        lowering["vocabulary_parallel"] = True
    if dice.random() < 0.3:
        lowering["offload"] = round(dice.random(), 3)
    if dice.random() < 0.2:
        lowering["changes"] = [f"device:{dice.randrange(p)}={dice.uniform(0.5, 2):.3f}"]
    return entry, request, times, lowering


def words_of(request, times, lowering):
    words = ["simulate", "--schedule", request["name"], "-p", request["p"], "-m", request["m"], "-n", request["n"]]
    words += ["-v", request["v"]] if "v" in request else []
    words += [word for name, value in times.items() for word in (f"--{name}", repr(value))]
    words += ["--vocabulary-parallel"] if lowering.get("vocabulary_parallel") else []
    words += ["--offload", lowering["offload"]] if "offload" in lowering else []
    words += [word for change in lowering.get("changes", ()) for word in ("--change", change)]
    return words


def simulate(entry, request, times, lowering):
    request = dict(request)
    if entry["made_for_costs"]:
        request["costs"] = {name: value for name, value in times.items() if name != "backward"}
    if times.get("transfer", 0) > 0 and times.get("forward", 1) > 0:
        request["latency"] = times["transfer"] / times.get("forward", 1)
    return penstock.schedule(**request).simulate(**times, **lowering)


class Simulations(unittest.TestCase):
    def test_200_random_requests_have_the_programs_answer_to_the_last_digit(self):
        dice = random.Random(SEED)
        answered = refused = 0
        for _ in range(REQUESTS):
            request = random_request(dice)
            words = words_of(*request[1:])
            with self.subTest(" ".join(map(str, words))):
                try:
                    ours = simulate(*request)
                except (penstock.InputError, penstock.NoAnswer) as error:
                    code = 2 if isinstance(error, penstock.InputError) else 1
                    self.assertEqual(str(error), program.refusal(*words, code=code))
                    refused += 1
                    continue
                self.assertEqual(ours.to_json().strip(), program.run(*words, "--json").strip())
                answered += 1
        self.assertGreater(answered, REQUESTS / 2)
        self.assertGreater(refused, 0)

    def test_properties_are_those_of_the_json(self):
        ours = penstock.schedule("slimpipe", p=3, m=2, n=6).simulate(transfer=0.1, offload=0.5)
        self.assertTrue(ours.to_json().endswith("}"))
        told = json.loads(ours.to_json())
        self.assertEqual(ours.makespan, told["makespan_s"])
        self.assertEqual(ours.bubble_fraction, told["bubble_fraction"])
        self.assertEqual(ours.span_bubble_fraction, told["span_bubble_fraction"])
        for device, row in zip(told["devices"], ours.devices):
            self.assertEqual(row["busy_s"], device["busy_s"])
            self.assertEqual(row["dependency_s"], device["idle_by_cause_s"]["dependency"])
            self.assertEqual(row["peak_bytes_by_category"], device["peak_bytes_by_category"])

    def test_a_table_of_costs_gives_the_programs_answer(self):
        forward = [[0.5, 0.75], [1.25, 1.5], [0.125, 2.0]]
        backward = [1.0, 2.5, 3.0]
        ours = penstock.schedule("slimpipe", p=3, m=3, n=2).simulate(
            forward=numpy.array(forward), backward=backward, transfer=1e-3, bandwidth=2e6, record=1000, message=[1e6, 2e6])
        lines = [f"F {s} {i} {forward[s][i]}" for s in range(3) for i in range(2)]
        lines += [f"B {s} * {backward[s]}" for s in range(3)] + ["link * * 1e-3 2e6", "record * * 1000 0 0", "message 0 1000000", "message 1 2000000"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "costs.txt")
            with open(path, "w") as file:
                file.write("\n".join(lines))
            words = ["simulate", "--schedule", "slimpipe", "-p", 3, "-m", 3, "-n", 2, "--costs", path, "--json"]
            theirs = program.run(*words)
            of_file = penstock.schedule("slimpipe", p=3, m=3, n=2).simulate(path)
        self.assertEqual(ours.to_json().strip(), theirs.strip())
        self.assertEqual(of_file.to_json().strip(), theirs.strip())

    def test_the_records_of_a_table_are_what_leaves(self):
        schedule = penstock.schedule("1f1b", p=8, m=16)
        for share, records in ((1, 4), (0.5, 6), (0, 8)):  # four stay (memory.md)
            ours = schedule.simulate(forward=1, backward=2, record=[1024000] * 8, offload=share)
            self.assertEqual(ours.devices[0]["peak_bytes"], 1024000 * records, share)

    def test_a_function_of_the_kind_is_as_numbers(self):
        schedule = penstock.schedule("zb-v", p=4, m=8)
        seconds = {"F": 1.5, "I": 1.25, "W": 0.75}
        ours = schedule.simulate(lambda kind, stage, micro_batch, slice: seconds[kind], transfer=0.1)
        self.assertEqual(ours.to_json(), schedule.simulate(forward=1.5, input=1.25, weight=0.75, transfer=0.1).to_json())

    def test_a_function_keeps_the_share_of_attention(self):
        schedule = penstock.schedule("slimpipe", p=4, m=2, n=8)
        mean, others = {"F": 1.0, "B": 2.0}, dict(exchange="paired", attention=0.5, layers=4)
        of_slice = lambda kind, stage, micro_batch, slice: mean[kind] * (0.5 + 0.5 * (2 * slice + 1) / 8)
        self.assertAlmostEqual(schedule.simulate(of_slice, **others).makespan,
                               schedule.simulate(forward=1, backward=2, **others).makespan, places=9)

    def test_exchange_wants_a_share_of_attention(self):
        schedule = penstock.schedule("slimpipe", p=2, m=2, n=4)
        for words, arguments in (("there is no attention to move", dict(exchange="paired")),
                                 ("there is no attention to move", dict(exchange="levelled", attention=0, layers=2)),
                                 ("there is no attention to move", dict(exchange="paired", forward=[1, 1], backward=[2, 2])),
                                 ("these costs do not say", dict(costs="costs.csv", exchange="paired")),
                                 ("count only with exchange", dict(attention=0.5, layers=2))):
            with self.assertRaisesRegex(penstock.InputError, words):
                schedule.simulate(**arguments)

    def test_a_function_sees_every_action_once(self):
        schedule = penstock.schedule("slimpipe", p=2, m=2, n=4)
        seen = []
        schedule.simulate(lambda *action: seen.append(action) or 1.0)
        self.assertEqual(len(seen), 2 * 2 * 2 * 4)
        rows = [f"{stage}{kind}{micro_batch}.{slice}" for kind, stage, micro_batch, slice in seen]
        self.assertEqual(rows, sum(schedule.rows, []))

    def test_timelines_are_views_in_the_order_of_the_ops(self):
        ours = penstock.schedule("1f1b", p=2, m=3).simulate(transfer=0.25)
        device = ours.timeline(1)
        for column in device.values():
            self.assertFalse(column.flags.owndata)
            self.assertFalse(column.flags.writeable)
        kinds = [penstock.simulation.KINDS[kind] for kind in device["kind"]]
        forwards = [i for i, kind in enumerate(kinds) if kind == "F"]
        # F2 waits for device 0, which runs B0 from 4.5 to 6.5 and its own F2 until 7.5.
        self.assertEqual(device["start"][forwards].tolist(), [1.25, 4.25, 7.75])
        self.assertEqual((device["end"] - device["start"])[forwards].tolist(), [1, 1, 1])
        self.assertEqual(max(ours.timeline(d)["end"].max() for d in range(2)), ours.makespan)

    def test_a_view_outlives_its_simulation(self):
        start = penstock.schedule("1f1b", p=2, m=200).simulate().timeline(0)["start"]
        kept = start.copy()
        [penstock.schedule("1f1b", p=2, m=200).simulate(forward=3) for _ in range(5)]
        self.assertTrue((start == kept).all())

    def test_tables_become_data_frames(self):
        ours = penstock.schedule("1f1b", p=2, m=3).simulate()
        frame = ours.timelines.to_pandas()
        self.assertEqual(frame[frame.kind == "F"].groupby("device").size().tolist(), [3, 3])
        self.assertEqual(ours.timelines.to_polars().height, len(frame))
        self.assertEqual(ours.table["busy_s"], [9.0, 9.0])
        self.assertIn("busy_s", ours.table._repr_html_())

    def test_memory_over_time_reaches_its_peak(self):
        ours = penstock.schedule("1f1b", p=4, m=8).simulate(forward=1, backward=2, record=[[100]] * 4, samples=True)
        memory = ours.memory(0)
        self.assertEqual(memory["records"].max(), 400)
        self.assertEqual(ours.devices[0]["peak_bytes"], 400)
        self.assertEqual(memory["records"][-1], 0)

    def test_costs_of_a_measured_run_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text.txt")
            with open(text, "w") as file:
                file.write("A pipeline carries water from the dam to the mill. " * 400)
            for exchange in ("off", "levelled"):
                run = os.path.join(folder, exchange)
                program.run("train", os.path.join(os.path.dirname(__file__), "tiny.toml"), "--ranks", 2,
                            f"--data.text={text}", f"--output.dir={run}", f"--schedule.exchange={exchange}")
                words = ["simulate", "--schedule", "slimpipe", "-p", 2, "-m", 4, "-n", 2, "--costs", run, "--json"]
                ours = penstock.schedule("slimpipe", p=2, m=4, n=2).simulate(penstock.measured(run))
                self.assertEqual(ours.to_json().strip(), program.run(*words).strip(), exchange)
            with self.assertRaisesRegex(penstock.InputError, "the run has 2 devices, 2 stages and 2 slices"):
                penstock.schedule("slimpipe", p=4, m=4, n=2).simulate(run)
            path = os.path.join(run, "program.txt")
            with open(path) as file:
                whole = file.read()
            with open(path, "w") as file:
                file.write(whole.replace(" to 1", "", 1))
            with self.assertRaises(penstock.InputError):
                penstock.schedule("slimpipe", p=2, m=4, n=2).simulate(run)
