# SPDX-License-Identifier: Apache-2.0
"""What happens in a run of the soak, drawn from a seed and the run's number alone: its attempts and their faults."""
import dataclasses
import random

import families

# Faults, as the summary names them.
KILL_RANK = "kill -9 of a rank"
KILL_ALL = "kill -9 of all ranks"
KILL_LAUNCHER = "kill -9 of mpirun"
STOPPED = "SIGSTOP, for seconds"
STOPPED_30 = "SIGSTOP, for 30 s"
STOPPED_LONG = "SIGSTOP, beyond train.timeout"
DISK = "full disk"
DAMAGE = "file damaged"
LINK = "link down, for seconds"
LINK_LONG = "link down, beyond train.timeout"
CLOCK = "clock jump"
KINDS = (KILL_RANK, KILL_ALL, KILL_LAUNCHER, STOPPED, STOPPED_30, STOPPED_LONG, DISK, DAMAGE, LINK, LINK_LONG, CLOCK)
NEED_ROOT = (DISK, LINK, LINK_LONG, CLOCK)

THREADS, MPIRUN, HOSTS = "threads", "mpirun", "mpirun over hosts"
SHORT_TIMEOUT = 4  # s: where a run must find out itself that it cannot go on
PATIENT, VERY_PATIENT = 25, 50
COPIES, GATHER = "--train.buddy_every", "--output.gather"


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    further: int = 0  # steps done by then, since the fault before
    moment: str = "step"  # start: `seconds` after the start instead; checkpoint: while one is written
    seconds: float = 0  # that it lasts, or that the clock jumps
    victim: int = 0  # rank, modulo ranks; of a damaged checkpoint: file


@dataclasses.dataclass(frozen=True)
class Attempt:
    mesh: families.Mesh
    schedule: str
    settings: tuple  # words
    transport: str
    supervised: bool
    timeout: int
    damage: Fault | None  # before it starts, if two checkpoints are there
    outlived: tuple  # faults that it must survive
    last: Fault | None  # the one that it cannot

    def setting(self, key):
        """Its word, if it was drawn."""
        return dict(zip(self.settings[::2], self.settings[1::2])).get(key)

    def copies_every(self):
        """Steps between copies in hosts' memory; 0: none are made."""
        return int(self.setting(COPIES) or 0)

    def gathers(self):
        """Whether only rank 0's host has the run directory."""
        return self.setting(GATHER) is not None

    def __str__(self):
        how = f"{self.mesh}, {self.schedule}, {self.transport}{', supervised' if self.supervised else ''}, {' '.join(self.settings)}"
        return f"{how}, timeout {self.timeout} s"


@dataclasses.dataclass(frozen=True)
class Run:
    family: families.Family
    every: int  # train.checkpoint_every
    kept: int


def draw_run(seed, number):
    rng = random.Random(f"{seed} {number}")
    return Run(rng.choice(families.FAMILIES), rng.choice((1, 2, 3)), rng.choice((2, 2, 3)))


def memory_words(rng):
    words = ["--memory.policy", rng.choice(("none", "none", "balanced", "balanced+fc1", "full"))]
    offload = rng.choice(("0", "0", "0", "0.5", "1"))
    if offload != "0":
        words += ["--memory.offload", offload, "--memory.offload_to", rng.choice(("host", "disk"))]
    return words


def shard_words(rng, mesh):
    words = ["--parallel.shard", rng.choice(("off", "optimizer", "weights"))]
    if mesh.d == 4 and words[1] != "off" and rng.random() < 0.5:
        words += ["--parallel.shard_group", "2"]
    return words


def keeping_words(rng):
    """Who keeps files, and copies beside them."""
    words = [GATHER, "true"] if rng.random() < 0.2 else []
    return words + ([COPIES, str(rng.randrange(1, 4))] if rng.random() < 0.25 else [])


def draw_moment(rng):
    chance = rng.random()
    return "start" if chance < 0.25 else "checkpoint" if chance < 0.45 else "step"


