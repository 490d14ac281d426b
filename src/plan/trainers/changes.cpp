// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/changes.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "plan/plan_print.h"
#include "plan/trainer_choices.h"
#include "plan/trainers/beyond.h"

namespace penstock::plan {
namespace {

// Each replica has all states: Megatron-LM without its distributed optimizer.
bool has_whole_states(const Layout& layout) { return !layout.sharded.on && layout.sharded.group == 1; }

// Copies of the states that replicas shard.
std::int64_t copies_of(const Layout& layout) {
  return layout.sharded.group > 0 && !has_whole_states(layout) ? layout.mesh.replicas() / layout.sharded.group
                                                               : 1;
}

// Fills the cluster with replicas that hold `copies` copies; returns false if that is impossible.
bool fill(Layout& layout, std::int64_t gpus, std::int64_t copies) {
  const std::int64_t others =
      static_cast<std::int64_t>(layout.mesh.tensor) * layout.mesh.context * layout.mesh.pipeline;
  if (others > gpus || gpus % others != 0) return false;
  layout.mesh.data = static_cast<int>(gpus / others);
  if (layout.mesh.data % copies != 0) return false;
  layout.sharded.group = copies > 1 ? layout.mesh.replicas() / copies : 0;
  return true;
}

void recompute(Layout& layout, model::Policy policy) {
  layout.keep = model::keep_of(policy);
  layout.others = model::keep_of(model::Policy::None);
  layout.recomputed = 1;
  layout.recompute_scores = false;
}

// The layout with its time and memory; absent if it cannot run or does not fit.
std::optional<Candidate> judged(const Cluster& cluster, const Workload& workload, Layout layout) {
  if (reject(workload, layout, cluster.hardware.node.gpus, cluster.engine.folded_experts)) return {};
  if (refusal_of(*cluster.trainer, workload, layout)) return {};
  adapt(cluster, layout);
  Candidate candidate;
  candidate.layout = layout;
  candidate.memory = fit_memory(workload, layout, cluster.limit);
  if (!candidate.memory.fits) return {};
  candidate.cost = step_cost(workload, layout, cluster.hardware, cluster.engine);
  return candidate;
}

// Layouts one step away; they may be impossible.
class Neighbours {
 public:
  Neighbours(const Question& question, const Layout& layout)
      : question_(question), layout_(layout), copies_(copies_of(layout)) {
    add_meshes();
    add_recomputations();
    add_schedules();
    if (question.cluster.trainer->shards_weights) add_shardings();
    if (has_whole_states(layout)) add([](Layout& other) { other.sharded.group = 0; });
  }

  std::vector<Layout> found;

 private:
  using Change = std::function<void(Layout&)>;

  void add(const Change& change) { add(copies_, change); }
  void add(std::int64_t copies, const Change& change) {
    Layout other = layout_;
    change(other);
    if (other.mesh.pipeline == 1) other.schedule = ScheduleKind::OneFOneB, other.chunks = 1;
    const bool whole = has_whole_states(other);
    if (!fill(other, question_.cluster.gpus, copies)) return;
    if (whole) other.sharded.group = 1;
    found.push_back(other);
  }

  void add_meshes() {
    for (int mesh::Mesh::*size : {&mesh::Mesh::tensor, &mesh::Mesh::context, &mesh::Mesh::pipeline}) {
      add([&](Layout& other) { other.mesh.*size *= 2; });
      if (layout_.mesh.*size % 2 == 0) add([&](Layout& other) { other.mesh.*size /= 2; });
    }
    if (question_.workload.model.shape.experts > 1) add_expert_ranks();
    add([](Layout& other) { other.micro_batch *= 2; });
    if (layout_.micro_batch % 2 == 0) add([](Layout& other) { other.micro_batch /= 2; });
  }

  // All divisors: few more, and sizes between may not fit.
  void add_expert_ranks() {
    const std::int64_t experts = question_.workload.model.shape.experts;
    for (int ranks = 1; ranks <= std::min(experts, question_.cluster.gpus); ++ranks) {
      if (experts % ranks == 0) add([&](Layout& other) { other.mesh.expert = ranks; });
    }
  }

  void add_recomputations() {
    const Workload& workload = question_.workload;
    for (const model::Policy policy : question_.cluster.trainer->policies)
      add([&](Layout& other) { recompute(other, policy); });
    std::optional<Candidate> fastest;  // the others differ little
    for (const Layout& part : partly_recomputed(*question_.cluster.trainer, workload, layout_))
      keep_faster(judged(question_.cluster, workload, part), fastest);
    if (fastest) add([&](Layout& other) { other = fastest->layout; });
    if (layout_.whole_hidden) add([](Layout& other) { other.whole_hidden = false; });
  }

  void add_schedules() {
    constexpr int kMostChunks = 16;
    for (const ScheduleKind kind : question_.cluster.trainer->schedules) {
      for (int chunks = 1; chunks <= kMostChunks; ++chunks)
        add([&](Layout& other) { other.schedule = kind, other.chunks = chunks; });
    }
  }

  void add_shardings() {
    add(2 * copies_, [](Layout&) {});
    if (copies_ % 2 == 0) add(copies_ / 2, [](Layout&) {});
    for (const bool regathers : {true, false}) add([&](Layout& other) { other.sharded.asked = regathers; });
  }

  const Question& question_;
  const Layout& layout_;
  const std::int64_t copies_;
};

std::vector<Layout> neighbours(const Question& question, const Layout& layout) {
  return Neighbours(question, layout).found;
}

// A change that is not in words yet.
struct Found {
  Candidate candidate;
  Edit edit;
  int steps;
};

// Collects changes that help.
class Search {
 public:
  Search(const Job& job, const Candidate& today) : job_(job), today_(today) {}

