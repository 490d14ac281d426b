// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/all_cores.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/interruption.h"
#include "plan/enumerate.h"
#include "plan/front.h"
#include "plan/host_memory.h"
#include "plan/trainer_choices.h"

namespace penstock::plan {

bool is_faster(const Candidate& a, const Candidate& b) {
  if (rounded_step(a) != rounded_step(b)) return rounded_step(a) < rounded_step(b);
  const Bytes less = a.memory.fullest.total(), more = b.memory.fullest.total();
  if (less != more) return less < more;
  // The order must not depend on which thread visits a mesh; on one mesh the first visited stays first.
  const auto sizes = [](const mesh::Mesh& mesh) {
    return std::tuple(mesh.tensor, mesh.context, mesh.expert, mesh.pipeline);
  };
  return sizes(a.layout.mesh) < sizes(b.layout.mesh);
}

namespace {

// Without a pipeline all schedules run the same work; they differ in what is kept.
bool differ_in_schedule_alone(const Layout& a, Layout b) {
  if (a.mesh.pipeline > 1) return false;
  b.schedule = a.schedule;
  b.group = a.group;
  b.offload = a.offload;
  return a == b;
}

// The trainer's reasons, with the number of layouts for each.
using Refusals = std::map<std::string, std::int64_t>;

// The most frequent reason; ties go to the alphabetically first.
std::string main_refusal(const Refusals& refusals) {
  const auto most = std::ranges::max_element(refusals, {}, &Refusals::value_type::second);
  return most == refusals.end() ? "" : most->first;
}

// The part of the search done by one thread.
class Worker {
 public:
  Worker(const Workload& workload, const Cluster& cluster, const SearchSpace& space, std::size_t keep)
      : workload_(workload), cluster_(cluster), space_(space), keep_(keep), front_(cluster.limit) {}

  void visit(const mesh::Mesh& mesh);
  void add_to(SearchResult& result, Front& front, Refusals& refusals) const;

 private:
  // Values shared by the layouts of one mesh, micro-batch, slices and policy.
  struct Common {
    SliceCost cost;
    double output = 0;     // in layers
    Bytes temporary[2]{};  // with a whole and with a split backward
  };
  using CommonOfPolicies = std::vector<std::optional<Common>>;

  void visit_batch(Layout layout, const std::vector<int>& chunks, const std::vector<int>& slices);
  void visit_schedule(Layout layout, CommonOfPolicies& common);
  void visit_options(const Layout& layout, CommonOfPolicies& common);
  void visit_choices(const Trainer& trainer, const Layout& layout, CommonOfPolicies& common);
  const Common& common_of(const Layout& layout, std::optional<Common>& common) const;
  std::optional<Candidate> judge(Layout layout, const Common& common);
  std::nullopt_t miss(const Candidate& candidate, Rejection why);
  bool is_refused_by_trainer(const Layout& layout);
  int group_for(const Layout& layout) const;
  void count(Rejection why, std::int64_t candidates = 1) {
    candidates_ += candidates;
    rejected_[static_cast<std::size_t>(why)] += candidates;
  }
  std::int64_t option_count() const {
    return static_cast<std::int64_t>(space_.policies.size() * space_.vocabulary_parallel.size() *
                                     space_.exchanges.size());
  }
  void show(const Candidate& candidate);
  void remember(const Candidate& candidate);
  void remember(const Candidate& candidate, std::vector<Candidate>& best) const;

