# SPDX-License-Identifier: Apache-2.0
"""Trains transformers' LlamaForCausalLM by torch's tensor or context parallelism over gloo; rank 0 prints one JSON line.

torchrun --standalone --nproc-per-node 2 torch_tensor.py --mode tp --threads 1

tp: DTensor's tensor parallelism with sequence parallelism and loss_parallel, by the plan that torch's own trainers have for Llama.
cp: torch.distributed.tensor.experimental.context_parallel. In torch 2.11 it knows the attention of CUDA alone and refuses the CPU's;
the line then says {"refused": why}. Nor does it take the MATH backend ("aten.add.Tensor got mixed torch.Tensor and DTensor"), and
its form for flex_attention cannot train ("FlexAttention does not support backward on CPU").
ring: what context_parallel calls on CUDA, torch's own ring attention, here with the CPU's attention: a rank has the first and the last
of four pieces of each sequence, or the two between, and gathers the keys and values of the other.
In cp and ring DDP adds the gradients, once a step.
"""

import contextlib
import json
import os

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)
from torch.nn.parallel import DistributedDataParallel
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

import common
import hf_train


def shard_layer(layer, mesh):
    """Outside the products each rank has its part of the tokens; dimension 1 is theirs."""
    tokens, columns, rows = SequenceParallel(), ColwiseParallel(), RowwiseParallel(output_layouts=Shard(1))
    parallelize_module(layer, mesh, {
        "input_layernorm": tokens,
        "self_attn": PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)},
                                        desired_input_kwarg_layouts={"hidden_states": Replicate()}),
        "self_attn.q_proj": columns, "self_attn.k_proj": columns, "self_attn.v_proj": columns, "self_attn.o_proj": rows,
        "post_attention_layernorm": tokens,
        "mlp": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        "mlp.gate_proj": columns, "mlp.up_proj": columns, "mlp.down_proj": rows})