  // Those one step away from any of `from`.
  void add_near(const std::vector<Layout>& from, int steps) {
    for (const Layout& start : from) {
      for (const Layout& layout : neighbours(job_.question(), start)) add(layout, steps);
    }
  }

  // The first that runs the same layout faster.
  void add_engine_edit() {
    for (const Edit& edit : job_.engine_edits()) {
      const std::optional<Job::Read> read = read_with(edit);
      if (!read) continue;
      const std::optional<Candidate> candidate = judged_with(*read);
      if (helps(candidate)) return found.push_back({*candidate, edit, 1});
    }
  }

  // Two changes that are no faster than one.
  void drop_idle_pairs() {
    std::optional<Seconds> fastest;
    for (const Found& one : found) {
      if (one.steps == 1) fastest = std::min(one.candidate.step(), fastest.value_or(one.candidate.step()));
    }
    std::erase_if(found, [&](const Found& one) {
      return one.steps == 2 && fastest && one.candidate.step() >= (1 - kLeastGain) * *fastest;
    });
  }

  std::vector<Found> found;

 private:
  static constexpr double kLeastGain = 1e-3;  // of a step: more than rounding shows

  void add(const Layout& layout, int steps) {
    if (std::ranges::find(tried_, layout) != tried_.end()) return;
    tried_.push_back(layout);
    const Question& question = job_.question();
    if (!helps(judged(question.cluster, question.workload, layout))) return;
    Edit edit = job_.edit_to(layout);
    const std::optional<Job::Read> read = read_with(edit);
    if (!read || read->workload.global_batch != question.workload.global_batch) return;
    const std::optional<Candidate> candidate = judged_with(*read);
    if (!helps(candidate) || is_known(candidate->layout)) return;
    found.push_back({*candidate, std::move(edit), steps});
  }

  std::optional<Candidate> judged_with(const Job::Read& read) const {
    Cluster cluster = job_.question().cluster;
    cluster.engine = read.engine;
    return judged(cluster, read.workload, read.layout);
  }

  std::optional<Job::Read> read_with(const Edit& edit) const {
    try {
      return job_.with(edit);
    } catch (const InputError&) {  // the trainer has no such setting
      return {};
    }
  }

  bool helps(const std::optional<Candidate>& candidate) const {
    return candidate && (!today_.memory.fits || candidate->step() < (1 - kLeastGain) * today_.step());
  }

  bool is_known(const Layout& layout) const {
    return layout == today_.layout ||
           std::ranges::any_of(found, [&](const Found& one) { return one.candidate.layout == layout; });
  }

  const Job& job_;
  const Candidate& today_;
  std::vector<Layout> tried_;
};

}  // namespace

std::vector<Change> nearest_changes(const Job& job, const Candidate& today, std::size_t count) {
  Search search(job, today);
  search.add_engine_edit();
  search.add_near({today.layout}, 1);
  if (search.found.size() < count) {
    search.add_near(neighbours(job.question(), today.layout), 2);
    search.drop_idle_pairs();
  }
  std::ranges::stable_sort(search.found, {},
                           [](const Found& one) { return std::pair(one.steps, one.candidate.step()); });
  if (search.found.size() > count) search.found.resize(count);
  std::vector<Change> changes;
  for (const Found& one : search.found)
    changes.push_back({one.candidate, job.text_of(job.shortest(one.edit)), one.steps});
  return changes;
}

namespace {

std::string print_sizes(const model::Shape& shape) {
  std::string text =
      std::to_string(model::total_parameters(shape)) + " parameters: " + std::to_string(shape.layers) +
      " layers, hidden " + std::to_string(shape.hidden) + ", ffn " + std::to_string(shape.ffn) + ", " +
      std::to_string(shape.heads) + " heads of " + std::to_string(shape.head_dim()) + " (" +
      std::to_string(shape.kv_heads) + " for keys and values), vocabulary " + std::to_string(shape.vocab);
  if (shape.experts > 1)
    text += ", " + std::to_string(shape.experts) + " experts (" + std::to_string(shape.experts_per_token) +
            " a token)" +
            (shape.shared_ffn > 0 ? " and one of " + std::to_string(shape.shared_ffn) + " for all" : "");
  return text + (shape.tied_embeddings ? ", tied embeddings" : "");
}

}  // namespace

std::string explain_today(const Plan& plan, const Job& job) {
  const Candidate& today = plan.result.best.front();
  const auto& [name, seconds] = largest_overhead(today.cost);
  std::string text = print_question(plan) + "\n" + print_sizes(plan.workload.model.shape) + "\n" +
                     explain(plan.workload, plan.cluster, today) + "\nwhat limits it  " + std::string(name) +
                     ", " + percent(seconds / today.cost.total()) + " of the step\n";
  const std::vector<Change> changes = nearest_changes(job, today);
  text += changes.empty() ? "no near change helps: no single one and no two together, within what " +
                                std::string(job.trainer().name) + " can do\n"
                          : std::string("what would help\n");
  for (const Change& change : changes) {
    const double longer = change.candidate.step() / today.step() - 1;
    text += "  " + number(change.candidate.step(), 3) + " s (" + signed_percent(longer) + "), " +
            gigabytes(as_double(change.candidate.memory.fullest.total()), 1) + " GB: " + change.text + "\n";
  }
  return text;
}

}  // namespace penstock::plan
