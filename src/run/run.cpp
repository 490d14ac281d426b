// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include <map>

#include "base/text.h"

namespace penstock::run {

std::string_view name_of(Topic topic) {
  constexpr std::string_view names[] = {"schedule", "layers", "context", "exchange", "gathers", "memory"};
  return names[static_cast<std::size_t>(topic)];
}

std::string Run::note(Topic topic) const {
  const auto found = notes.find(topic);
  return found == notes.end() ? std::string() : found->second;
}

void Run::add_note(Topic topic, const std::string& text) {
  if (text.empty()) return;
  std::string& note = notes[topic];
  note += (note.empty() ? "" : "; ") + text;
}

mesh::Mesh Run::logical_mesh() const {
  mesh::Mesh logical = mesh;
  logical.tensor = tensor_shards();
  return logical;
}

model::TokenWork token_work(const Options& options) {
  model::TokenWork work = model::token_work(options.model.shape);
  work.pair *= options.schedule.attention_cost;
  return work;
}

std::vector<model::TokenRange> cut(const Options& options, int slices) {
  const Tokens tokens = options.data.seq_len, unit = options.schedule.slice_unit;
  if (options.schedule.cut == "tokens") return model::cut_into_slices(tokens, slices, unit);
  return model::cut_by_work({{tokens}}, slices, unit, token_work(options));
}

Cuts cuts_of(const Options& options, const std::vector<int>& slices) {
  std::map<int, std::vector<model::TokenRange>> found;
  Cuts cuts;
  for (const int count : slices) {
    const auto [place, is_new] = found.try_emplace(count);
    if (is_new) place->second = cut(options, count);
    cuts.push_back(place->second);
  }
  return cuts;
}

std::string name_of_schedule(const Options& options) {
  const ScheduleOptions& chosen = options.schedule;
  return chosen.file.empty() ? "schedule.name = " + json_quote(chosen.name)
                             : "schedule.file = " + json_quote(chosen.file);
}

}  // namespace penstock::run
