# SPDX-License-Identifier: Apache-2.0
"""timeline.json of a run directory is taken and refused as by the program, in the same words."""
import copy
import json
import os
import tempfile
import unittest

import penstock
from penstock import _core
import program

SIZES = dict(name="slimpipe", p=2, m=1, n=4)
WORDS = ["simulate", "--schedule", "slimpipe", "-p", 2, "-m", 1, "-n", 4]


def lowered(exchange):
    return _core.lower(penstock.schedule(**SIZES)._core, None, 0.0, False, exchange, 1000)


def timeline_of(text):
    """Two sound steps of a program, of its text alone; the ops run one after the other."""
    devices, memory = [], []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "device":
            devices.append([])
            memory.append([])
        elif words[0].isdigit():
            start = len(devices[-1])
            devices[-1].append([start, start + 0.5, 0.25] if start % 2 else [start, start + 0.5])
            if not any(word in words[1] for word in ("SEND", "RECV")):
                memory[-1].append(list(range(10)))
    step = {"step": 3, "devices": devices, "memory": memory, "ranks": [device for device in devices for _ in range(2)]}
    if "exchange" in text:
        step["exchange"] = [[[0, 1.0, 1.25, 0, 0.25], [0, 2, 2.5, 1, 0]] for _ in devices]
    slower = copy.deepcopy(step)
    slower["step"], slower["devices"][0][-1][1] = 4, 1000
    return {"steps": [step, slower]}


class Timelines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_directory = folder.name
        self.write_program("levelled")

    def write_program(self, exchange):
        with open(os.path.join(self.run_directory, "program.txt"), "w") as file:
            file.write(lowered(exchange).to_text())
        self.sound = timeline_of(lowered(exchange).to_text())

    def write(self, text):
        with open(os.path.join(self.run_directory, "timeline.json"), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def refused_alike(self, text):
        self.write(text)
        said = program.refusal(*WORDS, "--costs", self.run_directory)
        with self.assertRaises(penstock.InputError) as caught:
            penstock.measured(self.run_directory)
        self.assertEqual(str(caught.exception), said)
        self.assertIn("timeline.json: ", said)

    def taken_alike(self, document):
        self.write(json.dumps(document))
        ours = penstock.schedule(**SIZES).simulate(penstock.measured(self.run_directory))
        self.assertEqual(ours.to_json(), program.run(*WORDS, "--costs", self.run_directory, "--json").strip())

    def test_sound_timelines_are_taken(self):
        for exchange in ("levelled", "off"):
            self.write_program(exchange)
            self.taken_alike(self.sound)
            for part in ("ranks", "memory"):
                self.taken_alike({"steps": [{key: value for key, value in step.items() if key != part} for step in self.sound["steps"]]})
        self.sound["steps"][0].update(ranks=None, exchange=7, other="ignored")
        self.taken_alike(self.sound)

    def test_what_is_no_timeline_is_refused(self):
        for text in ("", "{", "7", "[]", "{}", '{"steps": 7}', '{"steps": []}', '{"steps": [7]}', '{"steps": [{}]}', "[" * 200_000,
                     '{"steps": [], "x": NaN}', '{"steps": [], "x": 1e400}', '{"steps": [], "x": -Infinity}',
                     '{"steps": [], "x": 1%s}' % ("0" * 400), '{"steps": [{"step": 1}]}', '{"steps": [{"step": 1, "devices": {"0": []}}]}'):
            with self.subTest(text[:40]):
                self.refused_alike(text)

    def test_wrong_times_are_refused(self):
        text = json.dumps(self.sound)
        places = ("[0, 0.5", "[1, 1.5, 0.25", "[0, 1.0, 1.25, 0, 0.25", "[0, 2, 2.5, 1, 0")
        self.assertTrue(all(place in text for place in places))
        for wrong in ("1e400", "-1e400", "NaN", "Infinity", '"0"', "true", "null", "[]", "1" + "0" * 400):
            for place in places:
                for number in place[1:].split(", "):
                    with self.subTest(wrong=wrong[:9], place=place, number=number):
                        self.refused_alike(text.replace(place, place.replace(number, wrong, 1), 1))

    def test_wrong_parts_are_refused(self):
        wrong_step = [None, "3", 3.0, True, 10**30]
        wrong_entries = [None, 7, [], [0], [0, 1, 2, 3], {"0": 1}, [2, 1], [0, 1, -0.5]]
        wrong_spans = [None, [], [0, 1, 2, 0], [0, 1, 2, 0, 0, 0], [99, 1, 2, 0, 0], [-1, 1, 2, 0, 0], [0.0, 1, 2, 0, 0], [0, 2, 1, 0, 0],
                       [0, 1, 2, 0, -1], [0, 5, 6, 0, 0], [False, 1, 2, 0, 0]]
        wrong_memory = [None, [], list(range(9)), list(range(11)), [0.5] * 10, [True] * 10, ["1"] * 10]
        wrong_lists = [None, 7, [], {}, [7, 7], "ab"]
        cases = [(["step"], wrong) for wrong in wrong_step]
        cases += [(["devices", 1, 2], wrong) for wrong in wrong_entries] + [(["ranks", 3, 2], wrong) for wrong in wrong_entries[:-1]]
        cases += [(["exchange", 1, 0], wrong) for wrong in wrong_spans] + [(["memory", 1, 2], wrong) for wrong in wrong_memory]
        cases += [([part], wrong) for part in ("devices", "exchange", "ranks", "memory") for wrong in wrong_lists
                  if (part, wrong) not in (("ranks", None),)]
        cases += [([part, 1], wrong) for part in ("devices", "ranks", "memory") for wrong in wrong_lists]
        for place, wrong in cases:
            with self.subTest(place=place, wrong=wrong):
                document = copy.deepcopy(self.sound)
                part = document["steps"][1]
                for key in place[:-1]:
                    part = part[key]
                part[place[-1]] = wrong
                self.refused_alike(json.dumps(document))
        for part in ("step", "devices", "exchange"):
            document = copy.deepcopy(self.sound)
            del document["steps"][1][part]
            self.refused_alike(json.dumps(document))

    def test_bytes_that_are_no_text_are_refused(self):
        self.write(json.dumps(dict(self.sound, other="\u00e9"), ensure_ascii=False).encode("latin-1"))
        with self.assertRaisesRegex(penstock.InputError, "timeline.json: cannot be read: "):
            penstock.measured(self.run_directory)

    def test_a_program_without_devices_is_refused(self):
        with open(os.path.join(self.run_directory, "program.txt"), "w") as file:
            file.write("penstock program 1\nname none\nstages 1\nslices 1\n")
        self.write('{"steps": [{"step": 1, "devices": [], "ranks": [[]]}]}')
        with self.assertRaisesRegex(penstock.InputError, "program.txt: has no device"):
            penstock.measured(self.run_directory)

    def test_the_step_of_median_time_is_used(self):
        third = copy.deepcopy(self.sound["steps"][0])
        third["devices"][0][-1][1] = 500
        self.taken_alike({"steps": [*self.sound["steps"], third]})
