#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs over four hosts, which are network namespaces of this one, joined by a bridge.

Usage: run_over_hosts.py PATH/TO/penstock

Two pipelines of two devices, a rank a host, leave the bits of ranks on one host. A link that is down for five seconds costs nothing;
one that stays down ends the run, with a supervisor and without, and what does not come through it is named. A host that does not see
the run directory or cannot write to it, one with another build of the program, and one that is not there are refused before the first
step. Without a common file system rank 0's host keeps all files, and no rank blames another that it cannot ask. A host that is lost
costs no step where each keeps copies for another. Exit 0: so it is; 1: not; 77: skipped.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import hosts as namespaces  # noqa: E402
from hosts import apart, keepalive  # noqa: E402
from runs import bits_of, skip, steps_of, wait_until, write_corpus  # noqa: E402

PATIENCE = 120  # seconds for anything

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
dp = {dp}
[numerics]
replicas = 2
[schedule]
slices = 4
[train]
steps = {steps}
batch = 4
threads = 1
timeout = {timeout}
lr_schedule = "constant"
checkpoint_every = {checkpoints}
{train}
[output]
dir = "{directory}"
{output}
"""


def write_run_file(folder, name, steps, directory=None, timeout=30, train="", output="", dp="2", checkpoints=20):
    run_file = folder / f"{name}.toml"
    run_file.write_text(RUN.format(folder=folder, directory=directory or folder / name, steps=steps, timeout=timeout, train=train,
                                   output=output, dp=dp, checkpoints=checkpoints))
    return run_file


class Hosts(namespaces.Hosts):
    def start_run(self, program, name, steps, more="true", resume=False, supervise=None, options=(), host_file=None, **settings):
        """`supervise`: words for the supervisor, where there is one; `settings`: of the run file."""
        run_file = write_run_file(self.folder, name, steps, **settings)
        self.log = open(self.folder / f"{name}.log", "a")
        words = [str(program), "train", str(run_file)] + (["--resume"] if resume else [])
        under = [str(program), "supervise", *supervise, "--"] if supervise is not None else []
        command = self.mpirun(words, len(self.names), name, more, under, options)
        if host_file:
            command[-1] = re.sub("--host [^ ]+", f"--hostfile {shlex.quote(str(host_file))}", command[-1])
        return subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)

    def run(self, *arguments, **settings):
        return self.start_run(*arguments, **settings).wait(timeout=PATIENCE)

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def complaints(self, name):
        return [line for line in self.said(name).splitlines() if line.startswith("penstock:")]

    def expect_refusal(self, name, code, says):
        """One line, in which the words come one after another, before there is any step."""
        complaints = self.complaints(name)
        assert code == 2 and len(complaints) == 1 and re.search(".*".join(map(re.escape, says)), complaints[0]), (code, self.said(name))
        assert not self.steps(name)

    def steps(self, name):
        return steps_of(self.folder / name)

    def bits(self, name):
        return bits_of(self.folder / name)

    def wait_for_steps(self, name, count):
        wait_until(f"{name} does {count} steps", lambda: len(self.steps(name)) >= count, PATIENCE, lambda: self.said(name))


def keeps_the_contract(hosts, program):
    """Of communicators, which threads and MPI on one host pass too."""
    contract = pathlib.Path(program).parent / "bin" / "communicator_mpi"
    assert contract.exists(), f"{contract} is missing; build it with: cmake --build --preset release --target communicator_mpi"
    command = hosts.mpirun([str(contract), "--gtest_filter=-MpiWorld.*"], len(hosts.names), "contract")
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def on_one_host(program, folder, name, steps):
    run_file = write_run_file(folder, name, steps)
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", program, "train", str(run_file)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


def leaves_the_same_bits(hosts, program, steps):
    on_one_host(program, hosts.folder, "one", steps)
    assert hosts.run(program, "four", steps) == 0, hosts.said("four")
    assert hosts.bits("four") == hosts.bits("one"), "other bits over hosts than on one"


def outlives_a_short_loss_of_a_link(hosts, program, steps):
    run = hosts.start_run(program, "short", steps)
    hosts.wait_for_steps("short", 5)
    hosts.link(hosts.names[3], "down")
    time.sleep(5)
    before = len(hosts.steps("short"))
    assert before < steps, "the run was over before its link came back"
    hosts.link(hosts.names[3], "up")
    assert run.wait(timeout=PATIENCE) == 0, hosts.said("short")
    assert hosts.bits("short") == hosts.bits("one"), "other bits after a link was down"


def loses_a_link(hosts, program, name, **settings):
    """For good, in the middle of a run; its exit code, and what it said. No rank may be left on either side of the link."""
    lost = hosts.names[3]
    run = hosts.start_run(program, name, 1000000, timeout=4, **settings)
    hosts.wait_for_steps(name, 5)
    hosts.link(lost, "down")
    code = run.wait(timeout=60)
    wait_until(f"no rank of {name} is left", lambda: not any(hosts.processes(host, "penstock") for host in hosts.names), 30)
    hosts.kill(lost)  # Open MPI's daemon, which waits until its last words have arrived
    hosts.link(lost, "up")
    return code, hosts.said(name)


def ends_behind_a_lost_link(hosts, program):
    """mpirun alone: it probes silent connections, and does so before ranks that have waited too long end the job."""
    code, said = loses_a_link(hosts, program, "alone", options=keepalive(1, 1, 4))
    assert code in (3, 205), (code, said)
    lost = re.escape(hosts.names[3])
    told = rf"^penstock: .*is rank [0-9].* stuck.*host {lost}\b|lost communication with a remote daemon[^\0]*? on node {lost}\b"
    assert re.search(told, said, re.MULTILINE), said


def names_what_a_lost_link_holds_up(hosts, program):
    """The supervisor ends an mpirun that waits for a host that it does not reach."""
    code, said = loses_a_link(hosts, program, "supervised", supervise=("--restarts", "0"))
    assert code == 3, (code, said)
    place, cut_off = r"\(d[01] p[01], host \S+\)", rf"3 \(d1 p1, host {hosts.names[3]}\)"
    ends = rf"(from rank {cut_off} to rank [0-2]( {place})?|from rank [0-2] {place} to rank (3|{cut_off}))"
    assert re.search(ends + " was sent and has not arrived", said) and hosts.names[3] in said, said


def refuses_a_directory_that_a_host_does_not_see(hosts, program):
    folder = hosts.folder / "apart"
    folder.mkdir()
    more = f"[ $host = {hosts.names[2]} ] && mount -t tmpfs none {folder} || true"
    code = hosts.run(program, "apart", 10, more=more)
    hosts.expect_refusal("apart", code, [f"{folder}", f"is another directory for rank 2 on host {hosts.names[2]} than for rank 0"])
    assert not list(folder.glob("token*"))


def refuses_a_directory_that_a_host_cannot_write(hosts, program):
    folder = hosts.folder / "sealed"
    folder.mkdir()
    more = f"[ $host = {hosts.names[2]} ] && mount -o bind {folder} {folder} && mount -o remount,ro,bind {folder} || true"
    code = hosts.run(program, "sealed", 10, more=more)
    hosts.expect_refusal("sealed", code, [f"rank 2 on host {hosts.names[2]} cannot write to", f"{folder}", "Read-only file system"])
    assert not list(folder.glob("token*"))


def refuses_a_directory_that_keeps_what_a_host_writes(hosts, program):
    """The host sees what others write to it, not they what it does, as through an overlay, where the kernel has those."""
    if "\toverlay\n" not in pathlib.Path("/proc/filesystems").read_text():
        return "overlays untried (this kernel has none)"
    folder, own = hosts.folder / "overlaid", hosts.folder / "own"
    folder.mkdir()
    overlay = f"mount -t overlay none -o lowerdir={folder},upperdir={own}/upper,workdir={own}/work {folder}"
    more = f"[ $host = {hosts.names[2]} ] && mkdir {own} && mount -t tmpfs none {own} && mkdir {own}/upper {own}/work && {overlay} || true"
    code = hosts.run(program, "overlaid", 10, more=more)
    hosts.expect_refusal("overlaid", code, [f"rank 0 does not see what rank 2 on host {hosts.names[2]} writes to", f"{folder}"])
    assert not list(folder.glob("token*"))
    return "an overlay"


def refuses_another_build(hosts, program):
    whole = f"{program}-compute"  # what `penstock` becomes to train
    other = hosts.folder / "penstock-compute"
    shutil.copy(whole, other)
    with open(other, "ab") as file:
        file.write(b"\0")
    more = f"[ $host = {hosts.names[1]} ] && mount --bind {other} {whole} || true"
    code = hosts.run(program, "mixed", 10, more=more)
    hosts.expect_refusal("mixed", code, [f"rank 1 on host {hosts.names[1]} runs another build of the program, "])
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    builds = re.findall(rf"\b{re.escape(version)} \(([0-9a-f]+)\)", hosts.complaints("mixed")[0])
    assert len(set(builds)) == 2, hosts.said("mixed")
    assert not (hosts.folder / "mixed").exists()


def gathers_without_a_common_file_system(hosts, program, steps):
    folder = hosts.folder / "gathered"
    settings = {"more": apart(folder, host_with_it=hosts.names[0]), "output": "gather = true"}
    folder.mkdir()
    run = hosts.start_run(program, "gathered", steps, **settings)
    hosts.wait_for_steps("gathered", 45)
    (folder / "stop").touch()
    assert run.wait(timeout=PATIENCE) == 0, hosts.said("gathered")
    assert len(hosts.steps("gathered")) < steps, "the run was over before it was stopped"
    assert hosts.run(program, "gathered", steps, resume=True, **settings) == 0, hosts.said("gathered")
    assert hosts.bits("gathered") == hosts.bits("one"), "other bits where rank 0's host has the files alone"
    for host in hosts.names[1:]:
        assert not any((hosts.folder / f"gathered-{host}").iterdir()), f"{host} has files"


def finishes_once_without_checkpoints(hosts, program):
    """Only rank 0's host can tell that the run is done."""
    folder = hosts.folder / "done"
    settings = {"more": apart(folder, host_with_it=hosts.names[0]), "output": "gather = true", "checkpoints": 0}
    folder.mkdir()
    for resume in (False, True):
        assert hosts.run(program, "done", 3, resume=resume, **settings) == 0, hosts.said("done")
    assert "finished  all 3 steps" in hosts.said("done"), hosts.said("done")


