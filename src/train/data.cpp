// SPDX-License-Identifier: Apache-2.0
#include "train/data.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "train/tokenizer.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kNoTarget = -1;
constexpr std::int64_t kNothing = -1;  // instead of an offset: a row of padding

std::string text(std::int64_t value) { return std::to_string(value); }

// Samples of s + 1 tokens overlap by the one that is a target in one and an input in the next.
std::int64_t count_samples(std::string_view tokens, Tokens seq_len, bool full_targets) {
  const auto size = static_cast<std::int64_t>(tokens.size()) - (full_targets ? 1 : 0);
  return std::max<std::int64_t>(0, size) / seq_len;
}

[[noreturn]] void fail_short(const DataOptions& data, std::string_view part, std::size_t size, Tokens needed,
                             const std::string& remedy) {
  throw InputError("data.text = " + json_quote(data.text) + " has " + std::to_string(size) + " bytes " +
                   std::string(part) + ", fewer than one sample of " + text(needed) + " tokens; use " +
                   remedy);
}

// One row: s tokens from the offset on, and the token after each as its target.
void fill_row(std::string_view source, std::int64_t offset, Tokens seq_len, bool full_targets,
              std::int64_t* tokens, std::int64_t* targets) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(source.data()) + offset;
  for (Tokens i = 0; i < seq_len; ++i) tokens[i] = bytes[i];
  std::copy(tokens + 1, tokens + seq_len, targets);
  targets[seq_len - 1] = full_targets ? bytes[seq_len] : kNoTarget;
}

}  // namespace

TextData::TextData(const DataOptions& data, const TrainOptions& train)
    : file_(on_behalf_of("data.text", [&] { return files::MappedFile(data.text); })),
      seq_len_(data.seq_len),
      full_targets_(train.loss_targets == "s"),
      batch_(train.batch),
      micro_batch_(train.micro_batch),
      shuffle_(train.shuffle),
      seed_(stream_key(static_cast<std::uint64_t>(train.seed), hash("samples"))) {
  const std::string_view all = file_.text();
  const auto held =
      static_cast<std::size_t>(std::floor(data.validation_fraction * static_cast<double>(all.size())));
  training_ = all.substr(0, all.size() - held);
  held_out_ = all.substr(all.size() - held);
  training_samples_ = count_samples(training_, seq_len_, full_targets_);
  evaluation_samples_ = std::min(count_samples(held_out_, seq_len_, full_targets_), train.evaluate_sequences);
  const Tokens needed = seq_len_ + (full_targets_ ? 1 : 0);
  if (training_samples_ == 0) {
    fail_short(data, "to train on", training_.size(), needed, "a longer text or a smaller data.seq_len");
  }
  if (data.validation_fraction > 0 && evaluation_samples_ == 0) {
    fail_short(data, "held out by data.validation_fraction = " + exact_number(data.validation_fraction),
               held_out_.size(), needed, "a greater fraction, or 0 for no evaluation");
  }
}

std::int64_t TextData::sample_of(std::int64_t drawn) const {
  const std::int64_t place = drawn % training_samples_;
  if (!shuffle_) return place;
  const auto epoch = static_cast<std::uint64_t>(drawn / training_samples_);
  const Permutation order(static_cast<std::uint64_t>(training_samples_), stream_key(seed_, epoch));
  return static_cast<std::int64_t>(order.at(static_cast<std::uint64_t>(place)));
}

// offset_of(i): where row i of the batch begins in the source, or kNothing.
template <class Offset>
StepTokens TextData::batch(std::string_view source, Offset offset_of) const {
  StepTokens step;
  for (std::int64_t row = 0; row < batch_; ++row) {
    if (row % micro_batch_ == 0) {
      step.tokens.push_back(at::empty({micro_batch_, seq_len_}, at::kLong));
      step.targets.push_back(at::empty({micro_batch_, seq_len_}, at::kLong));
    }
    std::int64_t* tokens =
        step.tokens.back().mutable_data_ptr<std::int64_t>() + row % micro_batch_ * seq_len_;
    std::int64_t* targets =
        step.targets.back().mutable_data_ptr<std::int64_t>() + row % micro_batch_ * seq_len_;
    const std::int64_t offset = offset_of(row);
    if (offset == kNothing) {
      std::fill_n(tokens, seq_len_, kPadding);
      std::fill_n(targets, seq_len_, kNoTarget);
    } else {
      fill_row(source, offset, seq_len_, full_targets_, tokens, targets);
      step.target_count += seq_len_ - (full_targets_ ? 0 : 1);
    }
  }
  return step;
}

StepTokens TextData::training_batch(std::int64_t first) const {
  return batch(training_, [&](std::int64_t row) { return sample_of(first + row) * seq_len_; });
}

std::int64_t TextData::evaluation_batches() const { return (evaluation_samples_ + batch_ - 1) / batch_; }

StepTokens TextData::evaluation_batch(std::int64_t index) const {
  PENSTOCK_CHECK(index >= 0 && index < evaluation_batches(), "an evaluation batch exists");
  return batch(held_out_, [&](std::int64_t row) {
    const std::int64_t sample = index * batch_ + row;
    return sample < evaluation_samples_ ? sample * seq_len_ : kNothing;
  });
}

}  // namespace penstock::train
