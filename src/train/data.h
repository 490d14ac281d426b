// SPDX-License-Identifier: Apache-2.0
// Training data: a text file, whose bytes are the tokens, or pairs of .bin and .idx files of Megatron. One
// part is trained on, another held out for evaluation. Every rank forms the same batches, for every number of
// devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"
#include "train/interpreter.h"
#include "train/options.h"
#include "train/samples.h"
#include "train/token_source.h"

namespace penstock::train {

class TokenData {
 public:
  // Maps the files; takes the same time for any size. Throws InputError naming the file and what is wrong
  // with it, also when a part is shorter than one sample. The first batch has been read.
  TokenData(const DataOptions& data, const TrainOptions& train, std::int64_t vocab);

  std::int64_t samples() const { return training_->count(); }  // of one epoch

  // Of data.text; empty for other data.
  std::string_view training_text() const { return training_text_; }
  std::string_view held_out_text() const { return held_out_text_; }
  bool is_text() const { return text_.has_value(); }

  // The batch that begins with sample `first` of the endless sequence of epochs (Samples). So the whole state
  // of the data is one integer: the samples drawn so far. Throws InputError when the tokens are damaged.
  StepTokens training_batch(std::int64_t first) const;

  // Evaluation goes over the first samples that are held out, at most train.evaluate_sequences, in order; the
  // last batch is filled up with padding that has no targets. No batches when nothing is held out.
  std::int64_t evaluation_batches() const;
  StepTokens evaluation_batch(std::int64_t index) const;

 private:
  template <class PlaceOf>
  StepTokens batch(PlaceOf place_of) const;

  Cut cut_;
  std::int64_t batch_;
  std::int64_t micro_batch_;
  std::int64_t padding_;  // a token of rows that are not there
  std::optional<files::MappedFile> text_;
  std::string_view training_text_, held_out_text_;
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::optional<Samples> training_, held_out_;
  std::int64_t evaluation_samples_ = 0;
};

// The shares of training, validation and test in a split such as "969,30,1": from one to three numbers, the
// first positive; they are divided by their sum. InputError naming data.split.
std::vector<double> parse_split(std::string_view split);

}  // namespace penstock::train
