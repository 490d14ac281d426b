# SPDX-License-Identifier: Apache-2.0
"""Trains the same Llama under torch.distributed.pipelining over gloo, one process per pipeline rank; rank 0 prints one JSON line.

torchrun --standalone --nproc-per-node 2 torch_pipeline.py --schedule 1F1B --threads 1
"""

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules
from torch.utils.checkpoint import checkpoint

import common

SCHEDULES = {  # name: class, stages on each rank, placed as a V
    "GPipe": (schedules.ScheduleGPipe, 1, False),
    "1F1B": (schedules.Schedule1F1B, 1, False),
    "Interleaved1F1B": (schedules.ScheduleInterleaved1F1B, 2, False),
    "LoopedBFS": (schedules.ScheduleLoopedBFS, 2, False),
    "InterleavedZeroBubble": (schedules.ScheduleInterleavedZeroBubble, 2, False),
    "ZBVZeroBubble": (schedules.ScheduleZBVZeroBubble, 2, True),
    "DualPipeV": (schedules.ScheduleDualPipeV, 2, True),
}


def rope_table(args):
    head_dim = args.hidden // args.heads
    frequency = 10000.0 ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(args.seq_len).float(), frequency).repeat(1, 2)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.head_dim = args.hidden // args.heads
        self.q_proj = nn.Linear(args.hidden, args.hidden, bias=False)
        self.k_proj = nn.Linear(args.hidden, args.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(args.hidden, args.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(args.hidden, args.hidden, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (proj(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
                   for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        groups = q.shape[1] // k.shape[1]
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.gate_proj = nn.Linear(args.hidden, args.ffn, bias=False)
        self.up_proj = nn.Linear(args.hidden, args.ffn, bias=False)
        self.down_proj = nn.Linear(args.ffn, args.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(args.hidden, eps=1e-6)
        self.self_attn = Attention(args)
        self.post_attention_layernorm = nn.RMSNorm(args.hidden, eps=1e-6)
        self.mlp = MLP(args)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Backbone(nn.Module):
    """Holds the parts under the names that transformers gives them."""

    def __init__(self, args, layers, first, last):
        super().__init__()
        if first:
            self.embed_tokens = nn.Embedding(args.vocab, args.hidden)
        self.layers = nn.ModuleDict({str(i): Layer(args) for i in layers})
        if last:
            self.norm = nn.RMSNorm(args.hidden, eps=1e-6)


class Stage(nn.Module):
    """Some consecutive layers; the first stage also embeds, the last also makes the logits."""

    def __init__(self, args, layers, first, last):
        super().__init__()
        self.dtype, self.first, self.last, self.checkpointing = args.dtype, first, last, args.checkpointing
        self.model = Backbone(args, layers, first, last)
        if last:
            self.lm_head = nn.Linear(args.hidden, args.vocab, bias=False)
        common.fill_weights(self)
        self.cos, self.sin = rope_table(args)
        if args.dtype == "bf16":
            self.to(torch.bfloat16)
            self.cos, self.sin = self.cos.bfloat16(), self.sin.bfloat16()
        if args.compile:
            for layer in self.model.layers.values():
                layer.compile()

    def forward(self, x):
        autocast = torch.autocast("cpu", torch.bfloat16) if self.dtype == "bf16-autocast" else contextlib.nullcontext()
        with autocast:
            if self.first:
                x = self.model.embed_tokens(x)
            for layer in self.model.layers.values():
                if self.checkpointing:
                    x = checkpoint(layer, x, self.cos, self.sin, use_reentrant=False)
                else:
                    x = layer(x, self.cos, self.sin)
            return self.lm_head(self.model.norm(x)) if self.last else x


class GlooStage(PipelineStage):
    """Without the first round of messages to the neighbours: only NCCL needs it, and gloo refuses it to itself in a V."""

    def _get_init_p2p_neighbors_ops(self):
        return []


def loss_of(logits, tokens):
    """As transformers: position i predicts token i+1, the last position predicts nothing; f32."""
    target = F.pad(tokens, (0, 1), value=-100)[:, 1:]
    return F.cross_entropy(logits.float().flatten(0, 1), target.flatten())


def layers_of_stages(args, count):
    sizes = [int(n) for n in args.layers_per_stage.split(",")] if args.layers_per_stage else [
        args.layers // count + (i < args.layers % count) for i in range(count)]
    if len(sizes) != count or sum(sizes) != args.layers:
        raise SystemExit(f"--layers-per-stage needs {count} numbers that add up to {args.layers}, got {sizes}")
    ends = [sum(sizes[:i + 1]) for i in range(count)]
    return [range(end - size, end) for size, end in zip(sizes, ends)]


def build_stages(args, per_rank, v_shape):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    count = ranks * per_rank
    mine = [rank, count - 1 - rank] if v_shape else list(range(rank, count, ranks))
    layers = layers_of_stages(args, count)
    modules = [Stage(args, layers[i], i == 0, i == count - 1) for i in mine]
    return [GlooStage(m, i, count, torch.device("cpu")) for m, i in zip(modules, mine)]


def train_step(args, schedule, stages, optimizer, tokens):
    """Returns the loss on the rank that has the last stage, else None."""
    has_last = any(s.is_last for s in stages)
    losses = []
    inputs = (tokens,) if any(s.is_first for s in stages) else ()
    schedule.step(*inputs, target=tokens if has_last else None, losses=losses if has_last else None, return_outputs=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return torch.stack(losses).mean().item() if losses else None


def main():
    p = common.parser(__doc__)
    p.set_defaults(threads=1)
    p.add_argument("--schedule", choices=SCHEDULES, default="1F1B")
    p.add_argument("--layers-per-stage", help="for example 7,5; the head weighs as much as a few layers; default: even")
    args = common.parse(p)
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    rss_before_model = common.peak_rss()
    kind, per_rank, v_shape = SCHEDULES[args.schedule]
    stages = build_stages(args, per_rank, v_shape)
    optimizer = common.adamw([w for s in stages for w in s.submod.parameters()], args.lr)
    schedule = kind(stages if per_rank > 1 else stages[0], args.microbatches, loss_fn=loss_of)

    clock, losses = common.run_steps(args, lambda tokens: train_step(args, schedule, stages, optimizer, tokens))
    losses = [next(l for l in of_ranks if l is not None) for of_ranks in losses]

    peaks, before = common.everyone(common.peak_rss()), common.everyone(rss_before_model)
    if dist.get_rank() == 0:
        ranks = dist.get_world_size()
        common.report(args, "torch.distributed.pipelining", clock, losses, sum(peaks), peak_rss_bytes_per_rank=peaks,
                      rss_before_model_bytes=sum(before), schedule=args.schedule, ranks=ranks,
                      layers_per_stage=args.layers_per_stage or "even")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
