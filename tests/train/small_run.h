// SPDX-License-Identifier: Apache-2.0
// Runs small enough for laws over many schedules: planned as the program plans them, carried out over
// threads, on tokens that are drawn.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "comm/single.h"
#include "comm/threads.h"
#include "nn/plain_pipeline.h"
#include "run/resolve/resolve.h"
#include "train/machine_probe.h"
#include "train/step/trainer.h"

namespace penstock::testing {

// Eight layers are a stage each for two chunks on each of four devices.
inline run::Options small_options(const std::string& schedule, int devices, int slices,
                                  const std::string& precision) {
  run::Options options;
  options.model.shape = {.layers = 8, .hidden = 16, .ffn = 24, .heads = 4, .kv_heads = 2};
  options.data.text = "no file";
  options.data.seq_len = 14;
  options.parallel.pp = devices;
  options.schedule.name = schedule;
  options.schedule.slices = slices;
  options.train.batch = 8;
  options.train.precision = precision;
  options.train.lr = 1e-2;
  options.train.warmup_steps = 2;
  options.train.timeout = 60;
  return options;
}

inline run::Run planned(const run::Options& options) {
  return run::resolve(options, train::probe_machine(1));
}

// Documents of random lengths, up to three times that of a slice of some number of slices, share each
// sequence; the last token of each has no target. Lengths are multiples of document_unit.
inline std::int64_t document_unit = 1;
inline void draw_documents(reference::MicroBatch& batch, std::uint64_t seed) {
  batch.documents = at::empty_like(batch.tokens);
  const std::int64_t tokens = batch.tokens.size(1);
  const std::int64_t longest = 3 * tokens / std::array{1, 2, 5, 8}[seed % 4];
  std::uint64_t drawn = 0;
  for (std::int64_t sequence = 0; sequence < batch.tokens.size(0); ++sequence) {
    for (std::int64_t begin = 0; begin < tokens;) {
      const auto length = 1 + static_cast<std::int64_t>(random_bits(stream_key(seed, 3), drawn++) %
                                                        static_cast<std::uint64_t>(longest));
      const std::int64_t end = std::min(tokens, begin + length * document_unit);
      batch.documents[sequence].narrow(0, begin, end - begin).fill_(begin);
      batch.targets[sequence][end - 1] = -1;
      begin = end;
    }
  }
}

// Length of a micro-batch's sequences. With packed documents each micro-batch has its own.
inline std::int64_t drawn_length(const run::DataOptions& data, std::uint64_t key) {
  if (data.packing == "concat") return data.seq_len;
  return 1 + static_cast<std::int64_t>(random_bits(key, 17) % static_cast<std::uint64_t>(data.seq_len));
}

// Micro-batches of one step, of all replicas; another seed, other tokens.
inline std::vector<reference::MicroBatch> drawn_batches(const run::Run& run, std::uint64_t seed) {
  std::vector<reference::MicroBatch> batches;
  const run::TrainOptions& train = run.options.train;
  for (int j = 0; j < run.schedule.micro_batches() * run.mesh.data; ++j) {
    const std::uint64_t key = stream_key(seed, static_cast<std::uint64_t>(j));
    batches.push_back(random_batch(run.shape(), train.micro_batch, drawn_length(run.options.data, key), key));
    if (run.options.data.mask == "documents") draw_documents(batches.back(), key);
  }
  return batches;
}

inline train::StepTokens tokens_of(const std::vector<reference::MicroBatch>& batches) {
  train::StepTokens step;
  for (const reference::MicroBatch& batch : batches) {
    step.tokens.push_back(batch.tokens);
    step.targets.push_back(batch.targets);
    if (batch.documents.defined()) step.documents.push_back(batch.documents);
    step.target_count += batch.targets.ge(0).sum().item<std::int64_t>();
  }
  return step;
}

// The tokens of one rank.
inline train::StepTokens tokens_of(const run::Run& run, int rank,
                                   const std::vector<reference::MicroBatch>& batches) {
  train::StepTokens step = tokens_of(batches);
  const std::ptrdiff_t own = std::ssize(batches) / run.mesh.data;
  const std::ptrdiff_t first = own * run.mesh.coordinates_of(rank).data;
  for (auto* tensors : {&step.tokens, &step.targets, &step.documents})
    if (!tensors->empty()) *tensors = {tensors->begin() + first, tensors->begin() + first + own};
  const std::ptrdiff_t of_group = std::ssize(batches) / run.options.numerics.replicas;
  for (std::ptrdiff_t j = 0; j < own; ++j) {
    std::vector<Tokens> lengths;
    for (std::ptrdiff_t k = j % of_group; k < std::ssize(batches); k += of_group)
      lengths.push_back(batches[static_cast<std::size_t>(k)].tokens.size(1));
    step.fewest.push_back(*std::ranges::min_element(lengths));
    step.most.push_back(*std::ranges::max_element(lengths));
  }
  return step;
}

// Puts a rank's part of a parameter, the master or a tensor like it, into the whole.
inline void put(reference::Weights& whole, const std::string& name, const nn::Parameter& parameter,
                const at::Tensor& own) {
  at::Tensor& tensor = whole[name];
  if (!tensor.defined()) tensor = at::zeros(parameter.sizes, own.options());
  for (const mesh::Range& range : mesh::ranges_of(parameter.shard, parameter.sizes, parameter.share()))
    tensor.view({-1})
        .narrow(0, range.begin, range.count)
        .copy_(own.view({-1}).narrow(0, range.own_begin, range.count));
}

// Runs `body` on every rank of the run, with one thread each.
inline void on_ranks(const run::Run& run, const std::function<void(comm::Communicator&)>& body) {
  const auto with_one_thread = [&](comm::Communicator& world) {
    at::set_num_threads(1);
    body(world);
  };
  const auto ranks = static_cast<int>(run.mesh.world());
  if (ranks > 1) return comm::run_ranks(ranks, with_one_thread);
  with_one_thread(*comm::make_single());
}

// Result of a run.
struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  reference::Weights weights;  // masters by name; the output side of tied embeddings is lm_head.weight
};

// Runs `steps` steps; `prepare` may change the stages of each rank before the first.
inline Trained train_steps(const run::Run& run, std::int64_t steps,
                           const std::function<void(std::map<int, nn::Stage>&)>& prepare = {}) {
  Trained trained;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    if (prepare) prepare(trainer.stages());
    for (std::int64_t step = 1; step <= steps; ++step) {
      const auto batches = drawn_batches(run, static_cast<std::uint64_t>(step));
      const train::StepReport report = trainer.step(step, tokens_of(run, world.rank(), batches));
      if (world.rank() != 0) continue;
      trained.losses.push_back(report.loss);
      trained.norms.push_back(report.grad_norm);
    }
    const std::lock_guard lock(mutex);
    for (const nn::Parameter* parameter : trainer.parameters())
      put(trained.weights, parameter->name, *parameter, parameter->master);
  });
  return trained;
}

}  // namespace penstock::testing
