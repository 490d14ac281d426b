#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs over four hosts, which are network namespaces of this one, joined by a bridge.

Usage: run_over_hosts.py PATH/TO/penstock

Two pipelines of two devices, a rank a host, leave the bits of ranks on one host. A link that is down for five seconds costs nothing;
one that stays down ends the run, and what does not come through it is named. A host that does not see the run directory, and one
with another build of the program, are refused before the first step. Exit 0: so it is; 1: not; 77: skipped.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PREFIX = f"p{os.getpid() % 100000}"  # of names that all of this machine shares
HOSTS = [f"{PREFIX}h{number}" for number in range(1, 5)]
BRIDGE = f"{PREFIX}bridge"
NETWORK = "10.77.0.0/24"
PATIENCE = 120  # seconds for anything

# Open MPI calls it instead of ssh: HOST COMMAND...
AGENT = """#!/bin/sh
host=$1; shift
exec ip netns exec "$host" unshare --uts --mount sh -c "hostname $host; mount --bind {folder}/hosts /etc/hosts; {more}; $*"
"""
RUN = """[model]
layers = 4
hidden = 64
ffn = 96
heads = 4
[data]
text = "{folder}/corpus.txt"
seq_len = 128
validation_fraction = 0
[parallel]
pp = 2
dp = 2
[schedule]
slices = 4
[train]
steps = {steps}
batch = 4
threads = 1
timeout = {timeout}
lr_schedule = "constant"
checkpoint_every = 20
[output]
dir = "{folder}/{name}"
"""


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    def __init__(self, folder):
        self.folder = folder
        self.addresses = {name: f"10.77.0.{number + 1}" for number, name in enumerate(HOSTS)}

    def start(self):
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("link", "set", BRIDGE, "up")
        for name, address in self.addresses.items():
            ip("netns", "add", name)
            ip("link", "add", f"{name}in", "type", "veth", "peer", "name", f"{name}out")
            ip("link", "set", f"{name}in", "netns", name)
            ip("link", "set", f"{name}out", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", f"{name}in")
            ip("-n", name, "link", "set", f"{name}in", "up")
            ip("-n", name, "link", "set", "lo", "up")
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")

    def end(self):
        for name in HOSTS:
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
            subprocess.run(["kill", "-9", *found], capture_output=True) if found else None
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            subprocess.run(["ip", "link", "del", f"{name}out"], capture_output=True)
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)

    def link(self, name, state):
        ip("link", "set", f"{name}out", state)

    def command(self, program, name, more, words):
        agent = self.folder / f"{name}-agent"
        agent.write_text(AGENT.format(folder=self.folder, more=more))
        agent.chmod(0o755)
        mpirun = ["mpirun", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", NETWORK, "--mca",
                  "oob_tcp_if_include", NETWORK, "--bind-to", "none"]
        ranks = ["--host", ",".join(f"{host}:1" for host in HOSTS), "-np", str(len(HOSTS)), str(program), *words]
        return [str(agent), HOSTS[0], " ".join(f"'{word}'" if " " in word else word for word in mpirun + ranks)]

    def start_run(self, program, name, steps, timeout=30, more="true"):
        run_file = self.folder / f"{name}.toml"
        run_file.write_text(RUN.format(folder=self.folder, name=name, steps=steps, timeout=timeout))
        self.log = open(self.folder / f"{name}.log", "w")
        return subprocess.Popen(self.command(program, name, more, ["train", str(run_file)]), stdout=self.log, stderr=subprocess.STDOUT)

    def run(self, *arguments, **settings):
        return self.start_run(*arguments, **settings).wait(timeout=PATIENCE)

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def steps(self, name):
        file = self.folder / name / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def bits(self, name):
        numbers = [[step[key] for key in ("step", "loss", "grad_norm")] for step in self.steps(name)]
        return numbers, (self.folder / name / "weights.safetensors").read_bytes()

    def wait_for_steps(self, name, count):
        until = time.monotonic() + PATIENCE
        while len(self.steps(name)) < count:
            assert time.monotonic() < until, f"{name} does no {count} steps: {self.said(name)}"
            time.sleep(0.02)