def draw_last(rng, transport, ranks, able):
    """A fault that ends the attempt; none: it may come to the run's end."""
    weights = {KILL_ALL: 3, DISK: 3, None: 1}
    if transport != THREADS:  # else the ranks are one process
        weights |= {KILL_RANK: 5, KILL_LAUNCHER: 3}
        weights |= {STOPPED_LONG: 1.5} if ranks > 1 else {}  # another rank notices
    if transport == HOSTS:
        weights |= {LINK_LONG: 2}
    kinds = [kind for kind in weights if kind is None or kind in able]
    kind = rng.choices(kinds, [weights[kind] for kind in kinds])[0]
    if kind is None:
        return None
    # A stopped rank and a lost link are found by those who wait for a message, so not before the first step.
    moment = "step" if kind in (STOPPED_LONG, LINK_LONG) else draw_moment(rng)
    return Fault(kind, rng.randrange(1, 5), moment, rng.uniform(0, 3), rng.randrange(families.MOST_RANKS))


def draw_outlived(rng, transport, last, able):
    weights = {STOPPED: 3, STOPPED_30: 0.6, CLOCK: 3}
    if transport == HOSTS:
        weights |= {LINK: 9}
    kinds = [kind for kind in weights if kind in able]
    faults = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        kind = rng.choices(kinds, [weights[kind] for kind in kinds])[0]
        short = last is not None and last.kind in (STOPPED_LONG, LINK_LONG)
        if short and kind != CLOCK:
            continue
        seconds = {STOPPED: rng.uniform(0.2, 1.5), STOPPED_30: 30, LINK: rng.uniform(1, 5)}.get(kind, 0)
        if kind == CLOCK:
            seconds = rng.choice((-1, 1)) * rng.choice((60, 3600, 86400, 400 * 86400))
        faults.append(Fault(kind, rng.randrange(1, 3), "step", seconds, rng.randrange(families.MOST_RANKS)))
    return tuple(faults)


def draw_attempt(seed, number, attempt, family, able):
    """The attempt of that number, of a run of that number; `able`: the faults that can be carried out here."""
    rng = random.Random(f"{seed} {number} {attempt}")
    meshes = family.meshes()
    mesh = rng.choices(meshes, [mesh.ranks() ** -2 for mesh in meshes])[0]  # fewer ranks, more faults in an hour
    schedule = rng.choice(family.schedules(mesh))
    transports = {THREADS: 3, MPIRUN: 5, HOSTS: 4 if mesh.ranks() > 1 and LINK in able else 0}
    transport = rng.choices(list(transports), list(transports.values()))[0]
    last = draw_last(rng, transport, mesh.ranks(), able)
    outlived = draw_outlived(rng, transport, last, able)
    supervised = last is not None and last.kind not in (DISK, LINK_LONG) and last.moment != "start" and rng.random() < 0.2
    timeout = VERY_PATIENT if any(fault.kind == STOPPED_30 for fault in outlived) else PATIENT
    if last is not None and last.kind in (STOPPED_LONG, LINK_LONG):
        timeout = SHORT_TIMEOUT
    damage = None
    if rng.random() < 0.3:
        damage = Fault(DAMAGE, moment=rng.choice(("flip", "flip", "cut", "remove")), seconds=rng.random(), victim=rng.randrange(1000))
    settings = tuple(shard_words(rng, mesh) + memory_words(rng) + keeping_words(rng))
    return Attempt(mesh, schedule, settings, transport, supervised, timeout, damage, outlived, last)


def without_copies(attempt):
    pairs = zip(attempt.settings[::2], attempt.settings[1::2])
    return dataclasses.replace(attempt, settings=tuple(word for pair in pairs if pair[0] != COPIES for word in pair))


def in_peace(attempt):
    """The same without faults."""
    return dataclasses.replace(attempt, damage=None, outlived=(), last=None, supervised=False)
