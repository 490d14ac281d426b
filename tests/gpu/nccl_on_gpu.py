# SPDX-License-Identifier: Apache-2.0
"""Ranks of mpirun on GPUs, whose messages go by NCCL: the transports' contract; training, whose losses and gradient norms are to the bit
those of ranks as threads; and the end of a run that loses a rank. Needs a GPU, mpirun and libnccl.so.2; ends with 77 without them.

Ranks may share a GPU: NCCL takes that from 2.30 on where NCCL_MULTI_RANK_GPU_ENABLE is 1, before only of ranks that it believes to be on
hosts of their own (NCCL_HOSTID), between which it moves bytes through sockets.

Usage: nccl_on_gpu.py PENSTOCK PENSTOCK-CUDA NCCL_MPI
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import train_by_gpu  # noqa: E402
import train_on_gpu  # noqa: E402

SKIPPED = 77
OWN_HOSTS = 'export NCCL_HOSTID=rank-$OMPI_COMM_WORLD_RANK; exec "$@"'
SHARES_GPUS = 23000  # the first version that does
MOE = train_by_gpu.MOE
CASES = [("bf16", 2, "--parallel.pp", "2"), ("f32", 2, "--parallel.dp", "2"), ("bf16", 2, "--parallel.dp", "2", "--parallel.shard", "weights"),
         ("f32", 2, "--parallel.tp", "2"), ("f64", 2, "--parallel.cp", "2", "--parallel.cp_mode", "gather"),
         ("f32", 2, "--parallel.cp", "2", "--parallel.cp_mode", "heads"),
         ("bf16", 2, "--parallel.pp", "2", "--schedule.vocabulary_parallel", "true", "--model.tied_embeddings", "true"),
         ("f32", 2, "--parallel.pp", "2", "--schedule.exchange", "paired", "--schedule.slices", "6", "--model.layers", "4"),
         ("bf16", 2, "--parallel.dp", "2", *MOE, "--parallel.ep", "2"),
         ("bf16", 4, "--parallel.pp", "2", "--parallel.tp", "2"), ("f32", 4, "--parallel.pp", "2", "--parallel.dp", "2"),
         ("bf16", 4, "--parallel.tp", "4", "--model.kv_heads", "4"), ("f64", 4, "--parallel.pp", "4", "--model.layers", "4")]


def nccl_version():
    """Of the library that the program will find; 0 where there is none."""
    code = "import ctypes; v = ctypes.c_int(); ctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(v)); print(v.value)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout or 0)


def on_ranks(ranks, *words):
    hosts = [] if nccl_version() >= SHARES_GPUS else ["sh", "-c", OWN_HOSTS, "sh"]
    return train_by_gpu.on_ranks(ranks, *hosts, *words)


def environment():
    return train_by_gpu.mpi_environment(NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_SOCKET_IFNAME="lo")


def by_host(penstock, folder):
    """Ranks that share a GPU, by messages through the host's memory, as it is where NCCL is not told to take them."""
    words = ["--train.precision", "bf16", "--train.device", "cuda", "--parallel.pp", "2", "--parallel.tp", "2"]
    threads = train_by_gpu.trained(penstock, folder, "threads", "--ranks", "4", *words)
    done = subprocess.run(train_by_gpu.on_ranks(4, penstock, "train", "run.toml", "--output.dir", "host", *words), cwd=folder,
                          capture_output=True, text=True, env={**environment(), "NCCL_MULTI_RANK_GPU_ENABLE": "0"})
    assert done.returncode == 0 and "through the host's memory: several ranks share a GPU" in done.stderr, (done.returncode, done.stderr)
    assert train_by_gpu.difference(threads, train_by_gpu.steps(folder / "host")) == 0
    print("4 ranks through the host's memory: the same bits", flush=True)


def compare(penstock, folder, number, precision, ranks, *words):
    """What is wrong with a case, if anything."""
    words = ["--train.precision", precision, "--train.device", "cuda", *words]
    threads = train_by_gpu.trained(penstock, folder, f"threads-{number}", "--ranks", str(ranks), *words)
    began = time.monotonic()
    done = subprocess.run(on_ranks(ranks, penstock, "train", "run.toml", "--output.dir", f"nccl-{number}", "--train.timeout",
                                   "30", *words), cwd=folder,
                          capture_output=True, text=True, env=environment())
    if done.returncode:
        return f"{ranks} ranks, {' '.join(words)}: exit {done.returncode}\n{done.stderr}"
    if "through the host's memory" in done.stderr:
        return f"{' '.join(words)}: {done.stderr}"
    off = train_by_gpu.difference(threads, train_by_gpu.steps(folder / f"nccl-{number}"))
    print(f"{ranks} ranks, {' '.join(words):90} {off:.1e} ({time.monotonic() - began:.1f} s)", flush=True)
    return f"{' '.join(words)}: {off}" if off else None


def check_loss(penstock, folder):
    """A rank that is killed in the middle of a run ends it within ten seconds."""
    run = subprocess.Popen(on_ranks(2, penstock, "train", "run.toml", "--output.dir", "lost", "--train.device", "cuda", "--parallel.pp", "2",
                                    "--train.steps", "100000"), cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                           env=environment())
    metrics, limit = folder / "lost" / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size > 1000):
        assert run.poll() is None and time.monotonic() < limit, "the run does no steps"
        time.sleep(0.1)
    ranks = subprocess.run(["pgrep", "-f", "penstock-cuda.*lost"], capture_output=True, text=True).stdout.split()
    killed = [int(rank) for rank in ranks if b"OMPI_COMM_WORLD_RANK=1" in pathlib.Path(f"/proc/{rank}/environ").read_bytes()]
    assert killed, ranks
    os.kill(killed[-1], signal.SIGKILL)
    began = time.monotonic()
    _, errors = run.communicate(timeout=60)
    took = time.monotonic() - began
    print(f"a killed rank: the run ended after {took:.1f} s with exit {run.returncode}\n{errors.strip()[:600]}")
    assert run.returncode and took < 10, took


def main(penstock, for_gpus, contract):
    library_path = train_on_gpu.library_path(for_gpus)
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [library_path, os.environ.get("LD_LIBRARY_PATH", "")]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        train_by_gpu.write_run(folder)
        done = train_by_gpu.train(penstock, folder, "--train.device", "cuda", "--output.dir", "alone")
        version = nccl_version()
        if shutil.which("mpirun") is None or "no CUDA device" in done.stderr or version == 0:
            print("SKIPPED: there is no GPU, no mpirun or no libnccl.so.2; enable it with: ./dev test --gpu on a machine that has them")
            return SKIPPED
        assert done.returncode == 0, done.stderr
        print(f"NCCL {version}")
        for ranks in (2, 4):
            subprocess.run(on_ranks(ranks, contract, "--gtest_brief=1"), check=True, env=environment())
        by_host(penstock, folder)
        problems = [problem for number, case in enumerate(CASES) if (problem := compare(penstock, folder, number, *case))]
        assert not problems, "\n".join(problems)
        check_loss(penstock, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
