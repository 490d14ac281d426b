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
#include "base/whole.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "train/data/parts.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kNoTarget = -1;

// Shares for evaluation: each source's training share.
Numbers shares_of(const std::vector<Stretch>& training, const Cut& cut, const Numbers& given) {
  if (!given.empty() || training.size() == 1) return given;
  Numbers shares;
  for (const Stretch& stretch : training) shares.push_back(static_cast<double>(cut.samples(stretch)));
  return shares;
}

Tokens length_of(const Sample& sample) {
  Tokens tokens = 0;
  for (const Piece& piece : sample.pieces) tokens += piece.length;
  return tokens;
}

std::optional<Balance> balance_of(const run::DataOptions& data, const run::TrainOptions& train,
                                  const TokenData::Use& use) {
  if (data.packing != "balanced") return {};
  return Balance{.shares = {train.batch, use.replicas, train.micro_batch},
                 .window = data.window,
                 .work = use.work,
                 .padded_to = use.trims ? 0 : data.seq_len};
}

}  // namespace

TokenData::TokenData(const run::DataOptions& data, const run::TrainOptions& train, std::int64_t vocab,
                     const Use& use, std::unique_ptr<TokenSource> source)
    : cut_{.seq_len = data.seq_len,
           .full_targets = train.loss_targets == "s",
           .packs = data.packing != "concat",
           .splits = data.long_documents == "split"},
      masks_documents_(data.mask == "documents"),
      masks_loss_(data.loss == "assistant"),
      trims_(use.trims),
      groups_(use.replicas),
      batch_(train.batch),
      micro_batch_(train.micro_batch),
      padding_(std::min(files::kPadding, vocab - 1)) {
  require(source || !data.text.empty() || !data.megatron.empty(),
          "data.text is missing; name a text file, or data.megatron");
  std::vector<Stretch> training, held_out;
  const auto take = [&](const Named& named) {
    Ends ends = data.split.empty() ? ends_by_fraction(named.source.size(), data.validation_fraction)
                                   : ends_by_split(named.source, data.split);
    if (!use.evaluates) ends.held_out_by.clear();
    take_parts(named, ends, cut_, training, held_out);
  };
  if (source) {
    sources_.push_back(std::move(source));
    take({*sources_.back(), "the list of documents", "token"});
  } else if (data.megatron.empty()) {
    text_ = on_behalf_of("data.text", [&] { return files::MappedFile(data.text); });
    sources_.push_back(tokens_of_text(text_->text()));
    take({*sources_.back(), "data.text = " + json_quote(data.text), "byte"});
    training_text_ = text_->text().substr(0, static_cast<std::size_t>(training[0].end));
    held_out_text_ = text_->text().substr(training_text_.size());
  }
  const bool replaced = !sources_.empty();
  for (std::size_t i = 0; i < data.megatron.size() && !replaced; ++i) {
    const std::string& prefix = data.megatron[i];
    sources_.push_back(
        on_behalf_of("data.megatron", [&] { return tokens_of_megatron(prefix, vocab, masks_loss_); }));
    take({*sources_.back(), "data.megatron = " + json_quote(prefix), "token"});
  }
  const std::uint64_t seed = stream_key(static_cast<std::uint64_t>(train.seed), hash("samples"));
  const Numbers shares = shares_of(training, cut_, data.megatron_weights);
  trained_on_ = training;
  training_.emplace(std::move(training), cut_, data.megatron_weights, train.shuffle, seed,
                    balance_of(data, train, use));
  if (!held_out.empty()) {
    evaluated_on_ = held_out;
    // Packing puts the longest documents first. Every evaluation, whatever the seed, takes the same samples.
    held_out_.emplace(std::move(held_out), cut_, shares, /*shuffle=*/cut_.packs, hash("evaluation"));
    evaluation_samples_ = held_out_->distinct(train.evaluate_sequences);
  }
  if (!replaced) read_first_batches();
}

// Reports a wrong vocabulary before anything is written. Evaluations have no other batches, so none of them
// fails after hours of training.
void TokenData::read_first_batches() const {
  training_batch(0);
  for (std::int64_t index = 0; index < evaluation_batches(); ++index) evaluation_batch(index);
}

