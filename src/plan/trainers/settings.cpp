// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/settings.h"

#include <algorithm>

#include "base/text.h"
#include "plan/trainers/megatron.h"
#include "plan/trainers/torchtitan.h"

namespace penstock::plan {
namespace {

std::string word_of(const Setting& setting, bool toml) {
  if (setting.value.empty()) return setting.name;
  return setting.name + (toml ? " = " : " ") + setting.value;
}

bool is_toml(const Trainer& trainer) { return trainer.name == "torchtitan"; }

}  // namespace

Settings settings_of(const Trainer& trainer, const Workload& workload, const Layout& layout) {
  return is_toml(trainer) ? torchtitan_settings(workload, layout) : megatron_settings(workload, layout);
}

std::string print_settings(const Trainer& trainer, const Plan& plan, const Candidate& candidate) {
  const std::string head = "# " + print_question(plan) + "\n# " + print_layout(candidate.layout) + ": " +
                           number(candidate.step(), 3) + " s a step, " +
                           number(static_cast<double>(candidate.memory.fullest.total()) / 1e9, 1) +
                           " GB on the fullest device, predicted\n# for " + std::string(trainer.version) +
                           "\n";
  const Settings settings = settings_of(trainer, plan.workload, candidate.layout);
  return head + (is_toml(trainer) ? print_torchtitan(settings) : print_megatron(settings));
}

std::string difference(const Trainer& trainer, const Settings& before, const Settings& after) {
  std::vector<std::string> words;
  for (const Setting& setting : after) {
    if (std::ranges::find(before, setting) == before.end())
      words.push_back(word_of(setting, is_toml(trainer)));
  }
  for (const Setting& setting : before) {
    if (std::ranges::find(after, setting.name, &Setting::name) == after.end())
      words.push_back("without " + setting.name);
  }
  return join(words, ", ");
}

}  // namespace penstock::plan
