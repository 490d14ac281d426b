// SPDX-License-Identifier: Apache-2.0
#include "run/layer_policies.h"

#include "base/error.h"
#include "base/text.h"

namespace penstock::run {
namespace {

struct Entry {
  std::int64_t first, last;
  model::KeepSet keep;
};

// Parses "0-3: full" of a key whose numbers go from 0 to `count` - 1.
Entry parse_entry(const std::string& text, const char* key, std::int64_t count) {
  const auto refuse = [&](const std::string& reason) {
    throw InputError(std::string(key) + " entry " + json_quote(printable(text)) + " " + reason);
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) refuse("has no colon; write \"0-3: full\" or \"5: balanced\"");
  const auto ends = split(trim(std::string_view(text).substr(0, colon)), '-');
  const auto first = parse_integer(trim(ends.front())), last = parse_integer(trim(ends.back()));
  if (ends.size() > 2 || !first || !last) refuse("is not a range; write \"0-3: full\" or \"5: balanced\"");
  if (*first > *last) refuse("runs backwards; write the smaller number first");
  if (*last >= count) {
    refuse("goes beyond the last, number " + std::to_string(count - 1) + "; use at most that");
  }
  const std::string_view policy = trim(std::string_view(text).substr(colon + 1));
  return {*first, *last, model::parse_policy_text(policy, std::string(key) + " policy")};
}

model::KeepSet common_policy(const MemoryOptions& options) {
  if (options.keep.empty())
    return keep_of(options.policy == "auto" ? model::Policy::None : model::parse_policy(options.policy));
  if (options.policy != "none") {
    throw InputError("memory.policy = " + json_quote(options.policy) +
                     " and memory.keep are both given; leave one out");
  }
  return model::parse_keep(options.keep);
}

}  // namespace

std::vector<model::KeepSet> layer_policies(const MemoryOptions& options,
                                           const std::vector<model::LayerRange>& stages, bool sliced) {
  const auto layers = static_cast<std::size_t>(stages.back().first + stages.back().count);
  std::vector<model::KeepSet> keep(layers, common_policy(options));
  const auto set = [&](std::int64_t first, std::int64_t count, model::KeepSet kept) {
    for (std::int64_t layer = first; layer < first + count; ++layer) {
      keep[layer] = kept;
    }
  };
  for (const std::string& text : options.stages) {
    const Entry entry = parse_entry(text, "memory.stages", static_cast<std::int64_t>(stages.size()));
    for (std::int64_t stage = entry.first; stage <= entry.last; ++stage) {
      const auto [first, count] = stages[stage];
      set(first, count, entry.keep);
    }
  }
  for (const std::string& text : options.layers) {
    const Entry entry = parse_entry(text, "memory.layers", static_cast<std::int64_t>(layers));
    set(entry.first, entry.last - entry.first + 1, entry.keep);
  }
  for (model::KeepSet& kept : keep) {
    if (sliced) kept = kept.with(model::SavedTensor::KeyValue);
  }
  return keep;
}

}  // namespace penstock::run