TokenData::Marks TokenData::marks_of(const TokenSource& source, const Piece& piece) const {
  const auto tokens = static_cast<std::size_t>(piece.length + (piece.continues ? 1 : 0));
  Marks marks{std::vector<std::int64_t>(tokens), std::vector<char>(tokens, 1)};
  if (masks_documents_) source.document_starts(piece.first, marks.starts);
  for (std::int64_t& start : marks.starts) start = std::max<std::int64_t>(start - piece.first, 0);
  if (masks_loss_) source.in_loss(piece.first, marks.in_loss);
  return marks;
}

// The next token must be in the piece or right after it, in the same document, and a target.
bool TokenData::Marks::has_target(std::int64_t token) const {
  const auto next = static_cast<std::size_t>(token + 1);
  return next < starts.size() && starts[next] <= token && in_loss[next] == 1;
}

std::int64_t TokenData::count_targets(const TokenSource& source, const Piece& piece) const {
  if (!masks_documents_ && !masks_loss_) return piece.length - (piece.continues ? 0 : 1);
  const Marks marks = marks_of(source, piece);
  std::int64_t count = 0;
  for (std::int64_t token = 0; token < piece.length; ++token) count += marks.has_target(token) ? 1 : 0;
  return count;
}

// Fills the row's tokens from `at` on.
void TokenData::fill(const TokenSource& source, const Piece& piece, std::int64_t at, const Row& row) const {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(piece.length + (piece.continues ? 1 : 0)));
  source.read(piece.first, tokens);
  const Marks marks = marks_of(source, piece);
  for (std::int64_t token = 0; token < piece.length; ++token) {
    const auto index = static_cast<std::size_t>(token);
    row.tokens[at + token] = tokens[index];
    row.targets[at + token] = marks.has_target(token) ? tokens[index + 1] : kNoTarget;
    if (row.starts) row.starts[at + token] = at + marks.starts[index];
  }
}

// The rest of the row is padding, where every token is its own document, so that it attends to nothing else.
void TokenData::fill(const Sample& sample, Tokens length, const Row& row) const {
  std::int64_t at = 0;
  for (const Piece& piece : sample.pieces) {
    fill(*sample.source, piece, at, row);
    at += piece.length;
  }
  for (; at < length; ++at) {
    row.tokens[at] = padding_;
    row.targets[at] = kNoTarget;
    if (row.starts) row.starts[at] = at;
  }
}

// Bounds of each micro-batch's length over the groups of the batch, whatever replicas have them.
void TokenData::note_lengths(const std::vector<Sample>& samples, std::int64_t replicas,
                             std::vector<Tokens>& fewest, std::vector<Tokens>& most) const {
  const std::int64_t of_group = batch_ / groups_;
  for (std::int64_t j = 0; j < batch_ / replicas; ++j) {
    const auto length = [&](std::int64_t group) {
      return length_of(samples[static_cast<std::size_t>(group * of_group + j % of_group)]);
    };
    fewest.push_back(length(0));
    most.push_back(length(0));
    for (std::int64_t group = 1; group < groups_; ++group) {
      fewest.back() = std::min(fewest.back(), length(group));
      most.back() = std::max(most.back(), length(group));
    }
  }
}

BatchTokens TokenData::count(std::int64_t first) const {
  BatchTokens count;
  for (const Sample& sample : training_->drawn(first, batch_)) {
    count.tokens += length_of(sample);
    for (const Piece& piece : sample.pieces) {
      std::int64_t start = 0;
      sample.source->document_starts(piece.first, {&start, 1});
      count.continued += start < piece.first ? 1 : 0;
      count.documents += std::ssize(sample.source->document_ends(piece.first, piece.first + piece.length));
    }
  }
  if (!trims_) count.padding = batch_ * cut_.seq_len - count.tokens;
  return count;
}

