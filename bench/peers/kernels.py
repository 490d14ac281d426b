# SPDX-License-Identifier: Apache-2.0
"""Times the matrix products and the attention kernels of one training step alone: what no trainer on these kernels can beat.

With experts each of them has as many rows as the others. Every product is timed with its own shape, with outputs that exist already, best of several; then multiplied by how often a step runs it.
"""

import json
import time

import torch

import common

FORWARD, BACKWARD = (torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
                     torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward)


def best(work, repeats):
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def linear_seconds(tokens, inputs, outputs, dtype, repeats):
    """Forward, gradient for the input, gradient for the weight of one linear layer."""
    x, w, y = (torch.randn(*shape).to(dtype) for shape in ((tokens, inputs), (outputs, inputs), (tokens, outputs)))
    dx, dw = torch.empty_like(x), torch.empty_like(w)
    return (best(lambda: torch.mm(x, w.t(), out=y), repeats),
            best(lambda: torch.mm(y, w, out=dx), repeats),
            best(lambda: torch.mm(y.t(), x, out=dw), repeats))


def attention_seconds(args, dtype, heads_first, repeats):
    """heads_first: q, k, v lie in memory as [head, position, dim]; else as a linear layer leaves them, [position, head, dim]."""
    head_dim = args.hidden // args.heads
    if heads_first:
        q, k, v, dy = (torch.randn(1, args.heads, args.seq_len, head_dim).to(dtype) for _ in range(4))
    else:
        q, k, v, dy = (torch.randn(1, args.seq_len, args.heads, head_dim).to(dtype).transpose(1, 2) for _ in range(4))
    y, lse = FORWARD(q, k, v, 0.0, True)
    return (best(lambda: FORWARD(q, k, v, 0.0, True), repeats),
            best(lambda: BACKWARD(dy, q, k, v, y, lse, 0.0, True), repeats))


def main():
    p = common.parser(__doc__)
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--experts", type=int, default=1)
    p.add_argument("--experts-per-token", type=int, default=1)
    args = common.parse(p)
    torch.set_num_threads(args.threads)
    dtype = torch.float32 if args.dtype == "f32" else torch.bfloat16
    s, h, kv = args.seq_len, args.hidden, args.kv_heads * args.hidden // args.heads
    rows = s * args.experts_per_token // args.experts
    layer_shapes = ((s, h, h, 2), (s, h, kv, 2), (rows, h, args.ffn, 2 * args.experts), (rows, args.ffn, h, args.experts))
    gemm, shapes = [0.0, 0.0, 0.0], {}
    for tokens, inputs, outputs, count in [(m, i, o, n * args.layers) for m, i, o, n in layer_shapes] + [(s, h, args.vocab, 1)]:
        seconds = linear_seconds(tokens, inputs, outputs, dtype, args.repeats)
        shapes[f"{tokens}x{inputs}x{outputs}"] = [round(2 * tokens * inputs * outputs / t / 1e9, 1) for t in seconds]
        gemm = [total + t * count * args.microbatches for total, t in zip(gemm, seconds)]
    attention = {name: [t * args.layers * args.microbatches for t in attention_seconds(args, dtype, first, max(2, args.repeats // 2))]
                 for name, first in (("heads first", True), ("positions first", False))}
    n = 3072
    a, b, c = (torch.randn(n, n).to(dtype) for _ in range(3))
    rate = 2 * n**3 / best(lambda: torch.mm(a, b.t(), out=c), args.repeats)
    total = sum(gemm) + min(sum(t) for t in attention.values())
    print(json.dumps({
        "size": args.size, "dtype": args.dtype, "threads": args.threads,
        "gemm_seconds_forward_input_weight": gemm, "attention_seconds_forward_backward": attention,
        "kernel_seconds": total, "kernel_tokens_per_second": args.microbatches * s / total,
        "gemm_gflops_forward_input_weight": shapes, "big_gemm_gflops": rate / 1e9,
        "model_flops": common.flops_per_step(args)}))


if __name__ == "__main__":
    main()
