#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of examples/slurm/train.sbatch under a real Slurm, with two nodes on this host, come to the bits of a run that nothing disturbed.

Usage: run_jobs.py PATH/TO/penstock

One job is signalled while mpirun starts and goes back into the queue; its ranks are bound to the CPUs that Slurm gives it. One is
signalled shortly before its time is up: it leaves a checkpoint, goes back into the queue and resumes. One loses a node in the middle
of a step and goes on with the other. One loses the first node, with the job's script, and begins again on the other. One fails
while slurmctld is away, and waits for it. One is cancelled, and leaves nothing running. Exit 0: so it is; 1: not; 77: skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from own_slurm import CONFINES, NODES, PACKAGES, PATIENCE, Slurm, kill, processes, processes_of  # noqa: E402
from proc import environment_of, name_of, rank_of  # noqa: E402
from runs import bits_of, skip, steps_of, wait_until, write_corpus  # noqa: E402

SBATCH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm" / "train.sbatch"
LENGTH = 45  # seconds of the undisturbed run: the time limit's signal comes within the first 20
SHORT = 15  # seconds of the one that jobs repeat which lose a node when half of it is done
UNBOUND = "--bind-to none --oversubscribe"  # where two nodes share this host's CPUs

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


def train_here(program, folder, name, steps):
    run_file = folder / f"{name}.toml"
    run_file.write_text(RUN.format(folder=folder, name=name, steps=steps))
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", program, "train", str(run_file)]
    subprocess.run(command, check=True, capture_output=True)
    return steps_of(folder / name)


def submit(slurm, name, *options, steps, keys=(), mpirun=UNBOUND, beside_others=False):
    if not beside_others:
        slurm.wait_for_nodes()
    run_file = slurm.folder / f"{name}.toml"
    run_file.write_text(RUN.format(folder=slurm.folder, name=name, steps=steps))
    os.environ["PENSTOCK_MPIRUN"] = mpirun  # which sbatch passes on
    return slurm.submit(name, *options, str(SBATCH), str(run_file), *keys)


def log_of(slurm, name):
    file = slurm.folder / f"{name}.log"
    return file.read_text() if file.exists() else ""


def wait_for_end(slurm, name, job):
    wait_until(f"job {name} has ended", lambda: slurm.state(job)[0] in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), PATIENCE)
    assert slurm.state(job)[0] == "COMPLETED", (slurm.state(job), log_of(slurm, name))


def expect_same(slurm, name, whole):
    assert bits_of(slurm.folder / name) == bits_of(slurm.folder / whole), f"{name} has other bits than {whole}\n{log_of(slurm, name)}"


def ranks_of(name):
    """The processes that are the run's, by rank."""
    return {rank_of(process): process for process in processes("penstock", "train", f"{name}.toml")
            if rank_of(process) is not None and name_of(process) == "penstock"}


def cpus_of_ranks(name):
    """That each rank of the run may use, by rank."""
    return {rank: pathlib.Path(f"/proc/{process}/status").read_text().split("Cpus_allowed_list:\t")[1].split("\n")[0]
            for rank, process in ranks_of(name).items()}


def expect_bound(slurm, name, ranks, threads):
    """Each rank has as many CPUs and threads, and none of another's; then the run is asked to stop."""
    wait_until(f"{name} does 5 steps", lambda: len(steps_of(slurm.folder / name)) >= 5, PATIENCE, lambda: log_of(slurm, name))
    cpus = cpus_of_ranks(name)
    assert sorted(cpus) == list(range(ranks)) and len(set(cpus.values())) == ranks, cpus
    assert all(text == ("0-1" if threads == 2 else text[0]) for text in cpus.values()), cpus
    assert f"{threads} thread{'s' if threads > 1 else ''} a rank" in log_of(slurm, name), log_of(slurm, name)
    (slurm.folder / name / "stop").touch()


def goes_back_when_signalled_while_it_starts(slurm):
    """Whatever the signal meets; then its two ranks have a CPU each."""
    job = submit(slurm, "bound", "--nodes=1", "--ntasks-per-node=2", "--time=20", steps=1000000, keys=("--train.threads", "0"), mpirun="")
    wait_until("the supervisor is there", lambda: processes("supervise", "bound.toml"), PATIENCE)
    slurm.ask("scancel", "--batch", "--signal=USR1", job)
    wait_until("the job is put back", lambda: slurm.state(job)[1] > 0, PATIENCE, lambda: log_of(slurm, "bound"))
    expect_bound(slurm, "bound", ranks=2, threads=1)
    wait_for_end(slurm, "bound", job)


