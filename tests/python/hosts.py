# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network namespaces of this one, joined by a bridge (root, and Debian's iproute2)."""
import os
import shlex
import subprocess
import time

from proc import name_of

NETWORK = "10.77.0"

# Open MPI calls it instead of ssh: HOST COMMAND...
AGENT = """#!/bin/sh
host=$1; shift
exec ip netns exec "$host" unshare --uts --mount sh -c "hostname $host; mount --bind {folder}/hosts /etc/hosts; {more}; $*"
"""


def apart(folder, host_with_it=None):
    """Words for the agent: the folder is another one on each host, or only on those that have not this name."""
    mount = f"mkdir -p {folder} {folder}-$host && mount --bind {folder}-$host {folder}"
    return f"[ $host = {host_with_it} ] || {{ {mount}; }}" if host_with_it else mount


def keepalive(time, interval, probes):
    """Words for mpirun: by then it has found that a host is lost: so many probes, after so long a silence (s)."""
    values = {"time": time, "intvl": interval, "probes": probes}
    return [word for name, value in values.items() for word in ("--mca", f"oob_tcp_keepalive_{name}", str(value))]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """So many hosts; a link of each to the bridge can be taken down."""

    def __init__(self, folder, count):
        prefix = f"p{os.getpid() % 100000}"  # of names that all of this machine shares
        self.folder = folder
        self.names = [f"{prefix}h{number}" for number in range(1, count + 1)]
        self.bridge = f"{prefix}bridge"

    def start(self):
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        lines = ["127.0.0.1 localhost"]
        for number, name in enumerate(self.names, 1):
            address = f"{NETWORK}.{number}"
            ip("netns", "add", name)
            ip("link", "add", f"{name}in", "type", "veth", "peer", "name", f"{name}out")
            ip("link", "set", f"{name}in", "netns", name)
            ip("link", "set", f"{name}out", "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", f"{name}in")
            ip("-n", name, "link", "set", f"{name}in", "up")
            ip("-n", name, "link", "set", "lo", "up")
            lines.append(f"{address} {name}")
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")

    def processes(self, name, program=""):
        """Those on the host of that name: all, or those of a program."""
        found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        return [process for process in found if not program or name_of(process) == program]

    def kill(self, name):
        """All that is running on the host."""
        found = self.processes(name)
        subprocess.run(["kill", "-9", *found], capture_output=True) if found else None

    def end(self):
        for name in self.names:
            self.kill(name)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            subprocess.run(["ip", "link", "del", f"{name}out"], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)

    def link(self, name, state):
        ip("link", "set", f"{name}out", state)
        if state == "up":
            self.wait_for(name)

    def wait_for(self, name):
        """Until another host reaches it: at first, connections are refused with "no route to host"."""
        other = next(host for host in self.names if host != name)
        nobody_listens = f"{NETWORK}.{self.names.index(name) + 1}/9"
        connect = ["ip", "netns", "exec", other, "bash", "-c", f"exec 3<>/dev/tcp/{nobody_listens}"]
        until = time.monotonic() + 10
        while "refused" not in subprocess.run(connect, capture_output=True, text=True).stderr and time.monotonic() < until:
            time.sleep(0.05)

    def mpirun(self, words, ranks, name="run", more="true", under=(), options=()):
        """The command that starts the words as so many ranks, shared out over the hosts.

        `more` is done on each host before; `under` are words in front of mpirun, `options` its own.
        """
        agent = self.folder / f"{name}-agent"
        agent.write_text(AGENT.format(folder=self.folder, more=more))
        agent.chmod(0o755)
        network = f"{NETWORK}.0/24"
        share, rest = divmod(ranks, len(self.names))
        slots = [f"{host}:{share + (number < rest)}" for number, host in enumerate(self.names) if share + (number < rest)]
        command = ["mpirun", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", network, "--mca",
                   "oob_tcp_if_include", network, "--mca", "mpi_yield_when_idle", "1", "--bind-to", "none", *options, "--host", ",".join(slots),
                   "-np", str(ranks), *words]
        return [str(agent), self.names[0], shlex.join([*under, *command])]
