# SPDX-License-Identifier: Apache-2.0
"""Trains by the whole program on a fake GPU (fake_gpu.cpp) and by the processor, and compares the losses and gradient norms
of every step; goes on from a checkpoint of the one on the other; and what a GPU cannot do yet is refused by name.

Usage: train_by_gpu.py PENSTOCK PENSTOCK-ON-FAKE-GPU
"""
import concurrent.futures
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

# The greatest relative difference of a loss or a gradient norm in four steps. Sums have another order on a GPU.
TOLERANCE = {"f64": 1e-12, "f32": 1e-6, "bf16": 1e-3}
RUN = """
[model]
layers = 3
hidden = 64
ffn = 128
heads = 4
kv_heads = 2
[data]
text = "TEXT"
seq_len = 96
validation_fraction = 0.1
[schedule]
name = "slimpipe"
slices = 3
[train]
steps = 4
batch = 4
micro_batch = 2
threads = 1
checkpoint_every = 2
"""
PAIR, DATA = ("--ranks", "2", "--parallel.pp", "2"), ("--ranks", "2", "--parallel.dp", "2")
MOE = ("--model.experts", "4", "--model.experts_per_token", "2", "--moe.balance_coefficient", "0.01", "--moe.z_coefficient", "0.001")
DOCUMENTS = ("--data.text", "", "--data.megatron", '["documents"]', "--data.mask", "documents", "--model.vocab", "259")
OFFLOADED = ("f64", "--schedule.slices", "12", "--memory.offload", "1.0")
CASES = [("f64",), ("f32",), ("bf16",), ("f64", "--memory.policy", "balanced"), ("bf16", "--memory.policy", "full"),
         ("f64", "--model.tied_embeddings", "true"), ("f64", "--numerics.tensor", "2"), ("f32", "--model.ffn", "100", "--data.seq_len", "91"),
         ("f64", "--schedule.name", "zb-h1", "--schedule.slices", "1"), ("f64", "--model.head_norms", "true"),
         ("f64", *PAIR), ("bf16", "--ranks", "3", "--parallel.pp", "3", "--model.tied_embeddings", "true"),
         ("f32", *PAIR, "--schedule.name", "zb-v", "--schedule.slices", "1", "--model.layers", "4"),
         # slices of whole tiles, whose attention is cuDNN's
         ("bf16", "--data.seq_len", "384"), ("bf16", *PAIR, "--data.seq_len", "768", "--model.head_size", "64"),
         # more heads than one graph of it takes
         ("bf16", "--data.seq_len", "384", "--model.heads", "40", "--model.kv_heads", "8", "--model.head_size", "64"),
         # records leave for the host's memory
         OFFLOADED, ("bf16", *PAIR, "--memory.offload", "0.4", "--memory.policy", "balanced"),
         # every axis of the mesh
         ("f64", *DATA), ("f32", *DATA, "--parallel.shard", "weights"), ("bf16", *DATA, "--parallel.shard", "off"),
         ("f64", "--ranks", "2", "--parallel.tp", "2"),
         ("bf16", "--ranks", "4", "--parallel.tp", "2", "--parallel.pp", "2", "--model.tied_embeddings", "true"),
         *[("f64", "--ranks", "2", "--parallel.cp", "2", "--parallel.cp_mode", mode) for mode in ("gather", "query", "heads")],
         # the output layer and attention shared out over a pipeline
         ("f64", *PAIR, "--schedule.vocabulary_parallel", "true"),
         ("bf16", *PAIR, "--schedule.vocabulary_parallel", "true", "--model.tied_embeddings", "true"),
         ("f64", *PAIR, "--schedule.exchange", "paired", "--schedule.slices", "6", "--model.layers", "4"),
         # experts and documents
         ("f64", *MOE), ("f32", *MOE, "--moe.shared_experts", "1"), ("bf16", *DATA, *MOE, "--parallel.ep", "2"),
         *[(precision, *DATA, *MOE, "--parallel.ep", "2", "--parallel.shard", "weights") for precision in ("f32", "bf16")],
         ("f64", *DOCUMENTS), ("bf16", *PAIR, *DOCUMENTS, "--data.packing", "best_fit"),
         ("f64", *PAIR, *DOCUMENTS, "--schedule.exchange", "paired", "--schedule.slices", "6", "--model.layers", "4")]
REFUSED = [(("--memory.offload", "1.0", "--memory.offload_to", "disk"), "memory.offload_to"), (("--train.device", "cpu"), "start penstock"),
           (("--train.precision", "bf16", "--model.head_size", "20"), "model.head_size = 20")]


def on_ranks(ranks, *command):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *map(str, command)]


def mpi_environment(**more):
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PENSTOCK_PROGRESS="", **more)


def train(program, folder, *words, **environment):
    return subprocess.run([program, "train", "run.toml", *words], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PENSTOCK_PROGRESS="", **environment))


