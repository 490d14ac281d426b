#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of examples/slurm/train.sbatch under a real Slurm, with two nodes on this host, come to the bits of a run that nothing disturbed.

Usage: run_jobs.py PATH/TO/penstock

One job is signalled shortly before its time is up: it leaves a checkpoint, goes back into the queue and resumes. One loses a node in
the middle of a step and goes on with the other. One is cancelled, and leaves nothing running. Exit 0: so it is; 1: not; 77: skipped.
"""
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from runs import bits_of, skip, steps_of, wait_until, write_corpus  # noqa: E402

SBATCH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm" / "train.sbatch"
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
PATIENCE = 400  # seconds for anything
LENGTH = 45  # seconds of the undisturbed run: the time limit's signal comes within the first 20

CONFIGURATION = """ClusterName=penstock
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=2
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SlurmdTimeout=10
KillWait=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
RUN = """[model]
layers = 4
hidden = 64
ffn = 96
heads = 4
[data]
text = "{folder}/corpus.txt"
seq_len = 256
validation_fraction = 0
[parallel]
dp = "auto"
[numerics]
replicas = 2
[train]
steps = {steps}
batch = 4
threads = 1
lr_schedule = "constant"
checkpoint_every = 10
[output]
dir = "{folder}/{name}"
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def processes(part):
    """Numbers of those whose command has the part."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            command = pathlib.Path(path).read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if part in command and int(path.split("/")[2]) != os.getpid():
            found.append(int(path.split("/")[2]))
    return found


