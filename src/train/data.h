// SPDX-License-Identifier: Apache-2.0
// A text file as training data: its bytes are the tokens. The end of the file is held out for evaluation; the
// rest is cut into samples of s tokens and their targets. Every rank forms the same batches, for every number
// of devices.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "files/mapped_file.h"
#include "train/interpreter.h"
#include "train/options.h"

namespace penstock::train {

class TextData {
 public:
  // Maps data.text; takes the same time for any size. Throws InputError naming the file when it is missing,
  // shorter than one sample, or when what is held out is.
  TextData(const DataOptions& data, const TrainOptions& train);

  std::int64_t samples() const { return training_samples_; }  // of one epoch
  std::string_view training_text() const { return training_; }
  std::string_view held_out_text() const { return held_out_; }

  // The batch that begins with sample `first` of the endless sequence of epochs, each of which has every
  // sample once, in an order of its own (train.shuffle). So the whole state of the data is one integer: the
  // samples drawn so far.
  StepTokens training_batch(std::int64_t first) const;

  // Evaluation goes over the first samples of the held-out text, at most train.evaluate_sequences, in order;
  // the last batch is filled up with padding that has no targets. No batches when nothing is held out.
  std::int64_t evaluation_batches() const;
  StepTokens evaluation_batch(std::int64_t index) const;

 private:
  std::int64_t sample_of(std::int64_t drawn) const;
  template <class Offset>
  StepTokens batch(std::string_view text, Offset offset_of) const;

  files::MappedFile file_;
  Tokens seq_len_;
  bool full_targets_;  // samples of s + 1 tokens; else s tokens, of which the last has no target
  std::int64_t batch_;
  std::int64_t micro_batch_;
  bool shuffle_;
  std::uint64_t seed_;
  std::string_view training_;
  std::string_view held_out_;
  std::int64_t training_samples_ = 0;
  std::int64_t evaluation_samples_ = 0;
};

}  // namespace penstock::train
