# SPDX-License-Identifier: Apache-2.0
"""Trains transformers' LlamaForCausalLM by data parallelism over gloo, DDP or FSDP2; rank 0 prints one JSON line.

torchrun --standalone --nproc-per-node 2 torch_data.py --wrapper DDP --threads 1

Gloo in torch 2.11 has all collectives that the two need: reduce_scatter_tensor (also of the mean) and all_gather_into_tensor.
"""

import contextlib
import os

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import common
import hf_train


def wrap_ddp(args, model):
    """Gradients are added once a step, in the last sequence's backward."""
    model = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    return model, lambda last: contextlib.nullcontext() if last else model.no_sync()


def wrap_fsdp2(args, model):
    """A unit for each layer and one for the rest, as torch's own trainers do."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if args.cast_weights else MixedPrecisionPolicy()
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy, reshard_after_forward=not args.keep_weights)
    fully_shard(model, mp_policy=policy, reshard_after_forward=not args.keep_weights)

    @contextlib.contextmanager
    def during(last):
        model.set_requires_gradient_sync(last or args.reduce_each)
        model.set_reshard_after_backward(last or not args.keep_weights)
        model.set_is_last_backward(last)
        yield

    return model, during


WRAPPERS = {"DDP": wrap_ddp, "FSDP2": wrap_fsdp2}


def main():
    p = common.parser(__doc__)
    p.add_argument("--wrapper", choices=WRAPPERS, default="DDP")
    p.add_argument("--cast-weights", action="store_true", help="FSDP2: gather weights in bf16 and compute in it, instead of autocast")
    p.add_argument("--keep-weights", action="store_true", help="FSDP2: keep gathered weights to the end of the step")
    p.add_argument("--reduce-each", action="store_true", help="FSDP2: add the replicas' gradients after each sequence, not once a step")
    p.set_defaults(threads=1, save=None)
    args = common.parse(p)
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if args.cast_weights:
        args.dtype = "f32"
    rss_before_model = common.peak_rss()
    model, during = WRAPPERS[args.wrapper](args, hf_train.build(args))
    optimizer = common.adamw(model.parameters(), args.lr)

    clock, losses = common.run_steps(args, lambda tokens: hf_train.train_step(args, model, optimizer, tokens.chunk(ranks)[rank], during))
    losses = [sum(of_ranks) / ranks for of_ranks in losses]

    peaks, before = common.everyone(common.peak_rss()), common.everyone(rss_before_model)
    if rank == 0:
        common.report(args, args.wrapper, clock, losses, sum(peaks), peak_rss_bytes_per_rank=peaks, rss_before_model_bytes=sum(before),
                      ranks=ranks, cast_weights=args.cast_weights, keep_weights=args.keep_weights, reduce_each=args.reduce_each,
                      transformers=transformers.__version__)
    dist.barrier()
    os._exit(0)  # torch 2.11 now and then hangs or aborts while it takes gloo's threads down


if __name__ == "__main__":
    main()
