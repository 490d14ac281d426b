# SPDX-License-Identifier: Apache-2.0
"""What all the scripts here share: the model's size, its work in flops, its data, its first weights, its report."""

import argparse
import json
import os
import resource
import statistics
import time
import zlib

import torch
import torch.distributed as dist

# name: layers, hidden, ffn, heads, kv_heads, vocab, seq_len, microbatches
SIZES = {
    "S": (8, 512, 1376, 8, 8, 8192, 2048, 4),
    "M": (12, 768, 2048, 12, 12, 32000, 2048, 4),
    "L": (4, 512, 1376, 8, 8, 8192, 16384, 2),
    "XS": (2, 64, 128, 2, 2, 512, 128, 4),  # to see that it works
}
SIZE_FIELDS = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "seq_len", "microbatches")


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--size", choices=SIZES, default="S", help="a standard size; the flags below override parts of it")
    for field in SIZE_FIELDS:
        p.add_argument("--" + field.replace("_", "-"), type=int)
    p.add_argument("--dtype", choices=("f32", "bf16-autocast", "bf16"), default="f32",
                   help="bf16-autocast: f32 weights, gradients and moments, bf16 products. bf16: everything bf16, no master copy")
    p.add_argument("--steps", type=int, default=3, help="steps to count, after the warm-up, with the machine to ourselves")
    p.add_argument("--warmup", type=int, default=2, help="first steps that are not counted; steps get faster until the allocator has all its memory")
    p.add_argument("--max-steps", type=int, default=8, help="give up waiting for a quiet machine after so many steps")
    p.add_argument("--threads", type=int, default=2, help="threads of each process")
    p.add_argument("--compile", action="store_true", help="torch.compile")
    p.add_argument("--checkpointing", action="store_true", help="recompute each layer in the backward pass")
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=0)
    return p


def parse(p):
    args = p.parse_args()
    for field, value in zip(SIZE_FIELDS, SIZES[args.size]):
        if getattr(args, field) is None:
            setattr(args, field, value)
    return args


def tokens_of_step(args, step):
    """Random tokens [microbatches, seq_len], the same in every process and on every machine."""
    generator = torch.Generator().manual_seed(args.seed * 1_000_003 + step)
    return torch.randint(args.vocab, (args.microbatches, args.seq_len), generator=generator)


@torch.no_grad()
def fill_weights(model):
    """Weights that depend on their names alone, so that each pipeline rank fills its share without the others."""
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            weight.fill_(1.0)
        else:
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.02)


def matmul_weights(args):
    """Weights that multiply every token: all but the embedding table and the norms."""
    head_dim = args.hidden // args.heads
    attention = 2 * args.hidden * args.hidden + 2 * args.hidden * args.kv_heads * head_dim
    return args.layers * (attention + 3 * args.hidden * args.ffn) + args.vocab * args.hidden


def flops_per_step(args):
    """Model flops of one step, forward and backward, nothing counted twice for recomputation.

    6 per matmul weight and token. Attention: a token sees s/2 others on average (causal half);
    two products of 2*h flops for each of them forward, twice that backward: 6*L*h*s per token.
    """
    tokens = args.microbatches * args.seq_len
    return tokens * (6 * matmul_weights(args) + 6 * args.layers * args.hidden * args.seq_len)


class StepClock:
    """Times steps, and how many cores other programs kept busy meanwhile.

    A step beside a busy program is not a fair one: quiet() are the counted steps without.
    """

    def __init__(self, args, all_cpu_seconds=sum):
        """all_cpu_seconds: from a list with this process's CPU seconds to the sum over all of our processes."""
        self.args, self.all_cpu_seconds = args, all_cpu_seconds
        self.seconds, self.other_cores, self.cpu_seconds = [], [], []

    def start(self):
        self.busy, self.own, self.began = busy_cpu_seconds(), time.process_time(), time.perf_counter()

    def stop(self):
        seconds = time.perf_counter() - self.began
        busy, own = busy_cpu_seconds() - self.busy, self.all_cpu_seconds([time.process_time() - self.own])
        self.seconds.append(round(seconds, 4))
        self.cpu_seconds.append(round(own, 2))
        self.other_cores.append(round(max(0.0, busy - own) / seconds, 2))

    def quiet(self):
        counted = list(zip(self.seconds, self.other_cores))[self.args.warmup:]
        return [seconds for seconds, other in counted if other <= 0.05]

    def finished(self):
        return len(self.quiet()) >= self.args.steps or len(self.seconds) >= self.args.max_steps


def busy_cpu_seconds():
    """CPU seconds of the whole machine that were not idle (steal included)."""
    with open("/proc/stat") as stat:
        ticks = [int(t) for t in stat.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def adamw(parameters, lr):
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def everyone(value):
    """The value of every rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def run_steps(args, train_step):
    """Of all ranks together. train_step(the step's tokens) returns what this rank knows of the loss; returns the clock, and of each
    step what the ranks know."""
    clock, losses = StepClock(args, lambda own: sum(s for rank in everyone(own) for s in rank)), []
    while not clock.finished():
        tokens = tokens_of_step(args, len(losses))
        dist.barrier()
        clock.start()
        loss = train_step(tokens)
        dist.barrier()
        clock.stop()
        losses.append(everyone(loss))
        clock.seconds[-1], clock.other_cores[-1] = everyone((clock.seconds[-1], clock.other_cores[-1]))[0]
    return clock, losses


def report(args, peer, clock, losses, peak_rss_bytes, **more):
    counted = clock.quiet() or clock.seconds[args.warmup:]
    tokens = args.microbatches * args.seq_len
    print(json.dumps({
        "peer": peer, "size": args.size, **{f: getattr(args, f) for f in SIZE_FIELDS},
        "dtype": args.dtype, "compile": args.compile, "checkpointing": args.checkpointing, "threads": args.threads,
        "tokens_per_second": {"median": tokens / statistics.median(counted), "best": tokens / min(counted)},
        "model_flops_per_second": flops_per_step(args) / min(counted),
        "peak_rss_bytes": peak_rss_bytes,
        "quiet_steps": len(clock.quiet()), "seconds_per_step": clock.seconds, "cpu_seconds": statistics.median(clock.cpu_seconds[args.warmup:]),
        "other_busy_cores": clock.other_cores, "loss": losses,
        "versions": {"torch": torch.__version__}, **more,
    }), flush=True)
