// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/settings.h"

#include <algorithm>

#include "base/text.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/torchtitan.h"
#include "plan/trainers/torchtitan_models.h"

namespace penstock::plan {
namespace {

bool is_toml(const Trainer& trainer) { return trainer.name == "torchtitan"; }

// A comment on model features that no argument of Megatron-LM 307dcf37 sets, and on its behaviour instead.
std::string lack_of_megatron(const model::Shape& shape) {
  constexpr double kRotaryBase = 10000;
  std::string text;
  const auto without = [&](bool lacks, const std::string& what) {
    if (lacks) text += "# without " + what + "\n";
  };
  without(shape.shared_ffn > 0,
          "the expert that every token visits, of width " + std::to_string(shape.shared_ffn));
  without(shape.rope_theta != kRotaryBase, "model.rope_theta = " + exact_number(shape.rope_theta) +
                                               ": the base of rotary positions is " +
                                               exact_number(kRotaryBase));
  without(shape.rope_scaling.factor != 1, "model.rope_factor = " + exact_number(shape.rope_scaling.factor) +
                                              ": rotary positions are not scaled");
  without(shape.experts > 1 && !shape.normalised_experts,
          "moe.norm_topk = false: the weights of a token's experts sum to 1");
  return text;
}

std::string print_kind(const model::Shape& shape) {
  std::vector<std::string> words;
  if (shape.head_norms) words.emplace_back("norms of heads");
  if (shape.experts > 1) words.emplace_back(shape.shared_ffn > 0 ? "experts and a shared one" : "experts");
  if (shape.tied_embeddings) words.emplace_back("tied embeddings");
  return join(words, ", ");
}

// A comment on model features that the file cannot express; empty if there are none.
std::string lack_of(const Trainer& trainer, const model::Shape& shape) {
  if (!is_toml(trainer)) return lack_of_megatron(shape);
  if (titan_model_of(shape) != nullptr) return {};
  const TitanKind kind = titan_kind_of(shape);
  const std::string add = "add one, and name it as model.flavor\n";
  if (kind.same) return "# no flavor of its models has these sizes: " + add;
  return "# none of its models is of this kind (" + print_kind(shape) + "); " + std::string(kind.name) +
         " is the nearest, and no flavor of it has these sizes: " + add;
}

}  // namespace

Settings settings_of(const Trainer& trainer, const Workload& workload, const Layout& layout) {
  require_swiglu(workload.model, "a configuration of " + std::string(trainer.name));
  return is_toml(trainer) ? torchtitan_settings(workload, layout) : megatron_settings(workload, layout);
}

std::string print_settings(const Trainer& trainer, const Plan& plan, const Candidate& candidate) {
  const std::string head = "# " + print_question(plan) + "\n# " + print_layout(candidate.layout) + ": " +
                           number(candidate.step(), 3) + " s a step, " +
                           gigabytes(as_double(candidate.memory.fullest.total()), 1) +
                           " GB on the fullest device, predicted\n# for " + std::string(trainer.version) +
                           "\n" + lack_of(trainer, plan.workload.model.shape);
  Settings settings = settings_of(trainer, plan.workload, candidate.layout);
  if (plan.cluster.compiled) settings.push_back({"compile.enable", "true"});
  return head + (is_toml(trainer) ? print_torchtitan(settings) : print_megatron(settings));
}

std::string word_of(const Trainer& trainer, const Setting& setting) {
  if (setting.value.empty()) return setting.name;
  return setting.name + (is_toml(trainer) ? " = " : " ") + setting.value;
}

}  // namespace penstock::plan
