#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults at random moments of random runs: none costs a checkpoint, a hang or a bit.

Usage: soak.py PATH/TO/penstock [FAULTS] [--seed N] [--only RUN] [--jobs N] [--keep FOLDER]

Runs are drawn one after another until that many faults have been carried out. Each trains one of the models of families.py, is hit,
goes on with --resume on another mesh, schedule and transport, is hit again, and so on to its end, where it must have the bits of a
run that nothing disturbed. Exit 0: so it was; 1: not, and what happened is printed with the command that repeats the run, whose
directory is kept. SIGTERM ends it after the runs under way.
"""
import argparse
import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import checks  # noqa: E402
import copies  # noqa: E402
import draw  # noqa: E402
import families  # noqa: E402
import trial  # noqa: E402
from hosts import Hosts  # noqa: E402
from summary import Tally, summary  # noqa: E402

DISK_SIZE = "24m"
MOST_ATTEMPTS = 30  # of a run, before it is left in peace
MOST_DEFECTS = 5
CLONE_NEWNS = 0x20000


def own_mounts():
    """This process and its children see mounts of their own, that end with them; why not, where that cannot be had.

    libfaketime leaves files in /dev/shm when its process is killed.
    """
    if os.geteuid() != 0:
        return "that needs root"
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return "mount namespaces are not allowed here"
    done = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode
    return "" if done == 0 and mount_tmpfs("/dev/shm", "50%") else "mounts are not allowed here"


def mount_tmpfs(path, size):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], capture_output=True).returncode == 0


class Place:
    """Where the runs are: the program's copy, references, hosts, and the directory of the run under way."""

    def __init__(self, program, folder):
        self.base, self.folder = folder, None  # of all runs, of the one under way
        self.program = folder / "penstock"
        for part in ("", "-compute"):  # a build does not change them under the runs
            shutil.copy2(f"{program}{part}", f"{self.program}{part}")
        self.text = folder / "corpus.txt"
        self.text.write_text("".join(f"line {number * number} of a text\n" for number in range(400)))
        self.missing = {}  # faults that cannot be carried out, and why
        self.mounts = own_mounts()
        if self.mounts:
            self.missing |= {kind: self.mounts for kind in draw.NEED_ROOT}
        if trial.FAKE_TIME is None:
            self.missing.setdefault(draw.CLOCK, "apt-get install -y --no-install-recommends faketime enables it")
        self.hosts = None if self.mounts else self.start_hosts()
        self.able = [kind for kind in draw.KINDS if kind not in self.missing]

    def start_hosts(self):
        hosts = Hosts(self.base, 2)
        reason = "apt-get install -y --no-install-recommends iproute2 enables it"
        try:
            if shutil.which("ip"):
                hosts.start()
                return hosts
        except subprocess.CalledProcessError as failure:
            reason = f"network namespaces are not allowed here: {failure.stderr.strip()}"
        hosts.end() if shutil.which("ip") else None
        self.missing |= {draw.LINK: reason, draw.LINK_LONG: reason}
        return None

    def begin(self, number, run):
        self.folder = self.base / f"run-{number}"
        self.disk = self.folder / "disk"
        self.memory, self.records = self.folder / "memory", self.folder / "records"  # of each host: copies, offloaded records
        for folder in (self.disk, self.memory, self.records):
            folder.mkdir(parents=True)
        if not self.mounts:
            mount_tmpfs(self.disk, DISK_SIZE)
        (self.folder / "run.toml").write_text(run.family.run_file(self.text))

    def end(self, keep_in=None):
        """Of a run."""
        if keep_in:
            shutil.copytree(self.folder, keep_in / self.folder.name, dirs_exist_ok=True)
        if not self.mounts:
            subprocess.run(["umount", "-l", self.disk], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None

    def undisturbed(self, family):
        """The directory of such a run, which has every checkpoint."""
        directory = self.base / f"undisturbed-{families.FAMILIES.index(family)}"
        if not directory.exists():
            run_file = directory.with_suffix(".toml")
            run_file.write_text(family.run_file(self.text))
            mesh = family.meshes()[0]
            words = ["train", run_file, "--output.dir", directory, "--train.checkpoint_every", "1", "--train.keep_checkpoints", "1000"]
            words += families.mesh_words(family, mesh) + (["--ranks", str(mesh.ranks())] if mesh.ranks() > 1 else [])
            words += families.schedule_words(family.schedules(mesh)[0])
            ended = subprocess.run([self.program, *words], capture_output=True, text=True)
            if ended.returncode != 0:
                raise ValueError(f"the undisturbed run failed, exit code {ended.returncode}: {ended.stderr}")
        return directory

    def close(self):
        if self.folder:
            self.end()
        if self.hosts:
            self.hosts.end()
        shutil.rmtree(self.base, ignore_errors=True)


class DrawnRun:
    """A run from its first attempt to its end."""

    def __init__(self, seed, number, place, tally):
        self.seed, self.number, self.place, self.tally = seed, number, place, tally
        self.run = draw.draw_run(seed, number)
        self.damaged = None  # step of the checkpoint that is damaged, until an attempt sets it aside
        self.copies = None  # that the attempt before has left in memory
        self.told = [f"run {number}: {self.run.family.name}, a checkpoint every {self.run.every}, {self.run.kept} kept"]

    def carry_out(self):
        self.undisturbed = self.place.undisturbed(self.run.family)
        self.place.begin(self.number, self.run)
        code, attempt = 1, 0
        while code != 0:
            attempt += 1
            code = self.attempt(attempt)
        checks.expect_end(self.place.disk / "run", self.undisturbed, families.STEPS)

    def attempt(self, number):
        drawn = draw.draw_attempt(self.seed, self.number, number, self.run.family, self.place.able)
        if self.tally.enough() or number > MOST_ATTEMPTS:
            drawn = draw.in_peace(drawn)
        self.damage(drawn.damage)
        if self.damaged is not None:  # a newer copy would hide it
            drawn = draw.without_copies(drawn)
        self.told.append(f"  attempt {number}: {drawn}\n    outlives {list(drawn.outlived)}, ends by {drawn.last}")
        under_way = trial.Trial(number, drawn, self.run, self.place, self.tally)
        before = checks.lines_of(under_way.directory)
        began = len(before)
        code = under_way.carry_out()
        self.told.append(f"    ended with {code} after {time.monotonic() - under_way.processes.began:.1f} s at step {under_way.steps()}")
        damaged = self.damaged
        self.expect_damage_found(under_way, code, began)
        under_way.expect_files(self.undisturbed, damaged, damaged_still=self.damaged)
        copies.expect_used(self.copies, under_way)
        if code == 0:
            copies.expect_removed(under_way)
        self.copies = copies.left_by(under_way, before)
        return code

    def damage(self, fault):
        """Of the newest checkpoint, if there is one before it."""
        directory = self.place.disk / "run"
        steps = checks.checkpoints_of(directory)
        if fault is None or self.damaged is not None or len(steps) < 2:
            return
        files = sorted(checks.checkpoint(directory, steps[-1]).iterdir())
        file = files[fault.victim % len(files)]
        data = bytearray(file.read_bytes())
        place = int(fault.seconds * len(data))
        self.told.append(f"  {fault.moment} at byte {place} of {file.parent.name}/{file.name}")
        self.damaged = steps[-1]
        self.tally.struck(fault.kind)
        if fault.moment == "remove":
            return file.unlink()
        if fault.moment == "cut":
            return file.write_bytes(data[:place])
        data[place] ^= 1 << fault.victim % 8
        file.write_bytes(data)

    def expect_damage_found(self, under_way, code, began):
        if self.damaged is None:
            return
        name = f"step-{self.damaged:06d}"
        checkpoints = self.place.disk / "run" / "checkpoints"
        if (checkpoints / f"{name}.damaged").exists():
            said = under_way.processes.said() + under_way.processes.printed()
            checks.require(f"{name} cannot be used" in said, checks.OTHER, f"{name} is set aside, and nothing says so:\n{said}")
            shutil.rmtree(checkpoints / f"{name}.damaged")
            self.tally.went_on(draw.DAMAGE, 0)
            self.damaged = None
        else:
            went_on = code == 0 or under_way.steps() > began
            checks.require(not went_on, checks.OTHER, f"the run goes on from {name}, which is damaged")


def carry_out(place, seed, number, tally, keep_in):
    drawn = DrawnRun(seed, number, place, tally)
    try:
        drawn.carry_out()
        tally.finished(drawn.run)
        place.end()
        keep_in.mkdir(parents=True, exist_ok=True)
        with open(keep_in / f"seed-{seed}.txt", "a") as file:
            file.write("\n".join(drawn.told) + "\n")
    except (checks.Defect, OSError, ValueError) as defect:  # the others: a file that is not there, or cannot be read
        kind = getattr(defect, "kind", checks.OTHER)
        tally.failed(kind)
        command = f"./dev soak --seed {seed} --only {number}"
        print("\n".join(drawn.told), f"\n{kind}: {defect}\nrepeat it with: {command}\nits directory: {keep_in}/run-{number}", flush=True)
        place.end(keep_in)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("faults", type=int, nargs="?", default=200, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the run of that number alone, however many faults it has")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/soak"), help="where a failed run's directory goes")
    return parser.parse_intermixed_args()


