# SPDX-License-Identifier: Apache-2.0
"""Trains transformers' LlamaForCausalLM in one process on random tokens; prints one JSON line."""

import contextlib

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

import common


def build(args):
    config = LlamaConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, intermediate_size=args.ffn,
        num_attention_heads=args.heads, num_key_value_heads=args.kv_heads, vocab_size=args.vocab,
        max_position_embeddings=args.seq_len, attn_implementation="sdpa", use_cache=False)
    return prepared(args, LlamaForCausalLM(config))


def prepared(args, model):
    common.fill_weights(model)
    if args.save:
        model.save_pretrained(args.save)
    if args.dtype == "bf16":
        model.to(torch.bfloat16)
    if args.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.to(device_of(args)).train()


def device_of(args):
    return getattr(args, "device", "cpu")


def train_step(args, model, optimizer, tokens, during=lambda last: contextlib.nullcontext()):
    """Returns the mean loss of the sequences. during(whether it is the last): what each is computed within."""
    autocast = torch.autocast(device_of(args), torch.bfloat16) if args.dtype == "bf16-autocast" else contextlib.nullcontext()
    total, sequences = 0.0, tokens.split(1)
    for i, sequence in enumerate(sequences, 1):
        with during(i == len(sequences)):
            with autocast:
                loss = model(input_ids=sequence, labels=sequence).loss / len(sequences)
            loss.backward()
        total += loss.detach()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total.item()


def train(args, build):
    """The steps that the arguments ask for, of build(args), and their report."""
    torch.set_num_threads(args.threads)
    rss_before_model = common.peak_rss()
    model = build(args)
    optimizer = common.adamw(model.parameters(), args.lr)
    step_model = torch.compile(model) if args.compile else model

    clock, losses = common.StepClock(args), []
    while not clock.finished():
        tokens = common.tokens_of_step(args, len(losses)).to(device_of(args))
        clock.start()
        losses.append(train_step(args, step_model, optimizer, tokens))
        clock.stop()

    common.report(args, "transformers", clock, losses, common.peak_rss(),
                  rss_before_model_bytes=rss_before_model,
                  peak_device_bytes=torch.cuda.max_memory_allocated() if device_of(args) == "cuda" else None,
                  transformers=transformers.__version__)


def parser(description):
    p = common.parser(description)
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--save", metavar="FOLDER", help="write the first weights as a Hugging Face checkpoint")
    return p


def main():
    train(common.parse(parser(__doc__)), build)


if __name__ == "__main__":
    main()
