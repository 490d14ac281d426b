# SPDX-License-Identifier: Apache-2.0
"""One attempt of a run under way: its start, its faults, and what must be true of it when it has ended."""
import glob
import re
import shutil
import signal
import time

import checks
import copies
import draw
import families
from checks import HANG, LOST, OTHER, require
from hosts import apart, keepalive
from processes import Processes

SLACK = 10  # s beyond train.timeout, within which a run that cannot go on must have ended
AFTERWARDS = 10  # s, until nothing of an attempt is running
LOOK = 0.003  # s
START = 240  # s, for a step on a busy machine
FAKE_TIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
# When mpirun finds that a host is lost: s of silence, s between probes, probes. Two links down for seconds, soon after each other, may meet
# all probes of 9 s: no silence in between is long enough for one. Those of a lost link come before the abort of a rank that has waited too
# long: while words to the host are under way the kernel makes no probes, and mpirun would wait for a quarter of an hour.
NOTICES, NOTICES_SOON = (2, 2, 8), (1, 1, 4)
ENDED_BY = {3, 128 + signal.SIGKILL}  # exit codes of a run that a fault has ended: told by itself, or by a signal
OF_RANKS_AT_WORK = (draw.STOPPED_LONG, draw.LINK, draw.LINK_LONG)  # while they start, others may notice
LOST_HOST = 205  # mpirun's exit code where it has noticed that itself