// Lengths of the documents in a sample, which without a mask is one document. Each padding token is a
// document, as in fill().
std::vector<Tokens> TokenData::lengths_in(const Sample& sample) const {
  if (!masks_documents_) return {cut_.seq_len};
  std::vector<Tokens> lengths;
  for (const Piece& piece : sample.pieces) {
    Tokens begin = piece.first;
    for (const std::int64_t end : sample.source->document_ends(begin, begin + piece.length)) {
      lengths.push_back(end - begin);
      begin = end;
    }
  }
  if (!trims_) lengths.insert(lengths.end(), static_cast<std::size_t>(cut_.seq_len - length_of(sample)), 1);
  return lengths;
}

std::vector<run::StepContent> TokenData::contents(std::int64_t first, std::int64_t replicas) const {
  const std::vector<Sample> samples = training_->drawn(first, batch_);
  const std::int64_t rows = batch_ / replicas, micro_batches = rows / micro_batch_;
  run::StepContent shared;
  if (trims_) {
    note_lengths(samples, replicas, shared.fewest, shared.most);
  } else {
    shared.fewest.assign(static_cast<std::size_t>(micro_batches), cut_.seq_len);
    shared.most = shared.fewest;
  }
  std::vector<run::StepContent> contents(static_cast<std::size_t>(replicas), shared);
  for (std::int64_t row = 0; row < batch_; ++row) {
    auto& documents = contents[static_cast<std::size_t>(row / rows)].documents;
    if (row % micro_batch_ == 0) documents.emplace_back();
    documents.back().push_back(lengths_in(samples[static_cast<std::size_t>(row)]));
  }
  return contents;
}

Content TokenData::content() const {
  std::call_once(content_read_, [this] { content_ = content_of(trained_on_, evaluated_on_); });
  return content_;
}

std::vector<Tokens> TokenData::document_lengths() const {
  std::vector<Tokens> lengths;
  for (const Stretch& stretch : trained_on_) {
    std::int64_t begin = stretch.begin;
    for (const std::int64_t end : stretch.source->document_ends(stretch.begin, stretch.end)) {
      lengths.push_back(end - begin);
      begin = end;
    }
  }
  return lengths;
}

// Rows beyond the samples are padding.
StepTokens TokenData::batch(const Part& part, const std::vector<Sample>& samples, bool trims) const {
  StepTokens step;
  const std::int64_t rows = batch_ / part.replicas, first = part.replica * rows;
  for (const Sample& sample : samples) {
    step.token_count += length_of(sample);
    for (const Piece& piece : sample.pieces) step.target_count += count_targets(*sample.source, piece);
  }
  if (trims) note_lengths(samples, part.replicas, step.fewest, step.most);
  if (!trims) step.padding = batch_ * cut_.seq_len - step.token_count;
  Tokens length = cut_.seq_len;
  const auto add_room = [&](std::vector<at::Tensor>& tensors) {
    tensors.push_back(at::empty({micro_batch_, length}, at::kLong));
  };
  for (std::int64_t row = first; row < first + rows; ++row) {
    if (trims) length = length_of(samples[static_cast<std::size_t>(row)]);
    if (row % micro_batch_ == 0) {
      add_room(step.tokens);
      add_room(step.targets);
      if (masks_documents_) add_room(step.documents);
    }
    const auto row_of = [&](std::vector<at::Tensor>& tensors) {
      if (tensors.empty()) return static_cast<std::int64_t*>(nullptr);
      return tensors.back().mutable_data_ptr<std::int64_t>() + row % micro_batch_ * length;
    };
    fill(row < std::ssize(samples) ? samples[static_cast<std::size_t>(row)] : Sample(), length,
         {row_of(step.tokens), row_of(step.targets), row_of(step.documents)});
  }
  return step;
}

StepTokens TokenData::training_batch(std::int64_t first, Part part) const {
  return batch(part, training_->drawn(first, batch_), trims_);
}

std::int64_t TokenData::evaluation_batches() const { return ceil_div(evaluation_samples_, batch_); }

StepTokens TokenData::evaluation_batch(std::int64_t index, Part part) const {
  PENSTOCK_CHECK(index >= 0 && index < evaluation_batches(), "an evaluation batch exists");
  const std::int64_t first = index * batch_;
  return batch(part, held_out_->drawn(first, std::min(batch_, evaluation_samples_ - first)), false);
}

}  // namespace penstock::train
