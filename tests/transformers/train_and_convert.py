#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of transformers train here as they do there, and come back.

Usage: train_and_convert.py PATH/TO/penstock

For each kind of Llama, Qwen3, Mixtral, Qwen3-MoE and Qwen2-MoE: transformers writes random weights and trains five steps on random tokens;
penstock starts from the same folder, trains on the same tokens from a .bin and .idx pair, and must show the same losses to 1e-5,
with the routers' balance loss where the case has it. In packed cases several documents share a sequence, and some tokens are
no targets; transformers trains on each document alone, with labels of -100. The run, converted to Hugging Face's form, must give transformers the logits
of its own trained model to 1e-5; and the first weights, converted to our form and back, the very same bits.
Exit 0: all equal; 1: not; 77: skipped, packages cannot be had.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import packages

packages.require_torch(["transformers"], group="transformers", gigabytes=0.3)
import torch
import transformers
from transformers import AutoModelForCausalLM, LlamaConfig, MixtralConfig, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig

TOLERANCE = 1e-5
STEPS, BATCH, SEQ_LEN = 5, 4, 96
RATE = 3e-4
EPSILON = 1e-6  # of AdamW: with 1e-8 either side's rounding of gradients near zero moves logits by 2e-5, beside a run in f64
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
BASE = dict(num_hidden_layers=3, hidden_size=64, intermediate_size=172, num_attention_heads=4, num_key_value_heads=4,
            vocab_size=500, max_position_embeddings=512, use_cache=False, attn_implementation="sdpa")

SMALL = {name: BASE[name] for name in BASE if name != "attn_implementation"} | dict(num_key_value_heads=2)
MIXTRAL = dict(num_local_experts=5, num_experts_per_tok=3)
QWEN_MOE = dict(head_dim=24, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48)
SHARED = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, shared_expert_intermediate_size=80, qkv_bias=False)
BALANCE = 0.05  # transformers' sum over the slots of one layer is experts_per_token times ours

# Name, configuration, type and most bytes of the written files, [parallel], [moe]; "packed" in the name: as above.
CASES = [
    ("plain", LlamaConfig(**BASE), torch.float32, "5GB", dict(pp=1), {}),
    ("tied, llama3, head_dim, grouped", LlamaConfig(**BASE | dict(tie_word_embeddings=True, rope_theta=5000.0, rope_scaling=LLAMA3,
                                                                  head_dim=24, num_key_value_heads=2, rms_norm_eps=1e-5)),
     torch.float32, "100KB", dict(pp=2), {}),
    ("bf16 in many files", LlamaConfig(**BASE | dict(num_key_value_heads=1)), torch.bfloat16, "60KB", dict(pp=3), {}),
    ("packed, grouped", LlamaConfig(**SMALL), torch.float32, "60KB", dict(pp=2), {}),
    ("packed, over tensor and data ranks", LlamaConfig(**SMALL), torch.float32, "5GB", dict(tp=2, dp=2), {}),
    ("f16", LlamaConfig(**BASE | dict(vocab_size=70000, num_hidden_layers=1)), torch.float16, "5GB", dict(pp=1), {}),
    ("qwen3", Qwen3Config(**SMALL, head_dim=24), torch.float32, "60KB", dict(tp=2), {}),
    ("mixtral", MixtralConfig(**SMALL, **MIXTRAL), torch.float32, "60KB", dict(pp=2), {}),
    ("mixtral of one layer, balanced", MixtralConfig(**SMALL | dict(num_hidden_layers=1), **MIXTRAL, output_router_logits=True,
                                                     router_aux_loss_coef=BALANCE),
     torch.float32, "5GB", dict(pp=1), dict(balance_coefficient=3 * BALANCE)),
    ("qwen3_moe", Qwen3MoeConfig(**SMALL, **QWEN_MOE, norm_topk_prob=True), torch.float32, "60KB", dict(dp=2, ep=2), {}),
    ("qwen3_moe, not normalised", Qwen3MoeConfig(**SMALL, **QWEN_MOE, norm_topk_prob=False), torch.bfloat16, "5GB", dict(tp=2, ep=2), {}),
    ("qwen2_moe", Qwen2MoeConfig(**SMALL, **SHARED), torch.float32, "60KB", dict(tp=2, dp=2, ep=2), {}),
]


def documents_of(count, packed):
    """Of each sequence the lengths of its documents."""
    draw = random.Random(7)
    sequences = []
    for _ in range(count):
        cuts = sorted(draw.sample(range(1, SEQ_LEN), draw.randint(0, 5))) if packed else []
        sequences.append([b - a for a, b in zip([0, *cuts], [*cuts, SEQ_LEN])])
    return sequences


