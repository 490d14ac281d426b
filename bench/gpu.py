# SPDX-License-Identifier: Apache-2.0
"""Training on one GPU: speed beside the GPU's own products, what slices and offloading cost, memory beside what was predicted, a
pipeline's stages on one GPU, the longest sequence, and whether results are the processor's and repeat.

Usage: bench/gpu.py PATH/TO/penstock [--quick] [PART...]
(from the root of the repository; --quick: a model of seconds, to see that everything runs; parts: kernels speeds offloading stages peers
exactness longest; all unless named; slicing: of the speeds, those of repeatable runs of 128K tokens alone; forecast: simulates the speeds
that are kept, without a GPU)

The model has Llama 3's 8B layers: hidden 4096, ffn 14336, 32 heads, 8 of them for keys and values; 4 of its 32 layers, 1 beyond 128K
tokens, and 4,096 tokens of vocabulary for each, so that the output layer has its share of the work. Speeds are medians of the steps after
the first; FLOPs are the model's: 6 for each weight of a matrix and token, and 6·layers·hidden·tokens for causal attention.
"""
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tomllib

import programs

LARGE = dict(hidden=4096, ffn=14336, heads=32, kv_heads=8)
SMALL = dict(layers=4, hidden=64, ffn=128, heads=4, kv_heads=2, vocab=259)
STEPS = 4
FOLDER = pathlib.Path("build/bench/gpu")
K = 1024


def shape_of(tokens, layers=None):
    layers = layers or (4 if tokens <= 128 * K else 1)
    return {**LARGE, "layers": layers, "vocab": 4096 * layers}


def flops_of_token(shape, tokens):
    h, kv = shape["hidden"], shape["hidden"] * shape["kv_heads"] // shape["heads"]
    layer = 2 * h * h + 2 * h * kv + 3 * h * shape["ffn"]
    return 6 * (shape["layers"] * layer + h * shape["vocab"]) + 6 * shape["layers"] * h * tokens


class Gpu:
    def __init__(self, program, quick):
        self.program, self.quick = program, quick
        FOLDER.mkdir(parents=True, exist_ok=True)
        memory = pathlib.Path("/dev/shm")
        self.out = (memory if memory.is_dir() else FOLDER) / f"penstock-bench-{os.getpid()}"
        self.text = FOLDER / "random.txt"
        self.text.write_bytes(random.Random(1).randbytes((1 if quick else 16) << 20))

    def shape(self, tokens, layers=None):
        return SMALL if self.quick else shape_of(tokens, layers)

    def profile(self):
        out = FOLDER / "hardware.toml"
        words = ["--quick", "--budget", "0", "--precision", "f32"] if self.quick else []
        programs.output(self.program, "profile", "--device", "cuda", "--out", out, *words)
        self.hardware = tomllib.loads(out.read_text())

    def train(self, tokens, **options):
        """The steps and summary of a run, or the line with which it ended."""
        keys = {"train.precision": "bf16", "train.device": "cuda", "train.steps": STEPS, "train.batch": 1, "data.text": self.text,
                "data.seq_len": tokens, "data.validation_fraction": 0, "train.checkpoint_every": 0, "memory.policy": "balanced",
                **{f"model.{key}": value for key, value in self.shape(tokens).items()}, **options}
        out = self.out
        shutil.rmtree(out, ignore_errors=True)
        ranks, dry = keys.pop("ranks", 1), keys.pop("dry", False)
        words = [word for key, value in keys.items() for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]
        (FOLDER / "run.toml").write_text("[train]\nmicro_batch = 1\n")
        done = subprocess.run([self.program, "train", FOLDER / "run.toml", "--ranks", str(ranks), "--output.dir", out, *words,
                               *(["--dry-run"] if dry else [])], capture_output=True, text=True)
        if dry:
            table = dict(zip(*[re.split(r"\s{2,}", line.strip())[1:] for line in done.stdout.splitlines()
                               if line.startswith(("  predicted", "  device 0"))]))
            return f"{table['total']}|{table.get('host', '')}|{'would start' if done.returncode == 0 else 'would be refused'}"
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0]
        steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return {**json.loads((out / "summary.json").read_text()), "steps": steps}

    def rate(self, run, tokens, layers=None):
        """FLOP/s."""
        counted = run["steps"][1:] or run["steps"]
        return flops_of_token(self.shape(tokens, layers), tokens) * statistics.median(step["tokens_per_second"] for step in counted)


