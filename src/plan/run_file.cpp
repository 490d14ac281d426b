// SPDX-License-Identifier: Apache-2.0
#include "plan/run_file.h"

#include "base/text.h"

namespace penstock::plan {
namespace {

std::string entry(const char* key, std::int64_t value) {
  return std::string(key) + " = " + std::to_string(value) + "\n";
}
std::string entry(const char* key, const std::string& value) {
  return std::string(key) + " = " + json_quote(value) + "\n";
}
std::string entry(const char* key, bool value) {
  return std::string(key) + " = " + (value ? "true" : "false") + "\n";
}

std::string arithmetic(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const double tokens = static_cast<double>(workload.global_batch * workload.seq_len);
  return "# " + print_layout(candidate.layout) + " on " + std::to_string(cluster.gpus) + " " +
         cluster.hardware.device.name + "\n# " +
         print_count(static_cast<double>(model::total_parameters(workload.model.shape))) + " parameters, " +
         print_count(tokens) + " tokens and " + print_count(model_flops(workload)) +
         "FLOP a step\n# predicted: " + number(candidate.step(), 4) + " s a step, " +
         number(100 * model_flops_utilization(workload, cluster, candidate.step()), 1) + " % MFU, " +
         number(static_cast<double>(candidate.memory.fullest.total()) / 1e9, 3) + " GB on device " +
         std::to_string(candidate.memory.rank) + "\n\n";
}

std::string model_section(const model::Shape& shape) {
  return "[model]\n" + entry("layers", shape.layers) + entry("hidden", shape.hidden) +
         entry("ffn", shape.ffn) + entry("heads", shape.heads) + entry("kv_heads", shape.kv_heads) +
         entry("vocab", shape.vocab) + entry("tied_embeddings", shape.tied_embeddings);
}

// Keys that the trainer leaves at their defaults are left out.
std::string memory_section(const Layout& layout) {
  std::string text = "\n[memory]\n" + entry("policy", model::policy_text(layout.keep));
  if (layout.offload > 0) text += "offload = " + exact_number(layout.offload) + "\n";
  return text;
}

std::string schedule_section(const Layout& layout) {
  std::string text = "\n[schedule]\n" + entry("name", std::string(name_of(layout.schedule)));
  if (is_sliced(layout.schedule)) text += entry("slices", std::int64_t{layout.slices});
  text += entry("chunks", std::int64_t{layout.chunks});
  if (layout.exchange != Exchange::Off) {
    text += entry("exchange", std::string(kExchangeNames[static_cast<std::size_t>(layout.exchange)]));
  }
  if (layout.vocabulary_parallel) text += entry("vocabulary_parallel", true);
  return text;
}

}  // namespace

std::string not_trainable_yet(const Workload& workload, const Layout& layout) {
  const auto& spread = layout.spread;
  const std::pair<const char*, int> sizes[] = {
      {"tp", spread.tensor}, {"cp", spread.context}, {"dp", spread.data}, {"ep", spread.expert}};
  std::vector<std::string> missing;
  for (const auto& [name, size] : sizes) {
    if (size > 1) missing.push_back(std::string(name) + " = " + std::to_string(size));
  }
  if (workload.model.shape.experts > 1) missing.push_back("experts");
  return join(missing, ", ");
}

std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir) {
  const Layout& layout = candidate.layout;
  const std::string missing = not_trainable_yet(workload, layout);
  std::string text;
  if (!missing.empty()) text += "# the trainer cannot run this yet: it needs " + missing + "\n";
  text += arithmetic(workload, cluster, candidate) + model_section(workload.model.shape);
  text +=
      "\n[data]\n" + (text_file.empty() ? "" : entry("text", text_file)) + entry("seq_len", workload.seq_len);
  text += "\n[parallel]\n" + entry("pp", std::int64_t{layout.spread.pipeline}) +
          entry("dp", std::int64_t{layout.spread.data}) + entry("cp", std::int64_t{layout.spread.context}) +
          entry("tp", std::int64_t{layout.spread.tensor});
  text += schedule_section(layout) + memory_section(layout);
  text += "\n[train]\n" + entry("batch", workload.global_batch) +
          entry("micro_batch", std::int64_t{layout.micro_batch}) +
          entry("precision", cluster.hardware.device.peak);
  return text + "\n[output]\n" + entry("dir", output_dir);
}

}  // namespace penstock::plan
