# SPDX-License-Identifier: Apache-2.0
"""Training on one card: speed beside the card's own products, what slices and offloading cost, memory beside what was predicted, a
pipeline's stages on one card, the longest sequence, and whether results are the processor's and repeat.

Usage: bench/gpu.py PATH/TO/penstock [--quick]
(from the root of the repository; --quick: a model of seconds, to see that everything runs)

The model has Llama 3's 8B layers: hidden 4096, ffn 14336, 32 heads, 8 of them for keys and values; 8 layers of its 32, whose states leave
room for activations. Speeds are medians of the steps after the first; FLOPs are the model's: 6 for each weight of a matrix and token, and
6·layers·hidden·tokens for causal attention.
"""
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tomllib

LARGE = dict(layers=8, hidden=4096, ffn=14336, heads=32, kv_heads=8, vocab=32768)
SMALL = dict(layers=4, hidden=64, ffn=128, heads=4, kv_heads=2, vocab=259)
STEPS = 4
FOLDER = pathlib.Path("build/bench/gpu")
K = 1024


def flops_of_token(shape, tokens):
    h, kv = shape["hidden"], shape["hidden"] * shape["kv_heads"] // shape["heads"]
    layer = 2 * h * h + 2 * h * kv + 3 * h * shape["ffn"]
    return 6 * (shape["layers"] * layer + h * shape["vocab"]) + 6 * shape["layers"] * h * tokens