  const Workload& workload_;
  const Cluster& cluster_;
  const SearchSpace& space_;
  std::size_t keep_;
  const bool own_engine_ = cluster_.engine == sim::kPenstock;
  std::int64_t candidates_ = 0;
  std::array<std::int64_t, kRejections> rejected_{};
  Refusals refusals_;
  std::vector<Candidate> best_, without_exchange_;
  std::optional<Candidate> nearest_miss_;
  Front front_;
};

void Worker::visit(const mesh::Mesh& mesh) {
  const auto chunks = chunks_to_try(workload_, mesh, space_);
  const auto slices = slices_to_try(workload_, mesh, space_);
  const auto micro_batches = micro_batches_to_try(workload_, mesh, space_);
  const auto inner =
      static_cast<std::int64_t>(space_.schedules.size() * chunks.size() * slices.size()) * option_count();
  if (const auto why =
          reject_mesh(workload_, mesh, cluster_.hardware.node.gpus, cluster_.engine.folded_experts)) {
    return count(*why, inner * static_cast<std::int64_t>(micro_batches.size()));
  }
  for (const int micro_batch : micro_batches) {
    if (const auto why = reject_batch(workload_, mesh, micro_batch)) {
      count(*why, inner);
      continue;
    }
    Layout layout;
    layout.mesh = mesh;
    layout.micro_batch = micro_batch;
    visit_batch(layout, chunks, slices);
  }
}

void Worker::visit_batch(Layout layout, const std::vector<int>& chunks, const std::vector<int>& slices) {
  for (const int n : slices) {
    layout.slices = n;
    CommonOfPolicies common(space_.policies.size());
    for (const ScheduleKind schedule : space_.schedules) {
      layout.schedule = schedule;
      for (const int v : chunks) {
        layout.chunks = v;
        visit_schedule(layout, common);
      }
    }
  }
}

void Worker::visit_schedule(Layout layout, CommonOfPolicies& common) {
  if (repeats_another(layout)) return count(Rejection::Duplicate, option_count());
  if (const auto why = reject_layout(workload_, layout)) return count(*why, option_count());
  if (is_refused_by_trainer(layout)) return count(Rejection::Trainer, option_count());
  layout.group = group_for(layout);
  visit_options(layout, common);
}

bool Worker::is_refused_by_trainer(const Layout& layout) {
  if (cluster_.trainer == nullptr) return false;
  const std::optional<std::string> why = refusal_of(*cluster_.trainer, workload_, layout);
  if (why) ++refusals_[*why];
  return why.has_value();
}

// For Penstock's own trainer, which has groups: the smallest that hides all transfers in closed form.
// simulate_best tries the others.
int Worker::group_for(const Layout& layout) const {
  if (!own_engine_) return 0;
  const std::vector<int> groups = groups_to_try(layout.schedule, pipeline_shape(workload_, layout));
  return groups[groups.size() > 1 ? 1 : 0];
}

const Worker::Common& Worker::common_of(const Layout& layout, std::optional<Common>& common) const {
  if (common) return *common;
  Layout plain = layout;
  plain.vocabulary_parallel = false;
  plain.exchange = ExchangeMode::Off;
  common.emplace();
  common->cost = slice_cost(workload_, plain, cluster_.hardware, cluster_.engine);
  if (cluster_.engine.levels_layers) common->output = output_in_layers(workload_, plain);
  for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::ZbH1}) {
    plain.schedule = kind;
    common->temporary[splits_backward(kind)] = temporary_bytes(workload_, plain);
  }
  return *common;
}

void Worker::visit_options(const Layout& base, CommonOfPolicies& common) {
  allow_interruption();
  Layout layout = base;
  for (const bool vocabulary : space_.vocabulary_parallel) {
    layout.vocabulary_parallel = vocabulary;
    for (const ExchangeMode exchange : space_.exchanges) {
      layout.exchange = exchange;
      if (const auto why = reject_layout(workload_, layout)) {
        count(*why, static_cast<std::int64_t>(space_.policies.size()));
        continue;
      }
      if (cluster_.trainer) {
        visit_choices(*cluster_.trainer, layout, common);
        continue;
      }
      for (std::size_t i = 0; i < space_.policies.size(); ++i) {
        layout.keep = model::keep_of(space_.policies[i]);
        if (const auto candidate = judge(layout, common_of(layout, common[i]))) remember(*candidate);
      }
    }
  }
}

// Remembers the fastest of each policy's shardings, and of all partial recomputations if nothing else is as
// fast: the rest differ little from these.
void Worker::visit_choices(const Trainer& trainer, const Layout& base, CommonOfPolicies& common) {
  const std::vector<ShardedWeights> shardings = shardings_to_try(trainer, base);
  const auto fastest = [&](Layout layout, const Common& shared, std::optional<Candidate> best) {
    for (const ShardedWeights& sharding : shardings) {
      layout.sharded = sharding;
      keep_faster(judge(layout, shared), best);
    }
    return best;
  };
  Layout layout = base;
  std::optional<Candidate> best;
  for (std::size_t i = 0; i < space_.policies.size(); ++i) {
    layout.keep = model::keep_of(space_.policies[i]);
    const auto candidate = fastest(layout, common_of(layout, common[i]), {});
    if (candidate) remember(*candidate);
    keep_faster(candidate, best);
  }
  if (!space_.parts) return;
  std::optional<Candidate> best_part;
  for (const Layout& part : partly_recomputed(trainer, workload_, base)) {
    std::optional<Common> own;
    best_part = fastest(part, common_of(part, own), best_part);
  }
  if (best_part && (!best || is_faster(*best_part, *best))) remember(*best_part);
}

// Returns the candidate with its time and memory if it fits.
std::optional<Candidate> Worker::judge(Layout layout, const Common& common) {
  layout.offload = space_.offload.value_or(0.0);
  layout.output = takes_output(layout) ? common.output : 0;
  adapt(cluster_, layout);
  Candidate candidate;
  const Bytes temporary = common.temporary[splits_backward(layout.schedule)];
  candidate.memory = space_.offload ? fit_memory(workload_, layout, cluster_.limit, temporary)
                                    : fit_with_least_offload(workload_, layout, cluster_.limit, temporary);
  candidate.layout = layout;
  candidate.layout.offload = candidate.memory.offload;
  if (!candidate.memory.fits) return miss(candidate, Rejection::DeviceMemory);
  if (!host_holds(workload_, cluster_, candidate)) return miss(candidate, Rejection::HostMemory);
  ++candidates_;
  candidate.cost = step_cost(workload_, candidate.layout, cluster_.hardware, cluster_.engine, common.cost);
  show(candidate);
  return candidate;
}