def blames_no_rank_that_it_cannot_ask(hosts, program):
    """One rank is stopped, and only rank 0's host has the run directory: the rank that waits for it says so, and no rank more."""
    folder, stopped = hosts.folder / "unshared", hosts.names[3]
    folder.mkdir()
    run = hosts.start_run(program, "stopped", 1000000, directory=folder / "run", timeout=4, output="gather = true",
                          more=apart(folder, host_with_it=hosts.names[0]))
    wait_until("stopped does 5 steps", lambda: len(steps_of(folder / "run")) >= 5, PATIENCE, lambda: hosts.said("stopped"))
    [process] = hosts.processes(stopped, "penstock")
    os.kill(int(process), signal.SIGSTOP)
    assert run.wait(timeout=60) == 3, hosts.said("stopped")
    said = hosts.said("stopped")
    place = r"\(d[01] p[01], host \S+\)"
    trail = rf"rank 3 \(d1 p1, host {stopped}\), whose answer is told on its own host and cannot be read here.*; rank [0-2] {place} has waited"
    assert re.search(f"^penstock: note: the trail leads to {trail}", said, re.MULTILINE) and "does not answer" not in said, said
    for host in hosts.names[1:]:
        assert not any((hosts.folder / f"unshared-{host}").iterdir()), f"{host} has files"


