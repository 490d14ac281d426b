// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/columns.h"
#include "base/text.h"
#include "plan/host_memory.h"
#include "plan/plan_print.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "plan/trainer.h"
#include "sim/costs/kernel_cost.h"

namespace penstock::plan {
namespace {

Rows rows_of(const StepCost& cost) {
  Rows rows;
  for (const auto& [name, seconds] : terms_of(cost)) {
    if (seconds == 0) continue;
    rows.push_back({"  " + std::string(name), number(seconds, 4) + " s",
                    number(100 * seconds / cost.total(), 1) + " %"});
  }
  rows.push_back({"  step, closed form", number(cost.total(), 4) + " s"});
  return rows;
}

std::string print_device(const model::MemoryPeaks& memory, const std::string& name, double limit) {
  std::string text = "  device " + name + ": " + gigabytes(as_double(memory.total()), 2) + " of " +
                     gigabytes(limit, 2) + " GB; peaks of its parts:";
  for (const auto& [category, bytes] : model::categories(memory)) {
    if (bytes > 0) text += " " + std::string(category) + " " + gigabytes(as_double(bytes), 2);
  }
  if (memory.host > 0) text += "; on the host " + gigabytes(as_double(memory.host), 2);
  return text + "\n";
}

// Devices with equal memory share one line.
std::string print_memory(const model::MemoryTable& table, double limit, bool ends_only) {
  std::string text;
  for (std::size_t first = 0; first < table.size();) {
    std::size_t last = first;
    while (last + 1 < table.size() && table[last + 1] == table[first]) ++last;
    const bool shown = !ends_only || first == 0 || last + 1 == table.size();
    const std::string name = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    if (shown) text += print_device(table[first], name, limit);
    first = last + 1;
  }
  return text;
}

double peak(const Workload& workload, const Layout& layout) {
  return static_cast<double>(fit_memory(workload, layout, 1e30).fullest.total());
}

// Whether devices hold it, of which the closed form leaves `limit` bytes, and their hosts what it offloads.
// The closed form is checked first; the trainer's own prediction takes longer, for long schedules too long.
bool fits_both(const Workload& workload, const Cluster& cluster, const Layout& layout, double limit) {
  Candidate other;
  other.layout = layout;
  other.memory = fit_memory(workload, layout, limit);
  if (!other.memory.fits || !host_holds(workload, cluster, other)) return false;
  constexpr std::int64_t kMostActions = kMostSimulatedActions / 5;
  if (!is_simulated(workload, cluster) || action_count(workload, layout) > kMostActions) return true;
  return fits_as_its_run(workload, cluster, other);
}

std::string hosts_of(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  return "hosts of " + number(std::ceil(bytes_on_a_host(workload, cluster, candidate) / 1e9), 0) +
         " GB (these have " + number(bytes_of_a_host(cluster) / 1e9, 0) + ")";
}

// The memory with which its devices, and their hosts, hold the candidate as it is.
std::string larger_devices(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                           double needed) {
  Cluster larger = cluster;
  const double usable = cluster.hardware.usable_bytes();
  const auto size = [](double gigabytes) { return number(std::ceil(gigabytes), 0) + " GB"; };
  std::vector<std::string> changes;
  if (needed > usable && cluster.limit <= usable) {
    sim::Device& device = larger.hardware.device;
    device.memory_gb = std::ceil(needed / 1e9 + device.reserved_gb);  // on a CPU, it is the host's too
    changes.push_back("devices of " + size(device.memory_gb));
  }
  if (changes.empty() || cluster.limit < usable)
    changes.push_back("memory.limit = \"" + size(needed / 1e9) + "\"");
  const std::string text = join(changes, " and ");
  return host_holds(workload, larger, candidate) ? text
                                                 : text + " and " + hosts_of(workload, cluster, candidate);
}

bool only_hosts_lack(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  return as_double(candidate.memory.fullest.total()) <= cluster.limit &&
         !host_holds(workload, cluster, candidate);
}

// True if a constraint or the trainer refuses it. Asks Penstock's trainer only about models that it trains.
bool is_refused(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  if (reject(workload, layout, cluster.hardware.node.gpus, cluster.engine.folded_experts)) return true;
  if (cluster.trainer) return refusal_of(*cluster.trainer, workload, layout).has_value();
  return is_simulated(workload, cluster) && !why_no_run(workload, layout).empty();
}

// The largest smaller offload share, in percent, that fits devices of `limit` bytes and the hosts.
std::optional<int> smaller_share(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                 double limit) {
  const Bytes temporary = temporary_bytes(workload, candidate.layout);
  candidate.predicted.clear();
  int percent = static_cast<int>(std::lround(100 * candidate.layout.offload)) - 1;
  for (; percent >= 0; --percent) {
    candidate.layout.offload = percent / 100.0;
    candidate.memory = fit_memory(workload, candidate.layout, limit, temporary);
    if (!candidate.memory.fits) return {};
    if (host_holds(workload, cluster, candidate)) return percent;
  }
  return {};
}

// The least share from this one on, in percent and above the layout's own, that fits likewise; absent if none
// of the next does.
std::optional<int> larger_share(const Workload& workload, const Cluster& cluster, Layout layout, double least,
                                double limit) {
  constexpr int kMostTries = 6;
  const int own = static_cast<int>(std::lround(100 * layout.offload));
  const int first = std::max(own + 1, static_cast<int>(std::lround(100 * least)));
  for (int percent = first; percent < std::min(101, first + kMostTries); ++percent) {
    layout.offload = percent / 100.0;
    if (fits_both(workload, cluster, layout, limit)) return percent;
  }
  return {};
}

std::string larger_hosts(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                         double limit) {
  const std::string text = hosts_of(workload, cluster, candidate);
  const std::optional<int> share = smaller_share(workload, cluster, candidate, limit);
  if (!share) return text;
  return text + ", or less on these: offload " + std::to_string(*share) + " % of the records";
}

// Where the trainer may need more than the limit: its allocator's reserve is not predicted.
std::string print_reserved(const Cluster& cluster, const Candidate& candidate) {
  if (cluster.trainer == nullptr) return {};
  const double most = cluster.trainer->reserved * as_double(candidate.memory.fullest.total());
  if (most <= cluster.limit) return {};
  return "  may not fit: " + std::string(cluster.trainer->name) + "'s published runs reserved up to " +
         number(cluster.trainer->reserved, 2) + " times what is predicted, here " + gigabytes(most, 1) +
         " GB\n";
}

}  // namespace

std::string what_would_fit(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const Layout& layout = candidate.layout;
  const double closed_form = peak(workload, layout);
  const double needed = std::max(static_cast<double>(candidate.memory.fullest.total()), closed_form);
  const double limit = cluster.limit - (needed - closed_form);
  if (only_hosts_lack(workload, cluster, candidate)) return larger_hosts(workload, cluster, candidate, limit);
  std::vector<std::string> ways;
  if (cluster.trainer == nullptr) {
    const FittedMemory offloaded = fit_with_least_offload(workload, layout, limit);
    if (offloaded.fits) {
      const std::optional<int> share = larger_share(workload, cluster, layout, offloaded.offload, limit);
      if (share) ways.push_back("offload " + std::to_string(*share) + " % of the records");
    }
  }
  const std::vector<model::Policy> policies =
      cluster.trainer ? cluster.trainer->policies
                      : std::vector{model::Policy::Balanced, model::Policy::BalancedFc1, model::Policy::Full};
  for (const auto policy : policies) {
    Layout other = layout;
    other.keep = model::keep_of(policy);
    if (other.keep == layout.keep) continue;
    if (fits_both(workload, cluster, other, limit)) {
      ways.push_back("policy " + std::string(model::name_of(policy)));
      break;
    }
  }
  for (int factor = 2; factor <= 64; factor *= 2) {
    Layout other = layout;
    other.mesh.context *= factor;
    Cluster more = cluster;
    more.gpus *= factor;
    if (is_refused(workload, more, other) || !fits_both(workload, more, other, limit)) continue;
    ways.push_back("cp " + std::to_string(other.mesh.context) + " on " + std::to_string(factor) +
                   " times the devices");
    break;
  }
  ways.push_back(larger_devices(workload, cluster, candidate, needed));
  return join(ways, ", or ");
}

std::string explain(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                    bool ends_only) {
  const StepCost& cost = candidate.cost;
  const PipelineShape shape = pipeline_shape(workload, candidate.layout);
  std::string text = "  " + print_layout(candidate.layout) + ": m = " + std::to_string(shape.micro_batches) +
                     ", F = " + number(1e3 * cost.forward_slot, 3) +
                     " ms and B = " + number(1e3 * cost.backward_slot, 3) +
                     " ms of a slice-chunk of the slowest device, with " +
                     number(cost.slot_layers, cost.slot_layers == std::floor(cost.slot_layers) ? 0 : 2) +
                     (cost.slot_layers == 1 ? " layer\n" : " layers\n");
  if (cluster.trainer == nullptr && workload.model.family == Family::Gpt)
    text += "  in closed form only: the model has GELU, and Penstock trains SwiGLU\n";
  Rows rows = rows_of(cost);
  if (candidate.simulated) rows.push_back({"  step, simulated", number(*candidate.simulated, 4) + " s"});
  const Seconds step = candidate.step();
  rows.push_back({"  tokens/s/GPU", number(tokens_per_second_per_gpu(workload, cluster, step), 1)});
  rows.push_back({"  MFU", number(100 * model_flops_utilization(workload, cluster, step), 2) + " %"});
  if (workload.gpu)
    rows.push_back(
        {"  attention kernels", std::string(sim::rated_kernels(cluster.hardware, cluster.engine.attention))});
  text += columns(rows, "lr");
  text += print_memory(memory_of_devices(workload, candidate), cluster.limit, ends_only);
  if (!candidate.memory.fits) {
    text += "  does not fit; would fit with: " + what_would_fit(workload, cluster, candidate) + "\n";
  } else {
    text += print_reserved(cluster, candidate);
  }
  return text;
}

namespace {

// Sets the counts of these constraints to 0, in order, as long as other candidates are left.
void ignore_where_others_are_left(SearchResult& result, std::initializer_list<Rejection> constraints) {
  for (const Rejection why : constraints) {
    std::int64_t& count = result.rejected[static_cast<std::size_t>(why)];
    if (count == result.candidates) return;
    result.candidates -= count;
    count = 0;
  }
}

// The constraint to name where none of the candidates was judged.
Rejection main_constraint(SearchResult result) {
  // Some schedule takes all sizes that pass the other checks, without exchange and vocabulary parallelism. So
  // if candidates get this far and no further, it is the choices in [search] that contradict each other.
  for (const Rejection why : {Rejection::Vocabulary, Rejection::Exchange, Rejection::Schedule}) {
    if (result.rejected[static_cast<std::size_t>(why)] > 0) return why;
  }
  // Some mesh passes the checks of the mesh alone, unless the user's sizes forbid it.
  ignore_where_others_are_left(
      result, {Rejection::Heads, Rejection::TensorInNode, Rejection::Experts, Rejection::Duplicate});
  return static_cast<Rejection>(std::ranges::max_element(result.rejected) - result.rejected.begin());
}

std::string print_main_constraint(const Plan& plan) {
  if (plan.result.candidates == 0)
    return "no mesh of the sizes that [search] allows (tp, cp, ep, pp) has cluster.gpus = " +
           std::to_string(plan.cluster.gpus) + " devices";
  const Rejection why = main_constraint(plan.result);
  return "of " + std::to_string(plan.result.candidates) + " candidates " +
         std::to_string(plan.result.rejected[static_cast<std::size_t>(why)]) +
         " break one constraint: " + std::string(sentence_of(why)) +
         legal_values(plan.workload, plan.cluster.hardware.node.gpus, why);
}

}  // namespace

std::string print_nearest_miss(const Plan& plan) {
  const SearchResult& result = plan.result;
  if (!result.refusal.empty()) return "nothing can be run: " + result.refusal;
  if (!result.nearest_miss) return "nothing can be run: " + print_main_constraint(plan);
  const Candidate& miss = *result.nearest_miss;
  const std::string then = "; it would fit with: " + what_would_fit(plan.workload, plan.cluster, miss);
  if (only_hosts_lack(plan.workload, plan.cluster, miss)) {
    return "nothing fits on hosts of " + gigabytes(bytes_of_a_host(plan.cluster), 2) + " GB; nearest is " +
           print_layout(miss.layout) + " with " +
           gigabytes(bytes_on_a_host(plan.workload, plan.cluster, miss), 2) + " GB on one" + then;
  }
  const auto largest = model::largest_category(miss.memory.fullest);
  return "nothing fits in " + gigabytes(plan.cluster.limit, 2) + " GB; nearest is " +
         print_layout(miss.layout) + " with " + gigabytes(as_double(miss.memory.fullest.total()), 2) +
         " GB, of which " + std::string(largest.first) + " " + gigabytes(as_double(largest.second), 2) + then;
}

}  // namespace penstock::plan
