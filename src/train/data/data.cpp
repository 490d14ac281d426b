// SPDX-License-Identifier: Apache-2.0
#include "train/data/data.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "files/byte_tokenizer.h"
#include "run/data_shares.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kNoTarget = -1;

std::string text(std::int64_t value) { return std::to_string(value); }

// A source, with its name in messages.
struct Named {
  const TokenSource& source;
  std::string name;  // data.text = "corpus.txt"
  std::string unit;  // of its size
};

// Ends of the training part and of the held-out part.
struct Ends {
  std::int64_t training = 0;
  std::int64_t held_out = 0;
  std::string held_out_by;  // the option that holds it out; empty: none
};

Ends ends_by_fraction(std::int64_t size, double fraction) {
  const auto held = static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(size)));
  return {size - held, size, fraction > 0 ? "data.validation_fraction = " + exact_number(fraction) : ""};
}

Ends ends_by_split(const TokenSource& source, const std::string& split) {
  const std::vector<double> shares = run::parse_split(split);
  const std::int64_t training = source.end_of_documents(shares[0]);
  return {training, std::max(training, source.end_of_documents(shares[0] + shares[1])),
          shares[1] > 0 ? "data.split = " + json_quote(split) : ""};
}

// A stretch of at least one sample.
Stretch checked(const Named& named, std::int64_t begin, std::int64_t end, const Cut& cut,
                const std::string& part, const std::string& remedy) {
  const Stretch stretch{&named.source, begin, end};
  if (cut.samples(stretch) > 0) return stretch;
  throw InputError(named.name + " has " + text(end - begin) + " " + named.unit + " " + part +
                   ", fewer than one sample of " + text(cut.needed()) + " tokens; use " + remedy);
}

// Adds the parts of a source.
void take_parts(const Named& named, const Ends& ends, const Cut& cut, std::vector<Stretch>& training,
                std::vector<Stretch>& held_out) {
  training.push_back(
      checked(named, 0, ends.training, cut, "to train on", "a longer text or a smaller data.seq_len"));
  if (ends.held_out_by.empty()) return;
  held_out.push_back(checked(named, ends.training, ends.held_out, cut, "held out by " + ends.held_out_by,
                             "a greater fraction, or 0 for no evaluation"));
}

// Evaluation takes each source's training share.
Numbers shares_of(const std::vector<Stretch>& training, const Cut& cut, const Numbers& given) {
  if (!given.empty() || training.size() == 1) return given;
  Numbers shares;
  for (const Stretch& stretch : training) shares.push_back(static_cast<double>(cut.samples(stretch)));
  return shares;
}

}  // namespace

TokenData::TokenData(const run::DataOptions& data, const run::TrainOptions& train, std::int64_t vocab)
    : cut_{data.seq_len, train.loss_targets == "s"},
      masks_documents_(data.mask == "documents"),
      masks_loss_(data.loss == "assistant"),
      batch_(train.batch),
      micro_batch_(train.micro_batch),
      padding_(std::min(files::kPadding, vocab - 1)) {
  require(!data.text.empty() || !data.megatron.empty(),
          "data.text is missing; name a text file, or data.megatron");
  std::vector<Stretch> training, held_out;
  if (data.megatron.empty()) {
    text_ = on_behalf_of("data.text", [&] { return files::MappedFile(data.text); });
    sources_.push_back(tokens_of_text(text_->text()));
    const Named named{*sources_[0], "data.text = " + json_quote(data.text), "bytes"};
    take_parts(named, ends_by_fraction(sources_[0]->size(), data.validation_fraction), cut_, training,
               held_out);
    training_text_ = text_->text().substr(0, static_cast<std::size_t>(training[0].end));
    held_out_text_ = text_->text().substr(training_text_.size());
  }
  for (const std::string& prefix : data.megatron) {
    sources_.push_back(on_behalf_of("data.megatron", [&] { return tokens_of_megatron(prefix, vocab); }));
    const Named named{*sources_.back(), "data.megatron = " + json_quote(prefix), "tokens"};
    take_parts(named,
               data.split.empty() ? ends_by_fraction(named.source.size(), data.validation_fraction)
                                  : ends_by_split(named.source, data.split),
               cut_, training, held_out);
  }
  const std::uint64_t seed = stream_key(static_cast<std::uint64_t>(train.seed), hash("samples"));
  const Numbers shares = shares_of(training, cut_, data.megatron_weights);
  training_.emplace(std::move(training), cut_, data.megatron_weights, train.shuffle, seed);
  if (!held_out.empty()) {
    held_out_.emplace(std::move(held_out), cut_, shares, /*shuffle=*/false, seed);
    evaluation_samples_ = held_out_->distinct(train.evaluate_sequences);
  }
  if (!is_text()) training_batch(0);  // reports a wrong vocabulary before anything is written
}