def seconds(run):
    return statistics.median(step["step_s"] for step in run["steps"][1:] or run["steps"])


def device_bytes(run, kind, category):
    return max(device[f"{kind}_bytes"][category] for device in run["devices"])


def head(title, *columns, text=""):
    print((f"\n## {title}\n" if title else "") + (f"\n{text}\n" if text else ""))
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def row(*cells):
    print(f"| {' | '.join(str(cell) for cell in cells)} |")


def aim(value, least, greatest=None):
    met = value >= least if greatest is None else value <= greatest
    return f"{'≥' if greatest is None else '≤'} {least if greatest is None else greatest}, {'met' if met else 'missed'}"


def kernels(gpu):
    measured, device = gpu.hardware["measured"], gpu.hardware["device"]
    products = measured.get("matrix_tflops") or measured["f32_matrix_tflops"]
    head("The card", "", "")
    row("quickest product", f"{max(products):,.3g} TFLOP/s")
    row("memory, read and written", f"{device['memory_gbps']:,.4g} GB/s")
    row("to and from the host at once, each way", f"{gpu.hardware['node']['host_link_gbps']:,.3g} GB/s")
    head("", "attention, tokens", "causal TFLOP/s", "backward", "earlier slices", "backward")
    names = [f"{part}attention_{direction}tflops" for part in ("", "earlier_") for direction in ("", "backward_")]
    for tokens, *rates in zip(measured["attention_tokens"], *(measured[name] for name in names)):
        row(f"{tokens:,.0f}", *(f"{rate:,.3g}" for rate in rates))
    head("", "norms, rotation, SwiGLU of hidden states of", "forward, of the memory's rate", "backward", "aim")
    for megabytes, forward, backward in zip(*(measured[name] for name in ("elementwise_mb", "elementwise_gbps", "elementwise_backward_gbps"))):
        shares = [rate / device["memory_gbps"] for rate in (forward, backward)]
        row(f"{megabytes:,.3g} MB", *(f"{share:.2f}" for share in shares), aim(min(shares), 0.8))
    return 1e12 * max(products)


def slicing(gpu, product):
    speeds(gpu, product, [128 * K], [True], ("Speed of slices", "length"))


def speeds(gpu, product, lengths=None, orders=(True, False), titles=("Speed", "tokens")):
    head(*titles, "slices", "policy", "attention's backward", "TFLOP/s", "of the product", "beside one slice", "aim")
    aims = {128 * K: 0.65, 512 * K: 0.62}
    for tokens in (96, 192) if gpu.quick else lengths or (8 * K, 32 * K, 128 * K, 512 * K):
        few, many = (1, 4) if gpu.quick else (1, 16 if tokens > 128 * K else 8)
        cases = [(many, "balanced", True), (many, "balanced", False)]
        if tokens <= 128 * K:
            cases.insert(0, (few, "balanced", True))
        if tokens in (192, 32 * K):
            cases.append((4 * many, "balanced", True))
        whole = None
        for slices, policy, repeatable in (case for case in cases if case[2] in orders):
            run = gpu.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": slices, "memory.policy": policy,
                                        "numerics.repeatable": repeatable})
            order = "repeatable" if repeatable else "in any order"
            if isinstance(run, str):
                row(f"{tokens:,}", slices, policy, order, run[:120], "", "", "")
                continue
            rate = gpu.rate(run, tokens)
            if slices == 1:
                whole = rate
            beside = f"{rate / whole:.3f}" if whole and policy == "balanced" and slices > 1 and repeatable else ""
            wanted = aim(rate / product, aims[tokens]) if product and tokens in aims and slices >= 8 else ""
            row(f"{tokens:,}", slices, policy, order, f"{rate / 1e12:,.4g}", f"{rate / product:.2f}" if product else "", beside, wanted)


