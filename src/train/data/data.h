// SPDX-License-Identifier: Apache-2.0
// Training data: a text file, whose bytes are the tokens, or Megatron's pairs of .bin and .idx files. One
// part is for training, another held out for evaluation. Every rank forms the same batches, for any number of
// devices.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"
#include "run/options.h"
#include "run/step_plan.h"
#include "train/data/content.h"
#include "train/data/samples.h"
#include "train/data/token_source.h"
#include "train/step/interpreter.h"

namespace penstock::train {

// Contents of a batch.
struct BatchTokens {
  Tokens tokens = 0;           // of documents
  Tokens padding = 0;          // padding tokens after them
  std::int64_t documents = 0;  // including parts of documents
  std::int64_t continued = 0;  // of these, parts that do not begin their document
};

class TokenData {
 public:
  // What the data is used for.
  struct Use {
    model::TokenWork work;      // for data.packing = "balanced"
    std::int64_t replicas = 1;  // replicas that split a batch: numerics.replicas
    bool trims = false;         // training micro-batches have one sequence, which ends with its documents
    bool evaluates = true;      // otherwise no documents that are held out are read
  };
  // Maps the files, in a time independent of their size; of Megatron files reads the first batch and those of
  // an evaluation. `source`: used instead of the files that `data` names. Throws InputError naming the file
  // and the defect, also if a part is shorter than one sample.
  TokenData(const run::DataOptions& data, const run::TrainOptions& train, std::int64_t vocab, const Use& use,
            std::unique_ptr<TokenSource> source = nullptr);
  TokenData(const run::DataOptions& data, const run::TrainOptions& train, std::int64_t vocab)
      : TokenData(data, train, vocab, Use()) {}

  std::int64_t samples() const { return training_->count(); }  // of one epoch

  // Checksums of the training and of the held-out tokens, which the first call reads. Any thread.
  Content content() const;

  // Parts of data.text; empty for other data.
  std::string_view training_text() const { return training_text_; }
  std::string_view held_out_text() const { return held_out_text_; }
  bool is_text() const { return text_.has_value(); }

  // One of `replicas` replicas, which split the batch in order.
  struct Part {
    std::int64_t replica = 0;
    std::int64_t replicas = 1;
  };

  // The part of the batch that begins with sample `first` of the endless sequence of epochs (Samples), so the
  // data's whole state is one integer: the samples drawn so far. Throws InputError if the tokens are damaged.
  StepTokens training_batch(std::int64_t first, Part part) const;
  StepTokens training_batch(std::int64_t first) const { return training_batch(first, Part()); }

  // Counts the batch that begins with this sample.
  BatchTokens count(std::int64_t first) const;

  // Inputs of a step's plans, for each of `replicas` replicas, without reading tokens.
  std::vector<run::StepContent> contents(std::int64_t first, std::int64_t replicas) const;

  // Lengths of all training documents.
  std::vector<Tokens> document_lengths() const;

  // Every evaluation uses the same held-out samples, at most train.evaluate_sequences: the first in order or,
  // of packed samples, the first in a fixed random order. The last batch is filled with padding rows without
  // targets. No batches if nothing is held out.
  std::int64_t evaluation_batches() const;
  StepTokens evaluation_batch(std::int64_t index, Part part) const;
  StepTokens evaluation_batch(std::int64_t index) const { return evaluation_batch(index, Part()); }

 private:
  void read_first_batches() const;
  // A row of a batch; `starts` may be null.
  struct Row {
    std::int64_t *tokens, *targets, *starts;
  };
  // For each token of a piece: where in the piece its document begins, and whether the token is a target.
  // Includes the token after a piece that continues.
  struct Marks {
    std::vector<std::int64_t> starts;
    std::vector<char> in_loss;

    bool has_target(std::int64_t token) const;  // whether the next token is its target
  };
  Marks marks_of(const TokenSource& source, const Piece& piece) const;
  std::int64_t count_targets(const TokenSource& source, const Piece& piece) const;
  void fill(const TokenSource& source, const Piece& piece, std::int64_t at, const Row& row) const;
  void fill(const Sample& sample, Tokens length, const Row& row) const;
  std::vector<Tokens> lengths_in(const Sample& sample) const;
  StepTokens batch(const Part& part, const std::vector<Sample>& samples, bool trims) const;
  void note_lengths(const std::vector<Sample>& samples, std::int64_t replicas, std::vector<Tokens>& fewest,
                    std::vector<Tokens>& most) const;

  Cut cut_;
  bool masks_documents_, masks_loss_;
  bool trims_;           // training micro-batches end with their documents
  std::int64_t groups_;  // of the batch; a micro-batch has equally many slices in each
  std::int64_t batch_;
  std::int64_t micro_batch_;
  std::int64_t padding_;  // token id of padding
  std::optional<files::MappedFile> text_;
  std::string_view training_text_, held_out_text_;
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::vector<Stretch> trained_on_, evaluated_on_;
  std::optional<Samples> training_, held_out_;
  std::int64_t evaluation_samples_ = 0;
  mutable std::once_flag content_read_;
  mutable Content content_;
};

}  // namespace penstock::train