def binds_ranks_to_what_the_job_has(slurm):
    """All of the node's CPUs for one rank; and one each for two jobs at a time, where Slurm can confine them."""
    wide = submit(slurm, "wide", "--nodes=1", "--cpus-per-task=2", "--time=20", steps=1000000, keys=("--train.threads", "0"), mpirun="")
    expect_bound(slurm, "wide", ranks=1, threads=2)
    wait_for_end(slurm, "wide", wide)
    if not CONFINES:
        return "; two jobs on a node untried (no cpuset of cgroup v1 here)"
    jobs = {name: submit(slurm, name, "--nodes=1", "--nodelist=n1", "--cpus-per-task=1", "--time=20", steps=1000000,
                         keys=("--train.threads", "0"), mpirun="", beside_others=True) for name in ("left", "right")}
    for name in jobs:
        wait_until(f"{name} does 5 steps", lambda: len(steps_of(slurm.folder / name)) >= 5, PATIENCE, lambda: log_of(slurm, name))
    assert cpus_of_ranks("left")[0] != cpus_of_ranks("right")[0], (cpus_of_ranks("left"), cpus_of_ranks("right"))
    for name, job in jobs.items():
        expect_bound(slurm, name, ranks=1, threads=1)
        wait_for_end(slurm, name, job)
    return ""