std::nullopt_t Worker::miss(const Candidate& candidate, Rejection why) {
  keep_nearer(workload_, cluster_, candidate, nearest_miss_);
  count(why);
  return std::nullopt;
}

// The closed form of exchange is rough, so the front has it only if the space has nothing else.
void Worker::show(const Candidate& candidate) {
  const bool avoidable = std::ranges::find(space_.exchanges, ExchangeMode::Off) != space_.exchanges.end();
  if (!avoidable || candidate.layout.exchange == ExchangeMode::Off) front_.add(candidate);
}

void Worker::remember(const Candidate& candidate) {
  remember(candidate, best_);
  if (candidate.layout.exchange == ExchangeMode::Off) remember(candidate, without_exchange_);
}

void Worker::remember(const Candidate& candidate, std::vector<Candidate>& best) const {
  if (best.size() == keep_ && !is_faster(candidate, best.back())) return;
  const auto same = std::ranges::find_if(
      best, [&](const Candidate& other) { return differ_in_schedule_alone(candidate.layout, other.layout); });
  if (same != best.end()) {
    if (!is_faster(candidate, *same)) return;
    best.erase(same);
  }
  best.insert(std::upper_bound(best.begin(), best.end(), candidate, is_faster), candidate);
  if (best.size() > keep_) best.pop_back();
}

void Worker::add_to(SearchResult& result, Front& front, Refusals& refusals) const {
  result.candidates += candidates_;
  for (std::size_t i = 0; i < kRejections; ++i) result.rejected[i] += rejected_[i];
  for (const auto& [why, layouts] : refusals_) refusals[why] += layouts;
  result.best.insert(result.best.end(), best_.begin(), best_.end());
  result.without_exchange.insert(result.without_exchange.end(), without_exchange_.begin(),
                                 without_exchange_.end());
  front.add(front_);
  if (nearest_miss_) keep_nearer(workload_, cluster_, *nearest_miss_, result.nearest_miss);
}

}  // namespace

std::int64_t SearchResult::fitting() const {
  return candidates - std::accumulate(rejected.begin(), rejected.end(), std::int64_t{0});
}

std::int64_t SearchResult::judged() const {
  return fitting() + rejected[static_cast<std::size_t>(Rejection::DeviceMemory)] +
         rejected[static_cast<std::size_t>(Rejection::HostMemory)];
}

void check_cluster(const Cluster& cluster) {
  const std::int64_t node = cluster.hardware.node.gpus;
  if (cluster.gpus < 1)
    throw InputError("cluster.gpus = " + std::to_string(cluster.gpus) + " must be at least 1");
  if (cluster.gpus > node && cluster.gpus % node != 0) {
    const std::int64_t below = cluster.gpus / node * node;
    throw InputError("cluster.gpus = " + std::to_string(cluster.gpus) + " does not fill nodes of " +
                     std::to_string(node) + "; nearest are " + std::to_string(below) + " and " +
                     std::to_string(below + node));
  }
  if (!(cluster.limit > 0)) throw InputError("memory.limit must be positive");
}

SearchResult search(const Workload& workload, const Cluster& cluster, const SearchSpace& space,
                    std::size_t keep) {
  check_cluster(cluster);
  const Seconds start = steady_seconds();
  const auto meshes = all_meshes(workload, cluster, space);
  std::vector<Worker> workers(core_count(), Worker(workload, cluster, space, keep));
  on_all_cores(meshes.size(), [&](std::size_t i, std::size_t thread) { workers[thread].visit(meshes[i]); });

  SearchResult result;
  Front front(cluster.limit);
  Refusals refusals;
  for (const Worker& worker : workers) worker.add_to(result, front, refusals);
  if (result.judged() == 0) result.refusal = main_refusal(refusals);
  for (std::vector<Candidate>* best : {&result.best, &result.without_exchange}) {
    std::ranges::stable_sort(*best, is_faster);
    if (best->size() > keep) best->resize(keep);
  }
  result.pareto = front.ascending();
  if (!result.best.empty()) result.nearest_miss.reset();
  result.seconds = steady_seconds() - start;
  return result;
}

model::MemoryTable memory_of_devices(const Workload& workload, const Candidate& candidate) {
  return candidate.predicted.empty() ? layout_memory(workload, candidate.layout) : candidate.predicted;
}

double tokens_per_second_per_gpu(const Workload& workload, const Cluster& cluster, Seconds step) {
  const double tokens = static_cast<double>(workload.global_batch) * static_cast<double>(workload.seq_len);
  return tokens / step / static_cast<double>(cluster.gpus);
}

double model_flops_utilization(const Workload& workload, const Cluster& cluster, Seconds step) {
  return model_flops(workload) / step / (static_cast<double>(cluster.gpus) * cluster.hardware.peak());
}

}  // namespace penstock::plan