def steps(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines() if '"step"' in line]


def trained(program, folder, out, *words):
    done = train(program, folder, "--output.dir", out, *words)
    assert done.returncode == 0, f"{program} {' '.join(words)}:\n{done.stderr}"
    return steps(folder / out)


def difference(one, other):
    assert [step["step"] for step in one] == [step["step"] for step in other] == [1, 2, 3, 4]
    return max(abs(a[key] - b[key]) / abs(a[key]) for a, b in zip(one, other) for key in ("loss", "grad_norm"))


def write_documents(prefix):
    """200 documents of 5 to 160 bytes, in the form of Megatron."""
    lengths = [5 + 31 * number % 156 for number in range(200)]
    tokens = [7 * place * place % 251 for length in lengths for place in range(length)]
    prefix.with_suffix(".bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    begins = [2 * sum(lengths[:number]) for number in range(len(lengths))]
    prefix.with_suffix(".idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1) + struct.pack(f"<{len(lengths)}i", *lengths)
        + struct.pack(f"<{len(lengths)}q", *begins) + struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1)))


def write_run(folder):
    write_documents(folder / "documents")
    text = pathlib.Path(__file__).parents[2] / "docs" / "options.md"
    (folder / "run.toml").write_text(RUN.replace("TEXT", str(text)))


def activations(folder):
    """The peak of each device's saved activations."""
    return [device["measured_bytes"]["activations"] for device in json.loads((folder / "summary.json").read_text())["devices"]]


def check_memory(gpu, folder):
    """What does not fit is refused beforehand, or ends with what the rank holds of the GPU."""
    for words, code, named in [((), 1, "of its memory"), (("--train.memory_check", "off"), 3, "out of the GPU's memory: this rank holds")]:
        done = train(gpu, folder, "--output.dir", "full", *words, PENSTOCK_FAKE_GPU_MIB="3")
        assert done.returncode == code and named in done.stderr and 'memory.policy = "full" would fit' in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


# About 0.8 GiB of states, which are allocated only where it is trained.
LARGE = ("--dry-run", "--train.precision", "f32", "--train.micro_batch", "1", "--model.layers", "16", "--model.hidden", "512",
         "--model.ffn", "1376", "--model.heads", "8", "--model.kv_heads", "8")


def check_memory_after_measuring(gpu, folder):
    """What measuring the GPU's speeds has used of it is free when the run that asked for them begins."""
    done = train(gpu, folder, "--output.dir", "measured", *LARGE, "--schedule.slices", "0", PENSTOCK_FAKE_GPU_MIB="1024",
                 XDG_CACHE_HOME=str(folder / "no-profile-yet"))
    assert done.returncode == 0 and "measuring this machine" in done.stderr, done.stderr
    assert "machine   has 1 GPU with " in done.stdout, done.stdout


def check_gpus_of_ranks(gpu, folder):
    """Two ranks of mpirun, each of whose half of the run fits a GPU of its own, but not both on one; the launcher shows each but one."""
    def on_two_ranks(*words, **environment):
        return subprocess.run(on_ranks(2, gpu, *words), cwd=folder, capture_output=True, text=True, env=mpi_environment(**environment))

    for own, code in [({"PENSTOCK_FAKE_GPU_OWN": "1"}, 0), ({}, 1)]:
        done = on_two_ranks("train", "run.toml", "--output.dir", "own", *LARGE, "--parallel.pp", "2", "--schedule.slices", "4",
                            PENSTOCK_FAKE_GPU_MIB="640", **own)
        assert done.returncode == code and ("2 ranks on one GPU" in done.stderr) == (code == 1), (done.returncode, done.stderr)
    done = on_two_ranks("profile", "--device", "cuda", "--quick", "--budget", "0", "--precision", "f32", "--threads", "1", "--out", "two.toml")
    assert done.returncode == 0 and "messages through the host's memory" in (folder / "two.toml").read_text(), done.stderr


# Ranks of mpirun with a GPU each, whose messages go by a fake NCCL.
OVER_NCCL = [("bf16", 4, "--parallel.pp", "2", "--parallel.tp", "2"), ("f64", 4, "--parallel.tp", "4", "--model.kv_heads", "4"),
             ("f32", 4, "--parallel.pp", "2", "--parallel.dp", "2", "--parallel.shard", "weights"),
             ("bf16", 4, "--parallel.dp", "4", *MOE, "--parallel.ep", "2", "--train.batch", "8"),
             ("f64", 4, "--parallel.pp", "2", "--parallel.cp", "2", "--parallel.cp_mode", "query"),
             ("f32", 3, "--parallel.pp", "3", "--schedule.vocabulary_parallel", "true"),
             ("f64", 2, *PAIR[2:], "--schedule.exchange", "paired", "--schedule.slices", "6", "--model.layers", "4")]


