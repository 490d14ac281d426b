# SPDX-License-Identifier: Apache-2.0
"""Processes of one attempt, told from all others of the machine by a word in their environment."""
import os
import signal
import subprocess
import time

from proc import environment_of, name_of, rank_of

MARK = "PENSTOCK_SOAK_ATTEMPT"


class Processes:
    """Everything that a command has started."""

    def __init__(self, command, folder, name, more):
        self.mark = f"{MARK}={folder}/{name}".encode()
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        environment = dict(os.environ) | more | {MARK: f"{folder}/{name}"}
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.first = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True)
        self.began = time.monotonic()

    def all(self):
        return [number for number in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.mark in environment_of(number)]

    def named(self, name):
        return [process for process in self.all() if name_of(process) == name]

    def ranks(self):
        """Those of the program that mpirun has started, by rank; the program itself where there is no mpirun."""
        found = {rank_of(process): process for process in self.named("penstock")}
        found.pop(None, None)
        return found

    def ended(self):
        return self.first.poll() is not None

    def exit_code(self):
        """As a shell tells it."""
        code = self.first.returncode
        return 128 - code if code < 0 else code

    def send(self, process, number):
        try:
            os.kill(process, number)
            return True
        except ProcessLookupError:
            return False

    def left(self, seconds, among=None):
        """What is still running after so long, of these processes or of all."""
        until = time.monotonic() + seconds
        while (found := [process for process in self.all() if among is None or process in among]) and time.monotonic() < until:
            time.sleep(0.02)
        return found

    def end(self):
        for _ in range(3):
            for process in self.all():
                self.send(process, signal.SIGKILL)
            time.sleep(0.05)
        self.first.poll()

    def said(self):
        return self.err.read_text(errors="replace")

    def printed(self):
        return self.out.read_text(errors="replace")