class Card:
    def __init__(self, program, quick):
        self.program, self.quick = program, quick
        self.shape = SMALL if quick else LARGE
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.text = FOLDER / "random.txt"
        self.text.write_bytes(random.Random(1).randbytes((1 if quick else 16) << 20))

    def profile(self):
        out = FOLDER / "hardware.toml"
        words = ["--quick", "--budget", "0", "--precision", "f32"] if self.quick else []
        subprocess.run([self.program, "profile", "--device", "cuda", "--out", out, *words], check=True, capture_output=True)
        self.hardware = tomllib.loads(out.read_text())

    def train(self, tokens, **options):
        """The steps and summary of a run, or the line with which it ended."""
        keys = {"train.precision": "bf16", "train.device": "cuda", "train.steps": STEPS, "train.batch": 1, "data.text": self.text,
                "data.seq_len": tokens, "data.validation_fraction": 0, "train.checkpoint_every": 0, "memory.policy": "balanced",
                **{f"model.{key}": value for key, value in self.shape.items()}, **options}
        out = FOLDER / "run"
        subprocess.run(["rm", "-rf", out], check=True)
        ranks = keys.pop("ranks", 1)
        words = [word for key, value in keys.items() for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]
        (FOLDER / "run.toml").write_text("[train]\nmicro_batch = 1\n")
        done = subprocess.run([self.program, "train", FOLDER / "run.toml", "--ranks", str(ranks), "--output.dir", out, *words], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip().splitlines()[0]
        steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return {**json.loads((out / "summary.json").read_text()), "steps": steps}

    def rate(self, run, tokens):
        """FLOP/s."""
        return flops_of_token(self.shape, tokens) * statistics.median(step["tokens_per_second"] for step in run["steps"][1:])


def seconds(run):
    return statistics.median(step["step_s"] for step in run["steps"][1:])


def device_bytes(run, kind, category):
    return max(device[f"{kind}_bytes"][category] for device in run["devices"])


def aim(value, least, greatest=None):
    met = value >= least if greatest is None else value <= greatest
    return f"{'≥' if greatest is None else '≤'} {least if greatest is None else greatest}, {'met' if met else 'missed'}"


def kernels(card):
    measured, device = card.hardware["measured"], card.hardware["device"]
    products = measured.get("matrix_tflops") or measured["f32_matrix_tflops"]
    print(f"## The card\n\n| | |\n|---|---|\n| quickest product | {max(products):,.3g} TFLOP/s |\n| memory, read and written | {device['memory_gbps']:,.4g} GB/s |")
    print(f"| to and from the host at once, each way | {card.hardware['node']['host_link_gbps']:,.3g} GB/s |")
    print("\n| attention, tokens | causal TFLOP/s | backward | earlier slices | backward |\n|---|---|---|---|---|")
    for row in zip(*(measured[name] for name in ("attention_tokens", "attention_tflops", "attention_backward_tflops", "earlier_attention_tflops",
                                                 "earlier_attention_backward_tflops"))):
        print(f"| {row[0]:,.0f} | {' | '.join(f'{value:,.3g}' for value in row[1:])} |")
    print("\n| norms, rotation, SwiGLU of hidden states of | forward, of the memory's rate | backward | aim |\n|---|---|---|---|")
    for megabytes, forward, backward in zip(*(measured[name] for name in ("elementwise_mb", "elementwise_gbps", "elementwise_backward_gbps"))):
        shares = [rate / device["memory_gbps"] for rate in (forward, backward)]
        print(f"| {megabytes:,.3g} MB | {shares[0]:.2f} | {shares[1]:.2f} | {aim(min(shares), 0.8)} |")
    return 1e12 * max(products)


def speeds(card, product):
    print("\n## Speed\n\n| tokens | slices | policy | TFLOP/s | of the product | beside one slice | aim |\n|---|---|---|---|---|---|---|")
    aims = {128 * K: 0.65, 512 * K: 0.62}
    for tokens in (96, 192) if card.quick else (8 * K, 32 * K, 128 * K, 512 * K):
        whole = None
        for slices in (1, 4) if card.quick else (1, 8, 32):
            for policy in ("none", "balanced", "full"):
                run = card.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": slices, "memory.policy": policy})
                if isinstance(run, str):
                    print(f"| {tokens:,} | {slices} | {policy} | {run[:120]} | | | |")
                    continue
                rate = card.rate(run, tokens)
                if slices == 1 and policy == "balanced":
                    whole = rate
                beside = f"{rate / whole:.3f}" if whole and policy == "balanced" and slices > 1 else ""
                wanted = aim(rate / product, aims[tokens]) if tokens in aims and slices >= 8 and policy == "balanced" else ""
                print(f"| {tokens:,} | {slices} | {policy} | {rate / 1e12:,.4g} | {rate / product:.2f} | {beside} | {wanted} |")


def offloading(card):
    print("\n## Offloading\n\n| tokens | α | step, s | beside α = 0 | aim | peak, GiB | predicted | off by | aim |\n|---|---|---|---|---|---|---|---|---|")
    for tokens in (192,) if card.quick else (32 * K, 128 * K, 256 * K):
        kept = None
        for alpha in (0.0, 0.5, 1.0):
            run = card.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": 16, "memory.offload": alpha})
            if isinstance(run, str):
                print(f"| {tokens:,} | {alpha} | {run[:120]} | | | | | | |")
                continue
            kept = kept or seconds(run)
            peak, predicted = (device_bytes(run, kind, "total") for kind in ("measured", "predicted"))
            wanted = aim(seconds(run) / kept, 0, 1.01) if alpha == 1 and tokens >= 128 * K else ""
            print(f"| {tokens:,} | {alpha} | {seconds(run):.3f} | {seconds(run) / kept:.3f} | {wanted} | {peak / 2**30:.3f} | {predicted / 2**30:.3f} "
                  f"| {100 * (peak / predicted - 1):+.1f} % | {aim(abs(peak / predicted - 1), 0, 0.02)} |")


def stages(card):
    tokens = 192 if card.quick else 32 * K
    print("\n## Four stages on the card\n\n| schedule | saved activations of the fullest rank, MiB | beside 1f1b | aim |\n|---|---|---|---|")
    first = None
    for name, slices in (("1f1b", 1), ("slimpipe", 8)):
        run = card.train(tokens, **{"ranks": 4, "parallel.pp": 4, "train.batch": 4, "schedule.name": name, "schedule.slices": slices})
        if isinstance(run, str):
            print(f"| {name} | {run[:120]} | | |")
            continue
        held = device_bytes(run, "measured", "activations")
        first = first or held
        print(f"| {name}, {slices} slices | {held / 2**20:,.1f} | {held / first:.2f} | {aim(held / first, 0, 0.45) if name == 'slimpipe' else ''} |")


def longest(card):
    print("\n## The longest sequence\n\nWith `memory.policy = \"full\"` and all records that can leave on the host.\n\n| tokens | ended | TFLOP/s |\n|---|---|---|")
    for tokens in (384, 768) if card.quick else (512 * K, K * K, 1536 * K, 2 * K * K, 3 * K * K, 4 * K * K):
        run = card.train(tokens, **{"schedule.name": "slimpipe", "schedule.slices": max(8, tokens // (32 * K)), "memory.policy": "full",
                                    "memory.offload": 1.0, "train.steps": 2})
        if isinstance(run, str):
            print(f"| {tokens:,} | {run[:160]} | |")
            return
        print(f"| {tokens:,} | trained | {card.rate(run, tokens) / 1e12:,.4g} |")


def exactness(card):
    print("\n## The same results\n\nTwenty steps of a small model in f32: greatest relative difference of a loss.\n\n| beside | difference |\n|---|---|")
    small = {**{f"model.{key}": value for key, value in SMALL.items()}, "train.steps": 20, "train.batch": 4, "train.precision": "f32",
             "schedule.name": "slimpipe", "schedule.slices": 4}

    def losses(**options):
        run = card.train(256, **{**small, **options})
        assert not isinstance(run, str), run
        return [step["loss"] for step in run["steps"]]

    def difference(a, b):
        return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))

    alone = losses()
    if not card.quick:  # a card that is none has no processor's program beside it
        print(f"| the processor | {difference(alone, losses(**{'train.device': 'cpu', 'train.threads': 1})):.1e} |")
    for name, options in (("another run", {}), ("two stages", {"ranks": 2, "parallel.pp": 2}), ("four stages", {"ranks": 4, "parallel.pp": 4}),
                          ("1f1b of two stages, whole sequences, and itself on one", None)):
        if options is None:
            whole = {"schedule.name": "1f1b", "schedule.slices": 1}
            found = difference(losses(**whole, **{"ranks": 2, "parallel.pp": 2}), losses(**whole))
        else:
            found = difference(losses(**options), alone)
        print(f"| {name} | {'none' if found == 0 else f'{found:.1e}'} |")


def main(program, quick):
    card = Card(program, quick)
    card.profile()
    product = kernels(card)
    for part in (lambda: speeds(card, product), lambda: offloading(card), lambda: stages(card), lambda: longest(card), lambda: exactness(card)):
        part()
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], "--quick" in sys.argv[2:])
