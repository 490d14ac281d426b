# SPDX-License-Identifier: Apache-2.0
"""Trains transformers' LlamaForCausalLM in one process on sequences that documents share, told apart by their positions (packing without
padding); prints one JSON line."""

import itertools
import pathlib

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import common
import hf_train


def positions(lengths, sequences, tokens):
    """Of each token of each sequence, counted from the beginning of its document or of the sequence."""
    ends = torch.tensor(lengths).cumsum(0)
    token = torch.arange(sequences * tokens)
    begins = torch.cat([torch.zeros(1, dtype=torch.long), ends])[torch.searchsorted(ends, token, right=True)]
    return (token - torch.maximum(begins, token // tokens * tokens)).view(sequences, tokens)


class Packed(torch.nn.Module):
    """The model on the sequences of a step in turn."""

    def __init__(self, model, places):
        super().__init__()
        self.model = model
        self.places = itertools.cycle(places.split(1))

    def forward(self, input_ids, labels):
        place = next(self.places)
        return self.model(input_ids=input_ids, position_ids=place, labels=labels.masked_fill(place == 0, -100))


def build(args):
    config = LlamaConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, intermediate_size=args.ffn,
        num_attention_heads=args.heads, num_key_value_heads=args.kv_heads, vocab_size=args.vocab,
        max_position_embeddings=args.seq_len, attn_implementation=args.attention, use_cache=False)
    lengths = [int(line) for line in pathlib.Path(args.lengths).read_text().split()]
    return Packed(hf_train.prepared(args, LlamaForCausalLM(config)), positions(lengths, args.microbatches, args.seq_len))


def main():
    p = hf_train.parser(__doc__)
    p.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    p.add_argument("--lengths", required=True, help="a file with the tokens of a document in each line")
    hf_train.train(common.parse(p), build)


if __name__ == "__main__":
    main()