def on_one_host(program, folder, name, steps):
    run_file = folder / f"{name}.toml"
    run_file.write_text(RUN.format(folder=folder, name=name, steps=steps, timeout=30))
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", program, "train", str(run_file)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


def leaves_the_same_bits(hosts, program, steps):
    on_one_host(program, hosts.folder, "one", steps)
    assert hosts.run(program, "four", steps) == 0, hosts.said("four")
    assert hosts.bits("four") == hosts.bits("one"), "other bits over hosts than on one"


def outlives_a_short_loss_of_a_link(hosts, program, steps):
    run = hosts.start_run(program, "short", steps)
    hosts.wait_for_steps("short", 5)
    hosts.link(HOSTS[3], "down")
    time.sleep(5)
    before = len(hosts.steps("short"))
    assert before < steps, "the run was over before its link came back"
    hosts.link(HOSTS[3], "up")
    assert run.wait(timeout=PATIENCE) == 0, hosts.said("short")
    assert hosts.bits("short") == hosts.bits("one"), "other bits after a link was down"


def names_what_a_lost_link_holds_up(hosts, program):
    run = hosts.start_run(program, "long", 1000000, timeout=4)
    hosts.wait_for_steps("long", 5)
    hosts.link(HOSTS[3], "down")
    until = time.monotonic() + PATIENCE
    while "is rank" not in hosts.said("long") and time.monotonic() < until:
        time.sleep(0.1)
    waited = time.monotonic()
    said = hosts.said("long")
    hosts.link(HOSTS[3], "up")
    code = run.wait(timeout=PATIENCE)
    assert "was sent and has not arrived" in said and HOSTS[3] in said, said
    assert code == 3, (code, hosts.said("long"))
    assert time.monotonic() - waited < 60


def refuses_a_directory_that_a_host_does_not_see(hosts, program):
    folder = hosts.folder / "apart"
    folder.mkdir()
    more = f"[ $host = {HOSTS[2]} ] && mount -t tmpfs none {folder} || true"
    code = hosts.run(program, "apart", 10, more=more)
    said = hosts.said("apart")
    assert code == 2 and f"is another directory for rank 2 on host {HOSTS[2]} than for rank 0" in said, said
    assert not (folder / "metrics.jsonl").exists() and not (folder / "token").exists()


def refuses_another_build(hosts, program):
    other = hosts.folder / "penstock"
    shutil.copy(program, other)
    with open(other, "ab") as file:
        file.write(b"\0")
    more = f"[ $host = {HOSTS[1]} ] && mount --bind {other} {program} || true"
    code = hosts.run(program, "mixed", 10, more=more)
    assert code == 2 and f"rank 1 on host {HOSTS[1]} runs another build of the program" in hosts.said("mixed"), hosts.said("mixed")
    assert not (hosts.folder / "mixed").exists()


def main():
    program = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        skip("network namespaces need root; enable it with: sudo ./dev test hosts")
    if shutil.which("ip") is None:
        skip("ip is missing; enable it with: apt-get install -y --no-install-recommends iproute2")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-hosts-"))
    (folder / "corpus.txt").write_text("".join(f"line {i * i} of a text\n" for i in range(4000)))
    hosts = Hosts(folder)
    try:
        try:
            hosts.start()
        except subprocess.CalledProcessError as failure:
            skip(f"network namespaces are not allowed here ({failure.stderr.strip()}); no command enables it, another machine does")
        steps = 200
        leaves_the_same_bits(hosts, program, steps)
        outlives_a_short_loss_of_a_link(hosts, program, steps)
        names_what_a_lost_link_holds_up(hosts, program)
        refuses_a_directory_that_a_host_does_not_see(hosts, program)
        refuses_another_build(hosts, program)
    finally:
        hosts.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("four hosts: the same bits, a link lost for 5 s and for good, directories apart, builds mixed")


if __name__ == "__main__":
    main()