TokenData::Marks TokenData::marks_of(const Samples::Place& place) const {
  const auto tokens = static_cast<std::size_t>(cut_.needed());
  Marks marks{std::vector<std::int64_t>(tokens), std::vector<char>(tokens, 1)};
  if (masks_documents_) place.source->document_starts(place.first, marks.starts);
  for (std::int64_t& start : marks.starts) start = std::max<std::int64_t>(start - place.first, 0);
  if (masks_loss_) place.source->learnt(place.first, marks.learnt);
  return marks;
}

// In the sample, of the same document, and to be learnt.
bool TokenData::Marks::has_target(std::int64_t token) const {
  const auto next = static_cast<std::size_t>(token + 1);
  return next < starts.size() && starts[next] <= token && learnt[next] == 1;
}

std::int64_t TokenData::count_targets(const Samples::Place& place) const {
  if (!masks_documents_ && !masks_loss_) return cut_.needed() - 1;
  const Marks marks = marks_of(place);
  std::int64_t count = 0;
  for (std::int64_t token = 0; token < cut_.seq_len; ++token) count += marks.has_target(token) ? 1 : 0;
  return count;
}

void TokenData::fill(const Samples::Place& place, const Row& row) const {
  std::vector<std::int64_t> sample(static_cast<std::size_t>(cut_.needed()));
  place.source->read(place.first, sample);
  const Marks marks = marks_of(place);
  for (std::int64_t token = 0; token < cut_.seq_len; ++token) {
    const auto index = static_cast<std::size_t>(token);
    row.tokens[token] = sample[index];
    row.targets[token] = marks.has_target(token) ? sample[index + 1] : kNoTarget;
    if (row.starts) row.starts[token] = marks.starts[index];
  }
}

// place_of(i): where row i of the batch begins, or nothing for a row of padding.
template <class PlaceOf>
StepTokens TokenData::batch(const Part& part, PlaceOf place_of) const {
  StepTokens step;
  const std::int64_t rows = batch_ / part.replicas, first = part.replica * rows;
  for (std::int64_t row = 0; row < batch_; ++row) {
    if (const auto place = place_of(row)) step.target_count += count_targets(*place);
  }
  const auto add_room = [&](std::vector<at::Tensor>& tensors) {
    tensors.push_back(at::empty({micro_batch_, cut_.seq_len}, at::kLong));
  };
  for (std::int64_t row = first; row < first + rows; ++row) {
    if (row % micro_batch_ == 0) {
      add_room(step.tokens);
      add_room(step.targets);
      if (masks_documents_) add_room(step.documents);
    }
    const auto row_of = [&](std::vector<at::Tensor>& tensors) {
      if (tensors.empty()) return static_cast<std::int64_t*>(nullptr);
      return tensors.back().mutable_data_ptr<std::int64_t>() + row % micro_batch_ * cut_.seq_len;
    };
    const Row filled{row_of(step.tokens), row_of(step.targets), row_of(step.documents)};
    if (const std::optional<Samples::Place> place = place_of(row)) {
      fill(*place, filled);
      continue;
    }
    std::fill_n(filled.tokens, cut_.seq_len, padding_);
    std::fill_n(filled.targets, cut_.seq_len, kNoTarget);
    if (filled.starts) std::fill_n(filled.starts, cut_.seq_len, 0);
  }
  return step;
}

StepTokens TokenData::training_batch(std::int64_t first, Part part) const {
  return batch(part, [&](std::int64_t row) { return std::optional(training_->at(first + row)); });
}

std::int64_t TokenData::evaluation_batches() const { return (evaluation_samples_ + batch_ - 1) / batch_; }

StepTokens TokenData::evaluation_batch(std::int64_t index, Part part) const {
  PENSTOCK_CHECK(index >= 0 && index < evaluation_batches(), "an evaluation batch exists");
  return batch(part, [&](std::int64_t row) {
    const std::int64_t sample = index * batch_ + row;
    return sample < evaluation_samples_ ? std::optional(held_out_->at(sample)) : std::nullopt;
  });
}

}  // namespace penstock::train