class Slurm:
    """munged, slurmctld and a slurmd for each of the nodes n1 and n2."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "state").mkdir()
        munge = folder / "munge"
        munge.mkdir()
        key = munge / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.socket = munge / "socket"
        for path in (munge, key):
            shutil.chown(path, "munge", "munge")
        munge.chmod(0o755)
        folder.chmod(0o755)
        self.munged = ["runuser", "-u", "munge", "--", "munged", f"--socket={self.socket}", f"--key-file={key}", f"--pid-file={munge}/pid",
                       f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(folder=folder, munge=self.socket, ports=free_ports(3)))
        os.environ["SLURM_CONF"] = str(self.configuration)

    def start(self):
        subprocess.run(self.munged, check=True)
        subprocess.run(["slurmctld", "-f", self.configuration], check=True)
        for node in ("n1", "n2"):
            self.start_node(node)
        self.wait_for_nodes()

    def wait_for_nodes(self):
        wait_until("both nodes are idle", lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2", PATIENCE)

    def start_node(self, node):
        subprocess.run(["slurmd", "-N", node, "-f", self.configuration], check=True)

    def lose_node(self, node):
        """As a host that loses power: its daemon, the steps of jobs on it and their processes end at once."""
        daemon = int((self.folder / f"slurmd-{node}.pid").read_text())
        os.kill(daemon, signal.SIGKILL)
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                if f"SLURMD_NODENAME={node}\0".encode() in pathlib.Path(path).read_bytes():
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
            except OSError:
                pass

    def ask(self, *command):
        return subprocess.run(command, capture_output=True, text=True).stdout

    def submit(self, name, *options, steps):
        self.wait_for_nodes()
        run_file = self.folder / f"{name}.toml"
        run_file.write_text(RUN.format(folder=self.folder, name=name, steps=steps))
        command = ["sbatch", "--parsable", f"--output={self.folder}/{name}.log", *options, str(SBATCH), str(run_file)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def state(self, job):
        fields = dict(field.split("=", 1) for field in self.ask("scontrol", "show", "job", job).split() if "=" in field)
        return fields.get("JobState", ""), int(fields.get("Restarts", "0"))

    def end(self):
        subprocess.run(["scancel", "-u", "root"], capture_output=True)
        time.sleep(1)
        for file in self.folder.glob("*.pid"):
            try:
                os.kill(int(file.read_text()), signal.SIGTERM)
            except (OSError, ValueError):
                pass
        subprocess.run([*self.munged, "--stop"], capture_output=True)
        time.sleep(1)
        for process in processes(str(self.folder)):
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass


def train_here(program, folder, name, steps):
    run_file = folder / f"{name}.toml"
    run_file.write_text(RUN.format(folder=folder, name=name, steps=steps))
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", program, "train", str(run_file)]
    subprocess.run(command, check=True, capture_output=True)
    return steps_of(folder / name)


def log_of(slurm, name):
    file = slurm.folder / f"{name}.log"
    return file.read_text() if file.exists() else ""


def wait_for_end(slurm, name, job):
    wait_until(f"job {name} has ended", lambda: slurm.state(job)[0] in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), PATIENCE)
    assert slurm.state(job)[0] == "COMPLETED", (slurm.state(job), log_of(slurm, name))


def expect_same(slurm, name, whole):
    assert bits_of(slurm.folder / name) == bits_of(slurm.folder / whole), f"{name} has other bits than {whole}\n{log_of(slurm, name)}"


def resumes_after_its_time_is_up(slurm, steps):
    job = slurm.submit("limited", "--nodes=2", "--time=1", "--signal=B:USR1@50", steps=steps)
    wait_until("the job is put back", lambda: slurm.state(job)[1] > 0, PATIENCE)
    done = steps_of(slurm.folder / "limited")
    assert 0 < len(done) < steps, f"signalled after {len(done)} of {steps} steps"
    subprocess.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"], capture_output=True)
    wait_for_end(slurm, "limited", job)
    log = log_of(slurm, "limited")
    assert f"stopped   after step {len(done)} as asked" in log and log.count("start on n1:1,n2:1") == 2, log
    assert f"resumes   after step {len(done)}" in log, log
    expect_same(slurm, "limited", "whole")


def has_checkpoint(folder):
    """A whole one: they are written with what training leaves of the cores."""
    return any(not path.suffix for path in (folder / "checkpoints").glob("step-*"))


def goes_on_without_a_lost_node(slurm, steps):
    job = slurm.submit("lost", "--nodes=2", "--time=20", steps=steps)
    ready = lambda: len(steps_of(slurm.folder / "lost")) >= 15 and has_checkpoint(slurm.folder / "lost")
    wait_until("it has done 15 steps and written a checkpoint", ready, PATIENCE)
    slurm.lose_node("n2")
    wait_for_end(slurm, "lost", job)
    log = log_of(slurm, "lost")
    assert "start on n1:1,n2:1\n" in log and "start on n1:1\n" in log and "resumes   after step" in log, log
    assert slurm.state(job)[1] == 0, "the job goes on, and is not begun anew"
    expect_same(slurm, "lost", "whole")
    slurm.start_node("n2")


def leaves_nothing_when_cancelled(slurm):
    job = slurm.submit("cancelled", "--nodes=2", "--time=20", steps=1000000)
    wait_until("it has done 5 steps", lambda: len(steps_of(slurm.folder / "cancelled")) >= 5, PATIENCE)
    assert processes("cancelled.toml")
    slurm.ask("scancel", job)
    wait_until("nothing of it is running", lambda: not processes("cancelled.toml"), 30)


def main():
    program = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        skip("a Slurm of one's own needs root; enable it with: sudo ./dev test slurm")
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        skip(f"{', '.join(missing)} missing; enable it with: apt-get install -y --no-install-recommends {' '.join(PACKAGES)}")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PENSTOCK=program,
                      PENSTOCK_MPIRUN="--bind-to none --oversubscribe")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-slurm-"))
    write_corpus(folder)
    slurm = Slurm(folder)
    try:
        try:
            slurm.start()
        except (OSError, subprocess.CalledProcessError, AssertionError) as failure:
            skip(f"Slurm's daemons do not start here ({failure}); no command enables it, another machine does")
        times = sorted(step["step_s"] for step in train_here(program, folder, "first", 12)[2:])
        steps = max(40, min(20000, int(LENGTH / times[len(times) // 2])))
        train_here(program, folder, "whole", steps)
        resumes_after_its_time_is_up(slurm, steps)
        goes_on_without_a_lost_node(slurm, steps)
        leaves_nothing_when_cancelled(slurm)
    finally:
        slurm.end()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"three jobs of {steps} steps: requeued, a node lost, cancelled")


if __name__ == "__main__":
    main()