def check_nccl(gpu, folder):
    """The bits of ranks as threads, though the GPU's driver now and then waits for all that the GPU has been given."""
    path = f"{pathlib.Path(gpu).parent / 'fake-nccl'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    for number, (precision, ranks, *words) in enumerate(OVER_NCCL):
        words = ["--train.precision", precision, "--train.timeout", "60", *words]
        threads = trained(gpu, folder, f"threads-{number}", "--ranks", str(ranks), *words)
        done = subprocess.run(on_ranks(ranks, gpu, "train", "run.toml", "--output.dir", f"nccl-{number}", *words), cwd=folder,
                              capture_output=True, text=True, env={**mpi_environment(PENSTOCK_FAKE_GPU_OWN="1"), "LD_LIBRARY_PATH": path})
        assert done.returncode == 0 and "through the host's memory" not in done.stderr, f"{' '.join(words)}: {done.stderr}"
        off = difference(threads, steps(folder / f"nccl-{number}"))
        print(f"{ranks} ranks over NCCL, {' '.join(words)}: {off:.1e}", flush=True)
        assert off == 0, words


def check_loss(gpu, folder):
    """A GPU that is lost in the middle of a step ends the run, with one line, also that of the other rank."""
    for words in ((), ("--ranks", "2", "--parallel.pp", "2")):
        done = train(gpu, folder, "--output.dir", f"lost-{len(words)}", *words, PENSTOCK_FAKE_GPU_LAST_BLOCK="900")
        assert done.returncode == 3 and "fell off the bus" in done.stderr and len(done.stderr.splitlines()) == 1, (done.returncode, done.stderr)
        assert not words or "rank " in done.stderr, done.stderr


def check_profile(gpu, folder):
    """The speeds of a GPU are measured, in the form that plan and simulate read."""
    done = subprocess.run([gpu, "profile", "--device", "cuda", "--quick", "--budget", "0", "--precision", "f32", "--out", "GPU.toml"],
                          cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (folder / "GPU.toml").read_text()
    assert "this GPU's, over its ranks" in text and "to pinned memory and one back at once" in text, text
    done = subprocess.run([gpu, "simulate", "run.toml", "--train.precision", "f32", "--hardware", "GPU.toml", "--json"], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["makespan_s"] > 0, done.stderr


def compare(processor, gpu, folder, number, tolerance):
    """What is wrong with a case, if anything."""
    precision, *words = CASES[number]
    words = ["--train.precision", precision, *words]
    try:
        by_processor = trained(processor, folder, f"processor-{number}", *words)
        by_gpu = trained(gpu, folder, f"gpu-{number}", *words)
    except AssertionError as error:
        return str(error)
    off = difference(by_processor, by_gpu)
    print(f"{' '.join(words):70} {off:.1e}", flush=True)
    if off > tolerance[precision]:
        return f"{' '.join(words)}: more than {tolerance[precision]}"
    held, expected = (activations(folder / f"{kind}-{number}") for kind in ("gpu", "processor"))
    if held != expected and "--model.experts" not in words:  # whose scores are the host's
        return f"{' '.join(words)}: saved activations {held}, the processor's {expected}"


def main(processor, gpu, tolerance=TOLERANCE):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write_run(folder)
        with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 4)) as several:
            found = several.map(lambda number: compare(processor, gpu, folder, number, tolerance), range(len(CASES)))
            problems = [problem for problem in found if problem]
        assert not problems, "\n".join(problems)
        plain, offloaded = (activations(folder / f"gpu-{CASES.index(case)}")[0] for case in (("f64",), OFFLOADED))
        assert offloaded < 0.5 * plain, (offloaded, plain)
        # The first two steps by the one, the others by the other.
        for number, programs in enumerate([(processor, gpu), (gpu, processor)]):
            out, words = f"both-{number}", ["--train.precision", "f64"]
            for path, program, more in [(out, programs[0], ["--train.steps", "2", "--train.lr_schedule", "constant"]),
                                        (out, programs[1], ["--resume", "--train.lr_schedule", "constant"])]:
                done = train(program, folder, "--output.dir", path, *words, *more)
                assert done.returncode == 0, done.stderr
            whole = trained(processor, folder, f"whole-{number}", *words, "--train.lr_schedule", "constant")
            assert difference(whole, steps(folder / out)) <= tolerance["f64"]
        for words, named in REFUSED:
            done = train(gpu, folder, "--output.dir", "refused", *words)
            assert done.returncode == 2 and named in done.stderr, f"{words}: exit {done.returncode}, {done.stderr}"
            assert not (folder / "refused").exists()
        if os.path.basename(gpu) == "penstock-on-fake-gpu":
            check_memory(gpu, folder)
            check_memory_after_measuring(gpu, folder)
            if "libmpi" in subprocess.run(["ldd", gpu], capture_output=True, text=True).stdout:
                check_gpus_of_ranks(gpu, folder)
                check_nccl(gpu, folder)
            check_loss(gpu, folder)
            check_profile(gpu, folder)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