def offloading(gpu):
    head("Offloading", "tokens", "α", "step, s", "beside α = 0", "aim", "peak, GiB", "predicted", "off by", "aim")
    for tokens in (192,) if gpu.quick else (128 * K,):
        kept = None
        for alpha in (0.0, 0.5, 1.0):
            run = gpu.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": 16, "memory.offload": alpha})
            if isinstance(run, str):
                row(f"{tokens:,}", alpha, run[:120], *[""] * 6)
                continue
            if alpha == 0:
                kept = seconds(run)
            peak, predicted = (device_bytes(run, kind, "total") for kind in ("measured", "predicted"))
            beside = f"{seconds(run) / kept:.3f}" if kept else ""
            wanted = aim(seconds(run) / kept, 0, 1.01) if kept and alpha == 1 and tokens >= 128 * K else ""
            row(f"{tokens:,}", alpha, f"{seconds(run):.3f}", beside, wanted, f"{peak / 2**30:.3f}", f"{predicted / 2**30:.3f}",
                f"{100 * (peak / predicted - 1):+.1f} %", aim(abs(peak / predicted - 1), 0, 0.02))


def stages(gpu):
    tokens = 192 if gpu.quick else 32 * K
    head("Four stages on the card", "schedule", "saved activations of the fullest rank, MiB", "beside 1f1b", "aim")
    first = None
    for name, slices in (("1f1b", 1), ("slimpipe", 8)):
        run = gpu.train(tokens, **{"ranks": 4, "parallel.pp": 4, "train.batch": 4, "schedule.name": name, "schedule.slices": slices})
        if isinstance(run, str):
            row(name, run[:120], "", "")
            continue
        held = device_bytes(run, "measured", "activations")
        if name == "1f1b":
            first = held
        wanted = aim(held / first, 0, 0.45) if first and name == "slimpipe" else ""
        row(f"{name}, {slices} slices", f"{held / 2**20:,.1f}", f"{held / first:.2f}" if first else "", wanted)


def longest(gpu):
    """All slices go through one layer after the other (chunks of a layer, groups of all slices): then the gradients of one layer's keys and
    values are there at a time."""
    head("The longest sequence", "layers", "tokens", "on the card", "on the host", "ended", "TFLOP/s",
         text='`memory.policy = "full"`, all records that can leave on the host; what was not trained is predicted, as it is before a start.')
    cases = [(4, 384, 0), (4, 768, 2)] if gpu.quick else [(8, K * K, 0), (8, 1536 * K, 0), (8, 2 * K * K, 0), (1, 1536 * K, 1)]
    for layers, tokens, steps in cases:
        slices = max(8, tokens // (32 * K))
        chunks = {"schedule.chunks": layers, "schedule.group": slices} if layers > 1 else {}
        shape = gpu.shape(tokens, layers)
        run = gpu.train(tokens, **{"model.layers": shape["layers"], "model.vocab": shape["vocab"], "schedule.name": "slimpipe",
                                    "schedule.slices": slices, **chunks, "memory.policy": "full", "memory.offload": 1.0,
                                    "numerics.repeatable": False, "train.steps": max(steps, 1), "dry": steps == 0})
        if isinstance(run, str):
            row(layers, f"{tokens:,}", *(run.split("|") if steps == 0 else ["", "", run[:120]]), "")
            continue
        held, away = (device_bytes(run, "measured", kind) / 2**30 for kind in ("total", "host"))
        row(layers, f"{tokens:,}", f"{held:.1f} GiB", f"{away:.1f} GiB", "trained", f"{gpu.rate(run, tokens, layers) / 1e12:,.4g}")


def peers(gpu):
    """transformers with torch's fused attention: as it comes, and with each layer recomputed."""
    head("Beside transformers", "tokens", "program", "tokens/s", "peak of the card, GiB")
    shape = [word for name, value in gpu.shape(32 * K).items() for word in (f"--{name.replace('_', '-')}", str(value))]
    for tokens in (96,) if gpu.quick else (32 * K,):
        for policy in ("none", "full"):
            run = gpu.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": 8, "memory.policy": policy})
            if isinstance(run, str):
                row(f"{tokens:,}", f"penstock, {policy}", run[:120], "")
                continue
            peak = device_bytes(run, "measured", "total")
            row(f"{tokens:,}", f"penstock, {policy}", f"{tokens / seconds(run):,.0f}", f"{peak / 2**30:.2f}")
        for name, words in (("transformers", []), ("transformers, checkpointing", ["--checkpointing"])):
            command = [sys.executable, "bench/peers/hf_train.py", "--device", "cpu" if gpu.quick else "cuda", "--dtype", "bf16-autocast",
                       *shape, "--seq-len", str(tokens), "--microbatches", "1", "--steps", "3", *words]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                row(f"{tokens:,}", name, (done.stderr.strip().splitlines() or ["nothing"])[-1][:120], "")
                continue
            report = json.loads(done.stdout.strip().splitlines()[-1])
            peak = report.get("peak_device_bytes")
            row(f"{tokens:,}", name, f"{report['tokens_per_second']['median']:,.0f}", f"{peak / 2**30:.2f}" if peak else "")


def exactness(gpu):
    head("The same results", "type", "beside", "difference", text="Twenty steps of a small model: greatest relative difference of a loss.")
    whole = {"schedule.name": "1f1b", "schedule.slices": 1}
    for precision in ("f32", "bf16"):
        small = {**{f"model.{key}": value for key, value in SMALL.items()}, "model.head_size": 64, "train.steps": 20, "train.batch": 4,
                 "train.precision": precision, "schedule.name": "slimpipe", "schedule.slices": 4}

        def losses(**options):
            run = gpu.train(256 if gpu.quick else K, **{**small, **options})
            assert not isinstance(run, str), run
            return [step["loss"] for step in run["steps"]]

        def difference(a, b):
            return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))

        alone = losses()
        if not gpu.quick:  # without a GPU there is no CPU run to compare with
            row(precision, "the processor", f"{difference(alone, losses(**{'train.device': 'cpu', 'train.threads': 1})):.1e}")
        for name, options, other in (("another run", {}, alone), ("four stages", {"ranks": 4, "parallel.pp": 4}, alone),
                                     ("1f1b of two stages and of one", {**whole, "ranks": 2, "parallel.pp": 2}, None)):
            found = difference(losses(**options), other or losses(**whole))
            row(precision, name, "none" if found == 0 else f"{found:.1e}")