def resumes_after_its_time_is_up(slurm, steps):
    began = time.monotonic()
    job = submit(slurm, "limited", "--nodes=2", "--time=20", "--signal=B:USR1@50", steps=steps)
    # However long the start takes on a busy machine, some steps are done when the time is nearly up.
    wait_until("limited does 3 steps", lambda: len(steps_of(slurm.folder / "limited")) >= 3, PATIENCE, lambda: log_of(slurm, "limited"))
    minutes = int((time.monotonic() - began) // 60) + 1
    slurm.ask("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}")
    wait_until("the job is put back", lambda: slurm.state(job)[1] > 0, PATIENCE)
    done = steps_of(slurm.folder / "limited")
    assert 0 < len(done) < steps, f"signalled after {len(done)} of {steps} steps"
    subprocess.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"], capture_output=True)
    wait_for_end(slurm, "limited", job)
    log = log_of(slurm, "limited")
    assert f"stopped   after step {len(done)} as asked" in log and log.count("start on n1:1,n2:1") == 2, log
    assert f"resumes   after step {len(done)}" in log, log
    expect_same(slurm, "limited", "whole")


def wait_for_half(slurm, name, steps):
    """And for a whole checkpoint: they are written with what training leaves of the cores."""
    folder = slurm.folder / name
    has_checkpoint = lambda: any(not path.suffix for path in (folder / "checkpoints").glob("step-*"))
    ready = lambda: len(steps_of(folder)) >= steps // 2 and has_checkpoint()
    wait_until(f"{name} has done half of its steps", ready, PATIENCE, lambda: log_of(slurm, name))


def goes_on_without_a_lost_node(slurm, steps):
    job = submit(slurm, "lost", "--nodes=2", "--time=20", steps=steps)
    wait_for_half(slurm, "lost", steps)
    slurm.lose_node("n2")
    wait_for_end(slurm, "lost", job)
    log = log_of(slurm, "lost")
    assert "start on n1:1,n2:1\n" in log and "start on n1:1\n" in log and "resumes   after step" in log, log
    assert slurm.state(job)[1] == 0, "the job goes on, and is not begun anew"
    expect_same(slurm, "lost", "short")
    slurm.start_node("n2")


def goes_back_when_its_first_node_is_lost(slurm, steps):
    """It takes the job's script along. Slurm lets such a job go on for ever, so the other node puts it back, and is enough for it."""
    job = submit(slurm, "begun", "--nodes=1-2", "--time=20", steps=steps)
    wait_for_half(slurm, "begun", steps)
    wait_until("it is watched", lambda: watchers(job, "n2"), PATIENCE, lambda: log_of(slurm, "begun"))
    slurm.lose_node("n1")
    seen = lambda: f"watched by {watchers(job, 'n2')}\n{slurm.told(job)}\n{log_of(slurm, 'begun')}"
    wait_until("the job is put back", lambda: slurm.state(job)[1] > 0, PATIENCE, seen)
    wait_for_end(slurm, "begun", job)
    first, _, second = log_of(slurm, "begun").partition("start on n2:1\n")
    assert first.count("start on n1:1,n2:1\n") == 1 and "resumes   after step" in second and "start on" not in second, first + second
    expect_same(slurm, "begun", "short")
    slurm.start_node("n1")


def waits_while_no_node_answers(slurm):
    """As srun does not reach any without slurmctld."""
    job = submit(slurm, "alone", "--nodes=1", "--time=20", steps=1000000)
    steps = lambda: len(steps_of(slurm.folder / "alone"))
    wait_until("it does 5 steps", lambda: steps() >= 5, PATIENCE, lambda: log_of(slurm, "alone"))
    slurm.stop_controller()
    for process in ranks_of("alone").values():
        kill(process)
    wait_until("it waits", lambda: "no node of the job answers" in log_of(slurm, "alone"), PATIENCE, lambda: log_of(slurm, "alone"))
    slurm.start_controller()
    wait_until("it starts again", lambda: log_of(slurm, "alone").count("start on ") == 2, PATIENCE, lambda: log_of(slurm, "alone"))
    (slurm.folder / "alone" / "stop").touch()
    wait_for_end(slurm, "alone", job)


def leaves_nothing_when_cancelled(slurm):
    """On either node, the one that watches the first included."""
    job = submit(slurm, "cancelled", "--nodes=2", "--time=20", steps=1000000)
    runs = lambda: len(steps_of(slurm.folder / "cancelled")) >= 5 and watchers(job, "n2")
    wait_until("it has done 5 steps, and is watched", runs, PATIENCE, lambda: log_of(slurm, "cancelled"))
    assert processes(f"slurmstepd: [{job}.")
    for node in NODES:
        assert any(f"SLURMD_NODENAME={node}".encode() in environment_of(process) for process in processes_of(job)), node
    slurm.ask("scancel", job)
    wait_until("nothing of it is running", lambda: not processes_of(job), 30, lambda: [(process, name_of(process)) for process in processes_of(job)])


def watchers(job, node):
    """The shells on that node which watch the job's first one; an srun that has yet to start one has the same words."""
    number, name = f"SLURM_JOB_ID={job}".encode(), f"SLURMD_NODENAME={node}".encode()
    shells = [process for process in processes("watch_node") if name_of(process) == "bash"]
    return [process for process in shells if {number, name} <= set(environment_of(process))]


def timed(job, *words):
    """Calls it, and tells how long it took."""
    began = time.monotonic()
    result = job(*words)
    print(f"{job.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    return result


def main():
    program = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        skip("a Slurm of one's own needs root; enable it with: sudo ./dev test slurm")
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        skip(f"{', '.join(missing)} missing; enable it with: apt-get install -y --no-install-recommends {' '.join(PACKAGES)}")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PENSTOCK=program)
    os.environ.update(OMPI_MCA_oob_tcp_keepalive_time="4", OMPI_MCA_oob_tcp_keepalive_intvl="2", OMPI_MCA_oob_tcp_keepalive_probes="3")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-slurm-"))
    write_corpus(folder)
    slurm = Slurm(folder)
    try:
        try:
            slurm.start()
        except (OSError, subprocess.CalledProcessError, AssertionError) as failure:
            skip(f"Slurm's daemons do not start here ({failure}); no command enables it, another machine does")
        times = sorted(step["step_s"] for step in train_here(program, folder, "first", 12)[2:])
        steps, few = (max(40, min(20000, int(length / times[len(times) // 2]))) for length in (LENGTH, SHORT))
        timed(train_here, program, folder, "whole", steps)
        timed(train_here, program, folder, "short", few)
        timed(goes_back_when_signalled_while_it_starts, slurm)
        untried = timed(binds_ranks_to_what_the_job_has, slurm)
        timed(resumes_after_its_time_is_up, slurm, steps)
        timed(goes_on_without_a_lost_node, slurm, few)
        timed(goes_back_when_its_first_node_is_lost, slurm, few)
        timed(waits_while_no_node_answers, slurm)
        timed(leaves_nothing_when_cancelled, slurm)
    finally:
        slurm.end()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"jobs of {steps} and {few} steps: signalled while they start and before their time is up, bound, a node lost, the first node lost, "
          f"no node answering, cancelled{untried}")


if __name__ == "__main__":
    main()