def shard_tensors(args, model):
    """Returns the model, and what trains it on a step's tokens."""
    mesh = init_device_mesh("cpu", (1, dist.get_world_size()), mesh_dim_names=("replica", "tensor"))
    for layer in model.model.layers:
        shard_layer(layer, mesh["tensor"])
    parallelize_module(model, mesh["tensor"], {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "model.norm": SequenceParallel(),
        "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    if args.compile:
        for layer in model.model.layers:
            layer.compile()
    if args.cast_weights:  # fully_shard over one rank is how torch's trainers mix precisions
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for module in (*model.model.layers, model):
            fully_shard(module, mesh=mesh["replica"], mp_policy=policy, reshard_after_forward=False)
    positions = torch.arange(args.seq_len).unsqueeze(0)  # else made of the length of a rank's part
    model.register_forward_pre_hook(lambda _, inputs, named: (inputs, {**named, "position_ids": positions}), with_kwargs=True)
    return model, lambda optimizer, tokens: hf_train.train_step(args, model, optimizer, tokens, lambda last: loss_parallel())


class RingAttention(torch.autograd.Function):
    """Causal, of heads [1, heads, this rank's tokens, head_dim]."""

    @staticmethod
    def forward(ctx, query, key, value, scale):
        ctx.scale = scale
        out, log_sum_exp = _attention._templated_ring_attention(
            dist.group.WORLD, 2, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default, query, key, value,
            is_causal=True, scale=scale)
        ctx.save_for_backward(query, key, value, out, log_sum_exp)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        gradients = _attention._templated_ring_attention_backward(
            dist.group.WORLD, 2, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default, grad_out, "grad_out",
            *ctx.saved_tensors, is_causal=True, dropout_p=0.0, scale=ctx.scale)
        return *gradients, None


def ring_attention(module, query, key, value, attention_mask, scaling=None, **_):
    """As transformers calls attention."""
    key, value = (repeat_kv(heads, module.num_key_value_groups) for heads in (key, value))
    query, key = query.to(value.dtype), key.to(value.dtype)  # autocast leaves rotated heads in f32
    return RingAttention.apply(query, key, value, scaling).transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def own_pieces(tensors):
    """What context_parallel does to tensors [1, seq_len]."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for tensor in tensors:
        pieces = tensor.chunk(2 * ranks, dim=1)
        tensor.set_(torch.cat((pieces[rank], pieces[2 * ranks - 1 - rank]), dim=1))
    yield


def share_sequences(args, model):
    """Returns the model, and what trains it on a step's tokens."""
    # A name that transformers does not know: for others it would make a mask of positions that jump.
    transformers.AttentionInterface.register("shared", ring_attention if args.mode == "ring" else sdpa_attention_forward)
    model.set_attn_implementation("shared")
    model = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def parts_of(tensors):
        return own_pieces(tensors) if args.mode == "ring" else context_parallel(
            mesh, buffers=tensors, buffer_seq_dims=[1] * len(tensors), no_restore_buffers=set(tensors))

    return model, lambda optimizer, tokens: train_step(args, model, optimizer, tokens, parts_of)


def train_step(args, model, optimizer, tokens, parts_of):
    """Returns this rank's part of the loss."""
    total, sequences, targets = 0.0, len(tokens), args.seq_len - 1
    for i, sequence in enumerate(tokens.split(1), 1):
        ids, next_ids = sequence.clone(), torch.nn.functional.pad(sequence, (0, 1), value=-100)[:, 1:].clone()
        positions = torch.arange(args.seq_len).unsqueeze(0)
        autocast = torch.autocast("cpu", torch.bfloat16) if args.dtype == "bf16-autocast" else contextlib.nullcontext()
        with contextlib.nullcontext() if i == sequences else model.no_sync(), parts_of([ids, next_ids, positions]):
            with autocast:
                loss = model(input_ids=ids, position_ids=positions, labels=next_ids, shift_labels=next_ids,
                             num_items_in_batch=targets).loss / sequences
            (loss * dist.get_world_size()).backward()  # DDP takes means
        total += loss.detach()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total.item()


MODES = {"tp": ("torch tensor parallel", shard_tensors), "cp": ("torch context_parallel", share_sequences),
         "ring": ("torch ring attention", share_sequences)}


def main():
    p = common.parser(__doc__)
    p.add_argument("--mode", choices=MODES, default="tp")
    p.add_argument("--cast-weights", action="store_true", help="tp: FSDP2's mixed precision, which gathers and computes in bf16, instead of autocast")
    p.set_defaults(threads=1, save=None)
    args = common.parse(p)
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    if args.cast_weights:
        args.dtype = "f32"
    rss_before_model = common.peak_rss()
    peer, share_out = MODES[args.mode]
    model, step = share_out(args, hf_train.build(args))
    optimizer = common.adamw(model.parameters(), args.lr)
    try:
        clock, losses = common.run_steps(args, lambda tokens: step(optimizer, tokens))
    except RuntimeError as error:  # all ranks meet it in the same operation
        if args.mode != "cp":
            raise
        if dist.get_rank() == 0:
            print(json.dumps({"peer": peer, "size": args.size, "refused": f"{type(error).__name__}: {error}"}), flush=True)
        os._exit(0)

    losses = [sum(of_ranks) if args.mode != "tp" else of_ranks[0] for of_ranks in losses]
    peaks, before = common.everyone(common.peak_rss()), common.everyone(rss_before_model)
    if dist.get_rank() == 0:
        common.report(args, peer, clock, losses, sum(peaks), peak_rss_bytes_per_rank=peaks, rss_before_model_bytes=sum(before),
                      ranks=dist.get_world_size(), mode=args.mode, cast_weights=args.cast_weights, transformers=transformers.__version__)
    dist.barrier()
    os._exit(0)  # torch 2.11 now and then hangs or aborts while it takes gloo's threads down


if __name__ == "__main__":
    main()