def write_tokens(prefix, tokens, vocab, documents, learnt):
    """As Megatron lays them out, with a mask where some are no targets."""
    size, code = (2, 8) if vocab < 65500 else (4, 4)
    lengths = [length for sequence in documents for length in sequence]
    count = len(lengths)
    if not learnt.all():
        with open(prefix + ".mask", "wb") as file:
            file.write(bytes(learnt.flatten().tolist()))
    with open(prefix + ".bin", "wb") as file:
        file.write(tokens.to(torch.int32).numpy().astype("<u2" if size == 2 else "<i4").tobytes())
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, count, count + 1))
        file.write(struct.pack(f"<{count}i", *lengths))
        file.write(struct.pack(f"<{count}q", *[sum(lengths[:i]) * size for i in range(count)]))
        file.write(struct.pack(f"<{count + 1}q", *range(count + 1)))


def documents_alone(tokens, learnt, documents):
    """Each with its labels."""
    for sequence, wanted, lengths in zip(tokens, learnt, documents):
        labels = torch.where(wanted, sequence, -100)
        for document in zip(sequence.split(lengths), labels.split(lengths)):
            yield document


def train_there(model, tokens, learnt, documents):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=EPSILON, weight_decay=0.1)
    losses = []
    for first in range(0, len(tokens), BATCH):
        batch = slice(first, first + BATCH)
        alone = list(documents_alone(tokens[batch], learnt[batch], documents[batch]))
        targets = sum((labels[1:] != -100).sum().item() for _, labels in alone)
        total = 0.0
        for document, labels in alone:
            own = (labels[1:] != -100).sum().item()
            if own == 0:
                continue
            loss = model(input_ids=document[None], labels=labels[None]).loss * (own / targets)
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total)
    return losses


def run(*words):
    ended = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} ended with {ended.returncode}: {ended.stderr}")


def keys(section, values):
    return f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def train_here(penstock, folder, parallel, moe):
    with open(f"{folder}/run.toml", "w") as file:
        file.write(f"""[model]
config = "{folder}/there"
weights = "{folder}/there"
[data]
megatron = "{folder}/tokens"
seq_len = {SEQ_LEN}
validation_fraction = 0.0
{keys("parallel", parallel)}{keys("moe", moe)}[schedule]
slices = 4
[train]
steps = {STEPS}
batch = {BATCH}
lr = {RATE}
eps = {EPSILON}
warmup_steps = 0
lr_schedule = "constant"
decay = "all"
shuffle = false
loss_targets = "s-1"
clip = 0.0
precision = "f32"
threads = 1
[output]
dir = "{folder}/run"
""")
    ranks = math.prod(size for axis, size in parallel.items() if axis != "ep")
    run(penstock, "train", f"{folder}/run.toml", "--ranks", ranks)
    with open(f"{folder}/run/metrics.jsonl") as file:
        return [line["loss"] + line.get("balance_loss", 0) for line in map(json.loads, file)]


def load(folder):
    model, told = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa",
                                                       output_loading_info=True)
    if any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        sys.exit(f"{folder}: {told}")
    return model.eval()


def greatest_difference(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


@torch.no_grad()
def logits_of(model, tokens):
    return model(input_ids=tokens).logits


def same_bits(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def try_case(penstock, folder, packed, config, dtype, shard, parallel, moe):
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(dtype).save_pretrained(f"{folder}/there", max_shard_size=shard)
    tokens = torch.randint(config.vocab_size, (STEPS * BATCH, SEQ_LEN))
    documents = documents_of(len(tokens), packed)
    learnt = torch.rand(tokens.shape) < (0.6 if packed else 2)
    write_tokens(f"{folder}/tokens", tokens, config.vocab_size, documents, learnt)
    first, trained = load(f"{folder}/there"), load(f"{folder}/there").train()
    wanted = train_there(trained, tokens, learnt, documents)
    losses = train_here(penstock, folder, parallel, moe)
    run(penstock, "convert", f"{folder}/run", "-o", f"{folder}/exported")
    run(penstock, "convert", f"{folder}/there", "-o", f"{folder}/ours")
    run(penstock, "convert", f"{folder}/ours", "-o", f"{folder}/back", "--shard", "50 KB")
    exported = logits_of(load(f"{folder}/exported"), tokens[:BATCH])
    difference = (exported - logits_of(trained.eval(), tokens[:BATCH])).abs().max().item()
    return greatest_difference(losses, wanted), difference, same_bits(load(f"{folder}/back"), first)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    failures = 0
    for name, *case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            losses, logits, same = try_case(sys.argv[1], folder, "packed" in name, *case)
        good = losses <= TOLERANCE and logits <= TOLERANCE and same
        failures += not good
        print(f"{name}: losses differ by {losses:.1e}, logits by {logits:.1e}, there and back "
              f"{'the same bits' if same else 'OTHER BITS'}{'' if good else '  WRONG'}", flush=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