def forecast(program):
    """Steps of the speeds kept in bench/results/gpu.txt, beside what simulate says of them with hardware/h200.toml; needs no GPU."""
    kept = re.findall(r"^\| ([\d,]+) \| (\d+) \| (\w+) \| repeatable \| ([\d.]+) \|", pathlib.Path("bench/results/gpu.txt").read_text(), re.M)
    assert kept, "no speeds are kept"
    head("Forecast", "tokens", "slices", "step, s", "simulated", "off by")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for tokens, slices, policy, rate in kept:
        count = int(tokens.replace(",", ""))
        shape = shape_of(count)
        keys = {"data.text": "README.md", "data.seq_len": count, "train.precision": "bf16", "train.device": "cuda", "train.batch": 1,
                "schedule.name": "slimpipe", "schedule.slices": slices, "memory.policy": policy,
                **{f"model.{key}": value for key, value in shape.items()}}
        (FOLDER / "run.toml").write_text("[train]\nmicro_batch = 1\n")
        words = [word for key, value in keys.items() for word in (f"--{key}", str(value))]
        printed = programs.output(program, "simulate", FOLDER / "run.toml", "--hardware", "h200", "--json", *words)
        measured, simulated = flops_of_token(shape, count) * count / float(rate) / 1e12, json.loads(printed)["makespan_s"]
        row(tokens, slices, f"{measured:.3f}", f"{simulated:.3f}", f"{100 * (simulated / measured - 1):+.1f} %")


PARTS = dict(speeds=speeds, exactness=exactness, stages=stages, peers=peers, offloading=offloading, slicing=slicing, longest=longest)


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("parts", metavar="PART", nargs="*", type=programs.one_of(["kernels", *PARTS, "forecast"]))
    asked = parser.parse_args()
    if "forecast" in asked.parts:
        return forecast(asked.program) if len(asked.parts) == 1 else parser.error("forecast stands alone")
    gpu = Gpu(asked.program, asked.quick)
    wanted = asked.parts or ["kernels", *(name for name in PARTS if name != "slicing")]
    try:
        product = None
        if {"kernels", "speeds"} & set(wanted):
            gpu.profile()
            product = kernels(gpu)
        for name, part in PARTS.items():
            if name in wanted:
                sys.stdout.flush()
                part(gpu, *([product] if part in (speeds, slicing) else []))
    finally:
        shutil.rmtree(gpu.out, ignore_errors=True)


if __name__ == "__main__":
    main()