def work(given, job, struck, results):
    """Every jobs-th run, beginning with that number. Puts its results whatever fails: all workers' are waited for."""
    tally, missing = Tally(struck, given.faults if given.only is None else sys.maxsize), {}
    signal.signal(signal.SIGTERM, lambda *_: tally.ask_for_no_more())
    number, told = job if given.only is None else given.only, time.monotonic()
    try:
        with contextlib.closing(Place(given.program.resolve(), pathlib.Path(tempfile.mkdtemp(prefix="penstock-soak-")))) as place:
            missing = place.missing
            while not tally.enough() and tally.defects() < MOST_DEFECTS:
                carry_out(place, given.seed, number, tally, given.keep.absolute())
                number += given.jobs
                if given.only is not None:
                    break
                if time.monotonic() - told > 60:
                    told = time.monotonic()
                    print(tally.line(), file=sys.stderr, flush=True)
    finally:
        results.put((tally.found_out(), missing))


def main():
    given = read_arguments()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    struck, results, began = multiprocessing.Value("i", 0), multiprocessing.Queue(), time.monotonic()
    workers = [multiprocessing.Process(target=work, args=(given, job, struck, results)) for job in range(given.jobs if given.only is None else 1)]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: [worker.terminate() for worker in workers])
    found, cannot = zip(*(results.get() for _ in workers))
    missing = {fault: reason for part in cannot for fault, reason in part.items()}
    for worker in workers:
        worker.join()
    print(f"seed {given.seed}, {(time.monotonic() - began) / 60:.0f} minutes, {given.jobs} at a time\n\n{summary(found, missing)}")
    broken = any(worker.exitcode != 0 for worker in workers)  # an error of this program itself
    sys.exit(1 if broken or any(part["found"] for part in found) else 0)


if __name__ == "__main__":
    main()