def repeats_no_step_when_a_host_is_lost(hosts, program, steps):
    """Copies in the memory of the next host, after each step; nothing is on disk."""
    memory = hosts.folder / "memory"
    run = hosts.start_run(program, "lost", steps, timeout=4, more=apart(memory), dp='"auto"', supervise=(), checkpoints=0,
                          train=f'buddy_every = 1\nbuddy_dir = "{memory}"')
    hosts.wait_for_steps("lost", 15)
    lost = hosts.names[3]
    hosts.kill(lost)
    hosts.link(lost, "down")
    shutil.rmtree(f"{memory}-{lost}")
    code = run.wait(timeout=PATIENCE)
    hosts.link(lost, "up")
    said = hosts.said("lost")
    assert code == 0, said
    assert f"starts nothing on {lost}; continues with {', '.join(hosts.names[:3])}" in said, said
    attempts = json.loads((hosts.folder / "lost" / "attempts.json").read_text())
    assert attempts["time"]["recomputed_s"] == 0, attempts
    first, second = attempts["attempts"][0], attempts["attempts"][-1]
    assert second["resumed_from_step"] == first["last_step"] > 0, attempts
    assert not list((hosts.folder / "lost").glob("checkpoints/*")), "checkpoints on disk"
    assert "from memory of" in said and len(attempts["recoveries"]) == 1, said
    assert hosts.bits("lost") == hosts.bits("one"), "other bits after a host was lost"
    assert not any(pathlib.Path(f"{memory}-{hosts.names[0]}").iterdir()), "copies stay after the run"
    print("recovery from a lost host:", {name: round(seconds, 2) for name, seconds in attempts["recoveries"][0].items()})


