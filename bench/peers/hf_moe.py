# SPDX-License-Identifier: Apache-2.0
"""Trains transformers' MixtralForCausalLM in one process on random tokens; prints one JSON line."""

from transformers import MixtralConfig, MixtralForCausalLM

import common
import hf_train


def build(args):
    config = MixtralConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, intermediate_size=args.ffn,
        num_attention_heads=args.heads, num_key_value_heads=args.kv_heads, vocab_size=args.vocab,
        num_local_experts=args.experts, num_experts_per_tok=args.experts_per_token,
        max_position_embeddings=args.seq_len, attn_implementation="sdpa", experts_implementation=args.implementation,
        sliding_window=None, use_cache=False)
    return hf_train.prepared(args, MixtralForCausalLM(config))


def main():
    p = hf_train.parser(__doc__)
    p.add_argument("--experts", type=int, default=8)
    p.add_argument("--experts-per-token", type=int, default=2)
    p.add_argument("--implementation", choices=("eager", "grouped_mm", "batched_mm"), default="eager",
                   help="how transformers multiplies the experts")
    hf_train.train(common.parse(p), build)


if __name__ == "__main__":
    main()
