# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import penstock

BETWEEN_SIGNALS_S = 0.02
MOST_CALLS = 200  # of one that ends before it is interrupted


class Signals:
    """SIGINT every few milliseconds while the block runs, to the main thread; the third that reaches one call raises
    KeyboardInterrupt. A call that looked for signals only at its end would meet one. None is left when the block ends,
    whatever ends it, and it does not matter whether whoever started this interpreter had it ignore SIGINT."""

    NEEDED = 3

    def __enter__(self):
        self.seen, self.armed = 0, False
        self.before = signal.signal(signal.SIGINT, self.handle)
        self.stop = threading.Event()
        self.sender = threading.Thread(target=self.send, args=(threading.get_ident(),))
        self.sender.start()
        return self

    def __exit__(self, *unused):
        self.armed = False
        self.stop.set()
        self.sender.join()
        signal.signal(signal.SIGINT, self.before)  # runs our handler first if a signal waits

    def send(self, receiver):
        while not self.stop.wait(BETWEEN_SIGNALS_S):
            signal.pthread_kill(receiver, signal.SIGINT)

    def handle(self, number, frame):
        self.seen += 1
        if self.armed and self.seen >= self.NEEDED:
            self.armed = False
            raise KeyboardInterrupt

    def call(self, work):
        self.seen, self.armed = 0, True
        work()
        self.armed = False


class LongCalls(unittest.TestCase):
    def interrupted(self, work):
        with Signals() as signals:
            with self.assertRaises(KeyboardInterrupt):
                for _ in range(MOST_CALLS):
                    signals.call(work)
                self.fail(f"none of {MOST_CALLS} calls was interrupted")
        simulation = penstock.schedule("1f1b", p=2, m=3).simulate()  # the next call is as if nothing had been
        self.assertEqual(simulation.makespan, 12)

    def test_a_simulation_is_interrupted(self):
        schedule = penstock.schedule("1f1b", p=64, m=60_000)
        self.interrupted(schedule.simulate)

    def test_a_list_scheduler_is_interrupted(self):
        self.interrupted(lambda: penstock.schedule("greedy", p=64, m=2048, costs={"forward": 1.37, "weight": 0.61}))

    def test_a_check_is_interrupted(self):
        schedule = penstock.schedule("1f1b", p=64, m=60_000)
        self.interrupted(schedule.check)

    def test_a_function_of_costs_is_interrupted(self):
        schedule = penstock.schedule("1f1b", p=8, m=100_000)
        self.interrupted(lambda: schedule.simulate(lambda *action: 1.0))

    def test_the_search_of_a_plan_is_interrupted(self):
        self.interrupted(lambda: penstock.plan(model="llama-70b-gqa", gpus=65536, seq_len=131072, batch=65536,
                                               hardware="h800", options={"search.simulate": 0}))

    def test_the_simulations_of_a_plan_are_interrupted(self):
        options = {"search.tp": 8, "search.cp": 1, "search.pp": [8, 16], "search.simulate": 100, "search.best": 100}
        self.interrupted(lambda: penstock.plan(model="llama-70b-gqa", gpus=512, seq_len=131072, batch=512, hardware="h800",
                                               options=options))

    def test_the_interpreter_may_end_during_a_long_call(self):
        code = ("import penstock, threading, time; schedule = penstock.schedule('slimpipe', p=4, m=8, n=16)\n"
                "def work(*costs):\n    while True: schedule.simulate(*costs)\n"
                "for costs in ((), (), (lambda *action: 1.0,), (lambda *action: 1.0,)):\n"
                "    threading.Thread(target=work, args=costs, daemon=True).start()\n"
                "time.sleep(0.3); print('ends')")
        for _ in range(10):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ends\n", ""))

    def test_a_report_may_grow_while_it_is_written(self):
        simulation = penstock.schedule("slimpipe", p=4, m=8, n=64).simulate()
        report, written = penstock.Report(simulation), threading.Event()

        def grow():
            while not written.is_set():
                report.add(simulation)

        thread = threading.Thread(target=grow)
        thread.start()
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(5):
                report.save(os.path.join(folder, "report.html"))
        written.set()
        thread.join()

    def test_other_threads_run_during_a_long_call(self):
        schedule = penstock.schedule("1f1b", p=64, m=20_000)
        turns, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                turns[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        before = turns[0]
        schedule.simulate()
        during = turns[0] - before
        stop.set()
        thread.join()
        self.assertGreater(during, 3)