class Trial:
    def __init__(self, number, attempt, run, place, tally):
        self.attempt, self.run, self.place, self.tally = attempt, run, place, tally
        self.directory = place.disk / "run"
        self.before = checks.checkpoints_of(self.directory)
        self.done_before = self.goal = len(checks.lines_of(self.directory))  # goal: steps that must be done before the next fault
        self.clock = place.folder / "clock"
        self.processes = Processes(self.command(), place.folder, f"attempt-{number}", self.environment())
        tally.started(attempt)

    def command(self):
        attempt = self.attempt
        words = ["train", str(self.place.folder / "run.toml"), "--output.dir", str(self.directory), "--train.timeout", str(attempt.timeout)]
        words += ["--train.checkpoint_every", str(self.run.every), "--train.keep_checkpoints", str(self.run.kept)]
        words += families.mesh_words(self.run.family, attempt.mesh) + families.schedule_words(attempt.schedule) + list(attempt.settings)
        words += self.folder_words()
        words += ["--resume"] if (self.directory / "run.toml").exists() else []
        program, ranks = str(self.place.program), attempt.mesh.ranks()
        under = [program, "supervise", "--"] if attempt.supervised else []
        if attempt.transport == draw.THREADS:
            return [*under, program, *words, *(["--ranks", str(ranks)] if ranks > 1 else [])]
        if attempt.transport == draw.MPIRUN:
            return [*under, "mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), program, *words]
        loses_link = attempt.last is not None and attempt.last.kind == draw.LINK_LONG
        options = keepalive(*(NOTICES_SOON if loses_link else NOTICES))
        return self.place.hosts.mpirun([program, *words], ranks, more=self.mounts(), under=under, options=options)

    def folder_words(self):
        """What is not in the run directory: copies, and offloaded records where only rank 0's host has that."""
        words = ["--train.buddy_dir", str(self.place.memory)] if self.attempt.copies_every() else []
        away = self.attempt.gathers() and self.attempt.setting("--memory.offload_to") == "disk"
        return words + (["--memory.offload_dir", str(self.place.records)] if away else [])

    def mounts(self):
        """For the hosts' agent: what is in each host's memory, or on its disk, is no other's."""
        mounts = [apart(self.place.memory), apart(self.place.records)]
        mounts += [apart(self.directory, host_with_it=self.place.hosts.names[0])] if self.attempt.gathers() else []
        return "; ".join(mounts)

    def environment(self):
        """The clock can jump where that was drawn: libfaketime reads the file again each time."""
        if all(fault.kind != draw.CLOCK for fault in self.attempt.outlived):
            return {}
        self.clock.write_text("+0\n")
        return {"LD_PRELOAD": FAKE_TIME, "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "NO_FAKE_STAT": "1"}

    # The moment of a fault.

    def steps(self):
        return len(checks.lines_of(self.directory))

    def wait_until(self, true, seconds, what="next step"):
        """Whether that came true before the attempt ended; a defect when neither happens."""
        until = time.monotonic() + seconds
        while not true():
            if self.processes.ended():
                return False
            require(time.monotonic() < until, HANG, f"waits {seconds} s for its {what}:\n{self.processes.said()}")
            time.sleep(LOOK)
        return not self.processes.ended()

    def comes_to(self, fault):
        """Waits for the moment of the fault; False when the attempt has ended before."""
        if fault.moment == "start":
            until = time.monotonic() + fault.seconds
            return self.wait_until(lambda: time.monotonic() > until, START)
        self.goal = min(max(self.goal, self.steps()) + fault.further, families.STEPS - 1)
        if fault.kind in OF_RANKS_AT_WORK and self.goal <= self.done_before:
            return False  # all steps were done before
        reached = self.wait_until(lambda: self.steps() >= self.goal, START + self.attempt.timeout)
        if fault.moment == "checkpoint" and reached:
            until = time.monotonic() + 0.5
            reached = self.wait_until(lambda: checks.is_being_written(self.directory) or time.monotonic() > until, START)
        return reached

    # Faults.

    def victim(self, fault):
        """The process that the fault hits: a rank of mpirun, or the program; its rank too, if it has one."""
        if self.attempt.transport != draw.THREADS:
            rank = fault.victim % self.attempt.mesh.ranks()
            return self.processes.ranks().get(rank), rank
        return next(iter(self.of_the_run()), None), None

    def outlive(self, fault):
        """A fault after which the run must go on as if nothing had been; whether it is still going on."""
        if not self.comes_to(fault):
            return False
        began = time.monotonic()
        if fault.kind == draw.CLOCK:
            self.clock.write_text(f"{fault.seconds:+d}\n")
        elif fault.kind == draw.LINK:
            name = self.place.hosts.names[fault.victim % 2]
            self.place.hosts.link(name, "down")
            time.sleep(fault.seconds)
            self.place.hosts.link(name, "up")
        else:
            process, _ = self.victim(fault)
            if process is None or not self.processes.send(process, signal.SIGSTOP):
                return False
            time.sleep(fault.seconds)
            self.processes.send(process, signal.SIGCONT)
        self.tally.struck(fault.kind)
        done = self.steps()
        # A rank that waits too long ends the run; else it goes on, however slow the machine is.
        goes_on = self.wait_until(lambda: self.steps() > done, self.attempt.timeout + START)
        self.tally.went_on(fault.kind, time.monotonic() - began)
        if fault.kind == draw.CLOCK:  # an event may be written after the line of its step
            goes_on = goes_on and self.wait_until(lambda: self.has_jumped(fault.seconds), SLACK, "clock")
        return goes_on

    def has_jumped(self, seconds):
        """The run's own times of day, in its newest event file, tell that."""
        times = checks.wall_times(self.directory)
        return bool(times) and max(times) - min(times) > abs(seconds) / 2

    def strike(self, fault):
        """A fault that ends the attempt; False when it came too late."""
        if not self.comes_to(fault):
            return False
        self.strike_began = time.monotonic()
        if not getattr(self, {draw.DISK: "fill_disk", draw.LINK_LONG: "lose_link"}.get(fault.kind, "send_signals"))(fault):
            return False
        self.tally.struck(fault.kind)
        return True

    def send_signals(self, fault):
        number = signal.SIGSTOP if fault.kind == draw.STOPPED_LONG else signal.SIGKILL
        if fault.kind == draw.KILL_LAUNCHER:
            processes = self.processes.named("mpirun")[:1]
        elif fault.kind == draw.KILL_ALL and self.attempt.transport != draw.THREADS:
            processes = list(self.processes.ranks().values())
        else:
            processes = [self.victim(fault)[0]]
        under_way = self.of_the_run() if self.attempt.supervised else []
        sent = [self.processes.send(process, number) for process in processes if process is not None]
        if not any(sent):
            return False
        if self.attempt.supervised:
            self.expect_ended(under_way, self.attempt.timeout + SLACK)
        else:
            self.wait_for_end(self.attempt.timeout + SLACK)
        return True

    def of_the_run(self):
        """Its processes, without the one that supervises them."""
        if self.attempt.transport == draw.THREADS:
            supervisor = self.processes.first.pid if self.attempt.supervised else None
            return [process for process in self.processes.named("penstock") if process != supervisor]
        return [*self.processes.named("mpirun"), *self.processes.ranks().values()]

    def expect_ended(self, struck, seconds):
        """All of those processes, for nothing of the run is left when it is started anew."""
        left = self.processes.left(seconds, struck)
        require(not left, HANG, f"{left} have not ended {seconds} s after the fault:\n{self.processes.said()}")
        self.tally.ended(self.attempt.last.kind, time.monotonic() - self.strike_began)

    def fill_disk(self, fault):
        ballast = self.place.disk / "ballast"

        def fill():
            with open(ballast, "ab", buffering=0) as file:
                try:
                    while file.write(bytes(1 << 16)):
                        pass
                except OSError:
                    return self.processes.ended()

        try:
            self.wait_for_end(self.attempt.timeout + SLACK, fill)
        finally:
            ballast.unlink()
        return True

    def lose_link(self, fault):
        """For good, and in half of the cases with what the host has in memory: as if the host were lost."""
        victim = fault.victim % 2
        name = self.place.hosts.names[victim]
        self.place.hosts.link(name, "down")
        try:
            self.wait_for_end(self.attempt.timeout + SLACK)
            until = time.monotonic() + AFTERWARDS
            while (left := self.processes.named("penstock")) and time.monotonic() < until:
                time.sleep(LOOK)
            require(not left, HANG, f"ranks still running behind a lost link: {left}\n{self.processes.said()}")
            self.processes.end()  # Open MPI's daemon there: its last words to mpirun hold it up for a quarter of an hour
        finally:
            self.place.hosts.link(name, "up")
        if fault.seconds > 1.5:
            shutil.rmtree(copies.folders_of(self.attempt, self.place)[victim], ignore_errors=True)
        return True

    def wait_for_end(self, seconds, each=lambda: None):
        until = time.monotonic() + seconds
        while not self.processes.ended():
            require(time.monotonic() < until, HANG, f"has not ended {seconds} s after the fault:\n{self.processes.said()}")
            each()
            time.sleep(LOOK)

    # Its end.

    def expect_nothing_left(self):
        left = self.processes.left(AFTERWARDS)
        require(not left, HANG, f"still running: {left}\n{self.processes.said()}")

    def starts(self):
        """The step after which each of its starts went on, and from what."""
        found = re.findall(r"^resumes +after step (\d+), from (memory|.*checkpoint)", self.processes.printed(), re.MULTILINE)
        return [(int(step), "memory" if source == "memory" else "a checkpoint") for step, source in found]

    def come_to_end(self):
        """Without another fault; step by step, however slow the machine is."""
        done = -1
        while not self.processes.ended():
            done = max(done, self.steps())
            self.wait_until(lambda: self.steps() > done, self.attempt.timeout + START)

    def carry_out(self):
        """Its faults one after another; the exit code."""
        try:
            alive = all(self.outlive(fault) for fault in self.attempt.outlived)
            last = self.attempt.last
            struck = alive and last is not None and self.strike(last)
            if not struck or self.attempt.supervised:
                self.come_to_end()
            self.expect_nothing_left()
            for _, source in self.starts():
                self.tally.resumed(source)
            if struck and not self.attempt.supervised:
                self.tally.ended(last.kind, time.monotonic() - self.strike_began)
            self.expect_ending(last if struck else None)
            return self.processes.exit_code()
        finally:
            self.processes.end()

    def expect_ending(self, struck):
        code, said = self.processes.exit_code(), self.processes.said()
        if struck is None or self.attempt.supervised:
            return require(code == 0, OTHER, f"ends with {code} though nothing ended it:\n{said}")
        if code == 0:  # the fault came when all was done
            return None
        require(code in ENDED_BY or (code == LOST_HOST and struck.kind == draw.LINK_LONG), OTHER, f"ends with {code}:\n{said}")
        named = self.name_of(struck)
        require(named is None or re.search(named, said), OTHER, f"no line says \"{named}\":\n{said}")
        return None

    def name_of(self, struck):
        """What a line on stderr must say of the fault."""
        threads, rank = self.attempt.transport == draw.THREADS, struck.victim % self.attempt.mesh.ranks()
        if struck.kind == draw.KILL_RANK and not threads:
            return f"rank {rank}\\b"
        if struck.kind == draw.STOPPED_LONG:
            silent = f"{self.called(rank)} does not answer: its process is stopped"
            return f"{silent}|the trail leads to {self.called(rank)}, whose answer" if self.hides_ranks() else silent
        return {draw.DISK: "No space left on device", draw.LINK_LONG: "is rank|lost communication with a remote daemon"}.get(struck.kind)

    def called(self, rank):
        """As others call it, with its place and host; where ranks elsewhere are not known, they may name one that waits for it."""
        return f"rank {'[0-9]+' if self.hides_ranks() else rank} " + r"\(([tcdp0-9 ]+, )?host [^()]+\)"

    def hides_ranks(self):
        """Hosts that do not see the same directory do not know of ranks elsewhere."""
        return self.attempt.gathers() and self.attempt.transport == draw.HOSTS

    def expect_files(self, undisturbed, damaged, damaged_still):
        """Of a run that is to go on. The checkpoint of step `damaged` was so before, which the attempt may have noticed."""
        checks.expect_steps(self.directory, undisturbed)
        now = checks.checkpoints_of(self.directory)
        before = [step for step in self.before if step != damaged]
        require(not before or (now and now[-1] >= before[-1]), LOST, f"checkpoints were {before}, are {now}")
        for step in now:
            if step != damaged_still:
                checks.expect_checkpoint(self.directory, step, undisturbed)
        if self.hides_ranks():
            checks.expect_no_files(self.directory.with_name(f"run-{self.place.hosts.names[1]}"))