def refuses_a_host_that_is_not_there(hosts, program):
    hosts.link(hosts.names[1], "down")
    run = hosts.start_run(program, "unknown", 10, supervise=())
    code = run.wait(timeout=PATIENCE)
    hosts.link(hosts.names[1], "up")
    hosts.expect_refusal("unknown", code, [f"mpirun starts nothing on {hosts.names[1]}, named by --host"])
    assert not (hosts.folder / "unknown").exists()


def refuses_a_host_file_with_an_unknown_host(hosts, program):
    unknown, file = f"{hosts.names[0]}gone", hosts.folder / "host-file"
    file.write_text("".join(f"{host} slots=1\n" for host in hosts.names[:3] + [unknown]))
    run = hosts.start_run(program, "listed", 10, supervise=(), host_file=file)
    hosts.expect_refusal("listed", run.wait(timeout=PATIENCE), [f"mpirun starts nothing on {unknown}, named by --hostfile"])
    assert not (hosts.folder / "listed").exists()


def bears_slow_links(hosts, program, steps):
    """A millisecond each way and a gigabit a second, where the kernel has netem."""
    slow = ["tc", "qdisc", "add", "dev", f"{hosts.names[2]}out", "root", "netem", "delay", "1ms", "rate", "1gbit"]
    made = subprocess.run(slow, capture_output=True, text=True)
    if made.returncode != 0:
        return f"slow links untried (this kernel has no netem: {made.stderr.strip()})"
    assert hosts.run(program, "slow", steps) == 0, hosts.said("slow")
    assert hosts.bits("slow") == hosts.bits("one"), "other bits over slow links"
    return "slow links"


def main():
    program = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        skip("network namespaces need root; enable it with: sudo ./dev test hosts")
    if shutil.which("ip") is None:
        skip("ip is missing; enable it with: apt-get install -y --no-install-recommends iproute2")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-hosts-"))
    write_corpus(folder)
    hosts = Hosts(folder, 4)
    try:
        try:
            hosts.start()
        except subprocess.CalledProcessError as failure:
            skip(f"network namespaces are not allowed here ({failure.stderr.strip()}); no command enables it, another machine does")
        steps = 200
        keeps_the_contract(hosts, program)
        leaves_the_same_bits(hosts, program, steps)
        outlives_a_short_loss_of_a_link(hosts, program, steps)
        ends_behind_a_lost_link(hosts, program)
        names_what_a_lost_link_holds_up(hosts, program)
        refuses_a_directory_that_a_host_does_not_see(hosts, program)
        refuses_a_directory_that_a_host_cannot_write(hosts, program)
        overlay = refuses_a_directory_that_keeps_what_a_host_writes(hosts, program)
        refuses_another_build(hosts, program)
        gathers_without_a_common_file_system(hosts, program, steps)
        finishes_once_without_checkpoints(hosts, program)
        blames_no_rank_that_it_cannot_ask(hosts, program)
        repeats_no_step_when_a_host_is_lost(hosts, program, steps)
        refuses_a_host_that_is_not_there(hosts, program)
        refuses_a_host_file_with_an_unknown_host(hosts, program)
        slow = bears_slow_links(hosts, program, steps)
    finally:
        hosts.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("four hosts: the same bits, a link lost for 5 s and for good, directories apart and read-only, builds mixed, files gathered by "
          f"the first, a rank stopped, a host lost and one unknown; {overlay}; {slow}")


if __name__ == "__main__":
    main()
