// SPDX-License-Identifier: Apache-2.0
// Training data: a text file, whose bytes are the tokens, or pairs of .bin and .idx files of Megatron. One
// part is for training, another held out for evaluation. Every rank forms the same batches, for any number of
// devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"
#include "run/options.h"
#include "train/data/samples.h"
#include "train/data/token_source.h"
#include "train/step/interpreter.h"

namespace penstock::train {

class TokenData {
 public:
  // Maps the files, in a time independent of their size, and reads the first batch. Throws InputError naming
  // the file and the defect, also when a part is shorter than one sample.
  TokenData(const run::DataOptions& data, const run::TrainOptions& train, std::int64_t vocab);

  std::int64_t samples() const { return training_->count(); }  // of one epoch

  // Of data.text; empty for other data.
  std::string_view training_text() const { return training_text_; }
  std::string_view held_out_text() const { return held_out_text_; }
  bool is_text() const { return text_.has_value(); }

  // One replica of so many, which share out the batch in order.
  struct Part {
    std::int64_t replica = 0;
    std::int64_t replicas = 1;
  };

  // The part of the batch that begins with sample `first` of the endless sequence of epochs (Samples). So the
  // data's whole state is one integer: the samples drawn so far. Throws InputError when the tokens are
  // damaged.
  StepTokens training_batch(std::int64_t first, Part part) const;
  StepTokens training_batch(std::int64_t first) const { return training_batch(first, Part()); }

  // Evaluation uses the first held-out samples, at most train.evaluate_sequences, in order; the last batch is
  // filled with padding rows without targets. No batches when nothing is held out.
  std::int64_t evaluation_batches() const;
  StepTokens evaluation_batch(std::int64_t index, Part part) const;
  StepTokens evaluation_batch(std::int64_t index) const { return evaluation_batch(index, Part()); }

 private:
  // Of a batch; `starts` may be null.
  struct Row {
    std::int64_t *tokens, *targets, *starts;
  };
  // What a sample's tokens belong to: of each the place in the sample where its document begins, and whether
  // it is a target.
  struct Marks {
    std::vector<std::int64_t> starts;
    std::vector<char> learnt;

    bool has_target(std::int64_t token) const;  // the next one
  };
  Marks marks_of(const Samples::Place& place) const;
  std::int64_t count_targets(const Samples::Place& place) const;
  void fill(const Samples::Place& place, const Row& row) const;
  template <class PlaceOf>
  StepTokens batch(const Part& part, PlaceOf place_of) const;

  Cut cut_;
  bool masks_documents_, masks_loss_;
  std::int64_t batch_;
  std::int64_t micro_batch_;
  std::int64_t padding_;  // token of padding rows
  std::optional<files::MappedFile> text_;
  std::string_view training_text_, held_out_text_;
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::optional<Samples> training_, held_out_;
  std::int64_t evaluation_samples_ = 0;
};

}  // namespace penstock::train
