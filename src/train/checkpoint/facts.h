// SPDX-License-Identifier: Apache-2.0
// checkpoint.json: the metadata of a checkpoint. Its last member is the checksum of all bytes before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::train {

// Checksums of one file of tensors.
struct FileSums {
  std::string file;
  std::uint64_t head = 0;  // of the bytes before the tensors
  std::vector<std::pair<std::string, std::uint64_t>> tensors;
  friend bool operator==(const FileSums&, const FileSums&) = default;
};

// The run's options by name, in the form of a run file.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct CheckpointFacts {
  std::int64_t step = 0;                      // done
  std::int64_t samples_drawn = 0;             // the position in the data
  std::optional<std::int64_t> tokens = {};    // in these samples, without padding; empty in older checkpoints
  std::int64_t samples_per_epoch = 0;         // of the data
  std::optional<std::uint64_t> content = {};  // of the data (TokenData::content); empty in older checkpoints
  std::optional<std::uint64_t> marks = {};    // the same
  std::optional<std::uint64_t> held_out = {};  // the same
  std::int64_t updates = 0;                    // of the optimizer: steps not skipped
  std::int64_t skipped_steps = 0;
  std::int64_t skipped_in_a_row = 0;  // up to this step
  std::optional<double> loss;         // of the last step with targets; empty if not finite
  std::optional<double> evaluation_loss;
  std::string metrics;  // this step's line, if metrics.jsonl may lack it; else empty
  Settings settings;
  std::uint64_t index = 0;  // checksum of the weight index
  std::vector<FileSums> files;
  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

std::string to_json(const CheckpointFacts& facts);

// Throws InputError that begins with `origin` if the checksum is missing or wrong, or a member is missing, of
// another type or out of range.
CheckpointFacts parse_checkpoint_facts(std::string_view text, std::string_view origin);

}  // namespace penstock::train
