# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one's own, with two nodes on this host (root; munge, slurmctld, slurmd, slurm-client)."""
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from proc import environment_of, words_in
from runs import wait_until

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
PATIENCE = 400  # seconds for anything
NODES = ("n1", "n2")
CPUS = pathlib.Path("/sys/fs/cgroup/cpuset")  # where Slurm can confine jobs to theirs
CONFINES = os.access(CPUS / "tasks", os.W_OK)

CONFIGURATION = """ClusterName=penstock
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=5
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin={plugin}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SlurmdTimeout=10
SchedulerParameters=bf_interval=2,sched_interval=5
KillWait=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def all_processes():
    return [number for number in map(int, filter(str.isdigit, os.listdir("/proc"))) if number != os.getpid()]


def files_of(process):
    """That it has open."""
    files = []
    for link in glob.glob(f"/proc/{process}/fd/*"):
        try:
            files.append(os.readlink(link))
        except OSError:
            pass
    return files


def processes(*parts):
    """Those whose command has the parts."""
    commands = {process: b" ".join(words_in(process, "cmdline")).decode(errors="replace") for process in all_processes()}
    return [process for process, command in commands.items() if all(part in command for part in parts)]


def processes_of(job):
    """Those that have its number in their environment, and the daemons of its steps."""
    number = f"SLURM_JOB_ID={job}".encode()
    return [process for process in all_processes() if number in environment_of(process)] + processes(f"slurmstepd: [{job}.")


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass


def forget_cpus(node):
    """What jobs on the node had of them, when the last process of those has ended."""
    until = time.monotonic() + 5
    while (CPUS / f"slurm_{node}").exists() and time.monotonic() < until:
        for folder, _, _ in os.walk(CPUS / f"slurm_{node}", topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                time.sleep(0.1)


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
        plugin = "task/cgroup" if CONFINES else "task/none"
        self.configuration.write_text(CONFIGURATION.format(folder=folder, munge=self.socket, ports=free_ports(3), plugin=plugin))
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\nConstrainCores=yes\nConstrainRAMSpace=no\n")
        os.environ["SLURM_CONF"] = str(self.configuration)

    def start(self):
        subprocess.run(self.munged, check=True)
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.wait_for_nodes()

    def wait_for_nodes(self):
        wait_until("both nodes are idle", lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2", PATIENCE)

    def start_controller(self):
        subprocess.run(["slurmctld", "-f", self.configuration], check=True)

    def stop_controller(self):
        controller = int((self.folder / "slurmctld.pid").read_text())
        os.kill(controller, signal.SIGTERM)
        wait_until("slurmctld has ended", lambda: not any(words_in(controller, "cmdline")), PATIENCE)

    def start_node(self, node):
        forget_cpus(node)
        subprocess.run(["slurmd", "-N", node, "-f", self.configuration], check=True)

    def lose_node(self, node):
        """As a host that loses power: its daemon, those of the jobs' steps and then their processes end at once, without a word."""
        log, name = str(self.folder / f"slurmd-{node}.log"), f"SLURMD_NODENAME={node}".encode()
        daemons = [process for process in all_processes() if log in files_of(process)]
        for process in daemons + [process for process in all_processes() if name in environment_of(process)]:
            kill(process)
        forget_cpus(node)

    def ask(self, *command):
        return subprocess.run(command, capture_output=True, text=True).stdout

    def submit(self, name, *words):
        """The number of the job, whose log has that name."""
        command = ["sbatch", "--parsable", f"--output={self.folder}/{name}.log", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def state(self, job):
        fields = dict(field.split("=", 1) for field in self.ask("scontrol", "show", "job", job).split() if "=" in field)
        return fields.get("JobState", ""), int(fields.get("Restarts", "0"))

    def told(self, job):
        """What Slurm says of the job and of the nodes, and the end of the controller's log."""
        log = (self.folder / "slurmctld.log").read_text().splitlines()[-30:]
        return self.ask("scontrol", "show", "job", job) + self.ask("sinfo", "-N", "-l") + "\n".join(log)

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
            kill(process)
        for node in NODES:
            forget_cpus(node)
