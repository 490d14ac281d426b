// SPDX-License-Identifier: Apache-2.0
// What a run trains, on what, and for how long: the sections [model], [data], [train] and [output] of a run
// file, and all sections together. Each field's sentence stands in options.cpp, from where help and
// documentation take it. Zeros and empty texts that no run file may say stand for "not given"; resolving a
// run file (cli/resolve.h) fills them.
#pragma once

#include <cstdint>
#include <string>

#include "base/options.h"
#include "base/units.h"
#include "model/shape.h"
#include "schedule/options.h"

namespace penstock::train {

struct ModelOptions {
  std::string config;   // a config.json in Hugging Face's form, instead of the shape's keys
  std::string weights;  // what training begins with: a safetensors file or a folder; empty: drawn
  model::Shape shape{.kv_heads = 0, .vocab = 0};  // 0: as many as heads; 0: the tokenizer's
};

struct DataOptions {
  std::string text;          // bytes as tokens
  Words megatron;            // prefixes of .bin and .idx pairs
  Numbers megatron_weights;  // shares of the samples, one for each prefix; empty: by their tokens
  std::string split;         // "969,30,1"; empty: by validation_fraction
  Tokens seq_len = 1024;
  double validation_fraction = 0.01;  // held out from the end
};

struct TrainOptions {
  std::int64_t steps = 100;
  std::int64_t batch = 8;        // sequences per step
  std::int64_t micro_batch = 1;  // sequences per micro-batch
  double lr = 3e-4;
  double min_lr = 3e-5;
  std::int64_t warmup_steps = 10;
  Numbers betas{0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::string decay = "matrices";
  std::string lr_schedule = "cosine";
  bool shuffle = true;
  std::string loss_targets = "s";
  Tokens loss_tile_tokens = 512;
  Seconds timeout = 120;  // 0: never
  double clip = 1.0;      // 0: off
  std::int64_t seed = 1;
  std::string precision = "bf16";
  std::int64_t threads = 0;          // per rank; 0: this host's cores divided by its ranks
  std::int64_t evaluate_every = 50;  // steps; 0: only at the end
  std::int64_t evaluate_sequences = 64;
  std::int64_t checkpoint_every = 50;  // steps
  std::int64_t keep_checkpoints = 3;

  std::int64_t micro_batches() const { return batch / micro_batch; }
};

struct OutputOptions {
  std::string dir = "runs/demo";
};

struct RunOptions {
  ModelOptions model;
  DataOptions data;
  schedule::ParallelOptions parallel;
  schedule::ScheduleOptions schedule;
  schedule::MemoryOptions memory;
  TrainOptions train;
  OutputOptions output;
};

// All rows, in the order of the sections above; the options must outlive the table.
OptionTable describe(RunOptions& options);

}  // namespace penstock::train
