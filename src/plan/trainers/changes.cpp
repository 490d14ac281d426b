// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/changes.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.h"
#include "plan/plan_print.h"

namespace penstock::plan {
namespace {

bool faster(const Change& a, const Change& b) { return a.candidate.step() < b.candidate.step(); }

// Replicas fill the cluster; false where they cannot.
bool fill(Layout& layout, std::int64_t gpus) {
  const std::int64_t others =
      static_cast<std::int64_t>(layout.mesh.tensor) * layout.mesh.context * layout.mesh.pipeline;
  if (others > gpus || gpus % others != 0) return false;
  layout.mesh.data = static_cast<int>(gpus / others);
  return true;
}

// Layouts one step away; they may be impossible.
std::vector<Layout> neighbours(const Question& question, const Layout& layout) {
  std::vector<Layout> found;
  const auto add = [&](const std::function<void(Layout&)>& change) {
    Layout other = layout;
    change(other);
    if (fill(other, question.cluster.gpus)) found.push_back(other);
  };
  for (int mesh::Mesh::*size : {&mesh::Mesh::tensor, &mesh::Mesh::context, &mesh::Mesh::pipeline}) {
    add([&](Layout& other) { other.mesh.*size *= 2; });
    if (layout.mesh.*size % 2 == 0) add([&](Layout& other) { other.mesh.*size /= 2; });
  }
  add([](Layout& other) { other.micro_batch *= 2; });
  if (layout.micro_batch % 2 == 0) add([](Layout& other) { other.micro_batch /= 2; });
  for (const model::Policy policy : question.trainer->policies)
    add([&](Layout& other) { other.keep = model::keep_of(policy); });
  for (const ScheduleKind kind : question.trainer->schedules) {
    for (int chunks = 1; chunks <= 16; ++chunks) {
      add([&](Layout& other) { other.schedule = kind, other.chunks = chunks; });
    }
  }
  return found;
}

// With its time and memory; nothing where it cannot run or does not fit.
std::optional<Candidate> judged(const Question& question, Layout layout) {
  const Workload& workload = question.workload;
  const Cluster& cluster = question.cluster;
  if (reject(workload, layout, cluster.hardware.node.gpus, cluster.engine.folded_experts)) return {};
  if (refusal_of(*question.trainer, workload, layout)) return {};
  adapt(*question.trainer, layout);
  Candidate candidate;
  candidate.layout = layout;
  candidate.memory = fit_memory(workload, layout, cluster.limit, /*fixed=*/true);
  if (!candidate.memory.fits) return {};
  candidate.cost = step_cost(workload, layout, cluster.hardware, cluster.engine);
  return candidate;
}

// One step from any of `from`: those that help, each once, fastest first.
std::vector<Change> helpful(const Question& question, const Candidate& today, const std::vector<Layout>& from,
                            int steps) {
  const Settings before = settings_of(*question.trainer, question.workload, today.layout);
  std::vector<Change> changes;
  for (const Layout& start : from) {
    for (const Layout& layout : neighbours(question, start)) {
      const std::optional<Candidate> candidate = judged(question, layout);
      if (!candidate || (today.memory.fits && candidate->step() >= today.step())) continue;
      const std::string text = difference(
          *question.trainer, before, settings_of(*question.trainer, question.workload, candidate->layout));
      if (text.empty() || std::ranges::find(changes, text, &Change::text) != changes.end()) continue;
      changes.push_back({*candidate, text, steps});
    }
  }
  std::ranges::stable_sort(changes, faster);
  return changes;
}

}  // namespace

std::vector<Change> nearest_changes(const Question& question, const Candidate& today, std::size_t count) {
  std::vector<Change> changes = helpful(question, today, {today.layout}, 1);
  if (changes.size() < count) {
    for (Change& change : helpful(question, today, neighbours(question, today.layout), 2)) {
      if (std::ranges::find(changes, change.text, &Change::text) == changes.end())
        changes.push_back(std::move(change));
    }
  }
  if (changes.size() > count) changes.resize(count);
  return changes;
}

std::string explain_today(const Plan& plan, const Question& question) {
  const Candidate& today = plan.result.best.front();
  const auto& [name, seconds] = largest_overhead(today.cost);
  std::string text = print_question(plan) + "\n" + explain(plan.workload, plan.cluster, today) +
                     "\nwhat limits it  " + std::string(name) + ", " + percent(seconds / today.cost.total()) +
                     " of the step\n";
  const std::vector<Change> changes = nearest_changes(question, today);
  text += changes.empty() ? "nothing near helps: no single change, and no two, within what " +
                                std::string(question.trainer->name) + " can do\n"
                          : std::string("what would help\n");
  for (const Change& change : changes) {
    text += "  " + number(change.candidate.step(), 3) + " s (" +
            percent(change.candidate.step() / today.step() - 1) + "), " +
            number(static_cast<double>(change.candidate.memory.fullest.total()) / 1e9, 1) +
            " GB: " + change.text + "\n";
  }
  return text;
}

}  // namespace penstock::plan
