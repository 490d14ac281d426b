// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/slice_notes.h"

#include <algorithm>

#include "base/text.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kNamed = 6;  // upper bound on documents named per slice

// Lengths of the documents that have tokens in the slice.
std::vector<Tokens> lengths_in(const model::Documents& documents, const model::TokenRange& slice) {
  std::vector<Tokens> found;
  for (const std::vector<Tokens>& lengths : documents) {
    Tokens begin = 0;
    for (const Tokens length : lengths) {
      if (begin < slice.begin + slice.length && begin + length > slice.begin) found.push_back(length);
      begin += length;
    }
  }
  return found;
}

std::string note_of(const model::Documents& documents, const model::TokenRange& slice) {
  const std::vector<Tokens> lengths = lengths_in(documents, slice);
  std::vector<std::string> named;
  for (const Tokens length : lengths)
    if (named.size() < kNamed) named.push_back(std::to_string(length));
  const model::TokenRange keys{0, slice.begin + slice.length};
  const model::Documents causal(documents.size(), {keys.length});
  const double attended =
      model::attended_pairs(documents, slice, keys) / model::attended_pairs(causal, slice, keys);
  return "tokens " + std::to_string(slice.begin) + " to " + std::to_string(keys.length - 1) + " of " +
         std::to_string(lengths.size()) + (lengths.size() == 1 ? " document of " : " documents of ") +
         join(named, ", ") + (lengths.size() > kNamed ? ", ..." : "") + " tokens; attends to " +
         percent(attended) + " of the keys up to it";
}

}  // namespace

std::vector<std::vector<std::string>> notes_of_slices(const run::Run& run) {
  std::vector<std::vector<std::string>> notes;
  for (std::size_t j = 0; j < run.documents.size(); ++j) {
    auto& of_micro_batch = notes.emplace_back();
    for (const model::TokenRange& slice : run.slices[j])
      of_micro_batch.push_back(note_of(run.documents[j], slice));
  }
  return notes;
}

}  // namespace penstock::cli
