// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool are_lengths(const OrderedJson& list) {
  return list.is_array() && !list.empty() && std::ranges::all_of(list, [](const OrderedJson& length) {
           return length.is_number_unsigned() && length > 0u && length < std::uint64_t{1} << 40;
         });
}

// Whether these are one micro-batch's sequences, all of equal length.
bool are_documents(const OrderedJson& sequences, std::int64_t count) {
  if (!sequences.is_array() || std::ssize(sequences) != count) return false;
  if (!std::ranges::all_of(sequences, are_lengths)) return false;
  const model::Documents documents = sequences.get<model::Documents>();
  return std::ranges::all_of(documents, [&](const std::vector<Tokens>& lengths) {
    return model::sequence_length({lengths}) == model::sequence_length(documents);
  });
}

// Whether the run can have had these sequences: full ones, or with slices of a given number of tokens any
// within their bounds.
bool fits(const run::StepContent& content, const run::Run& run) {
  const bool full = run.options.schedule.slice_tokens == 0;
  for (std::size_t j = 0; j < content.documents.size(); ++j) {
    const Tokens length = model::sequence_length(content.documents[j]);
    if (content.fewest[j] > length || length > content.most[j]) return false;
    if (content.most[j] > run.options.data.seq_len) return false;
    if (full && content.fewest[j] != run.options.data.seq_len) return false;
  }
  return true;
}

}  // namespace

std::string to_json(const StepDocuments& documents) {
  const run::StepContent& content = documents.content;
  return OrderedJson{{"step", documents.step},
                     {"fewest", content.fewest},
                     {"most", content.most},
                     {"micro_batches", content.documents}}
             .dump() +
         "\n";
}

StepDocuments parse_step_documents(std::string_view json, const run::Run& run, std::string_view origin) {
  const OrderedJson file = files::parse_or_discard<OrderedJson>(json);
  const auto micro_batches = static_cast<std::size_t>(run.schedule.micro_batches());
  const auto member = [&](const char* key) {
    return file.is_object() ? file.value(key, OrderedJson()) : OrderedJson();
  };
  const OrderedJson step = member("step"), fewest = member("fewest"), most = member("most"),
                    documents = member("micro_batches");
  const bool good = step.is_number_unsigned() && are_lengths(fewest) && are_lengths(most) &&
                    fewest.size() == micro_batches && most.size() == micro_batches && documents.is_array() &&
                    documents.size() == micro_batches &&
                    std::ranges::all_of(documents, [&](const OrderedJson& sequences) {
                      return are_documents(sequences, run.sequences());
                    });
  if (!good)
    throw InputError(std::string(origin) + ": does not have the documents of " +
                     counted(micro_batches, "micro-batch") + " of " + counted(run.sequences(), "sequence"));
  run::StepContent content{.documents = documents.get<std::vector<model::Documents>>(),
                           .fewest = fewest.get<std::vector<Tokens>>(),
                           .most = most.get<std::vector<Tokens>>()};
  if (!fits(content, run))
    throw InputError(std::string(origin) +
                     ": has sequences of other lengths than the run with data.seq_len = " +
                     std::to_string(run.options.data.seq_len));
  return {.step = step.get<std::int64_t>(), .content = std::move(content)};
}

}  // namespace penstock::train
