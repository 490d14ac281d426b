// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/torchtitan_question.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "plan/trainers/torchtitan_job.h"
#include "plan/trainers/torchtitan_models.h"
#include "plan/trainers/torchtitan_schedules.h"

namespace penstock::plan {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

// Turns a job file into a question.
class Reader {
 public:
  Reader(const TitanJob& job, const std::string& origin, std::int64_t world)
      : job_(job), origin_(origin), world_(world), model_(find_titan_model(job.model, job.flavor, origin)) {}

  void ask(PlanOptions& options) const {
    options.model.shape = model_.shape;
    options.workload.seq_len = job_.seq_len;
    require_consistent();
    read_batch(options);
    PlanOptions::LayoutKeys& layout = options.layout;
    layout.tp = job_.tp;
    layout.cp = job_.cp;
    layout.pp = job_.pp;
    layout.ep = job_.ep;
    layout.schedule = job_.pp > 1 ? schedule().ours : "1f1b";
    layout.chunks = chunks();
    layout.policy = job_.recomputation == "full" ? "full" : "none";
  }

  Beyond beyond() const {
    Beyond beyond{.model = model_.both, .compiled = job_.compiles_model(), .copies = job_.replicate};
    if (job_.reshard != "default") beyond.regathers = job_.reshard == "always";
    read_recomputation(beyond);
    const EndWeights ends{static_cast<int>(job_.first_less), static_cast<int>(job_.last_less)};
    const bool even = ends == EndWeights{} && model_.shape.layers % (job_.pp * chunks()) == 0;
    if (job_.pp > 1 && !even) beyond.ends = ends;
    return beyond;
  }

 private:
  void check(bool holds, const std::string& why) const { require(holds, origin_ + ": " + why); }

  std::int64_t shards() const {
    const std::int64_t others = product_within(world_, {job_.replicate, job_.tp, job_.pp, job_.cp});
    return job_.shard == -1 ? std::max<std::int64_t>(world_ / others, 1) : job_.shard;
  }

  void require_consistent() const {
    const auto word = [](std::int64_t value) { return std::to_string(value); };
    check(product_within(world_, {job_.replicate, shards(), job_.tp, job_.pp, job_.cp}) == world_,
          "dp_replicate(" + word(job_.replicate) + ") * dp_shard(" + word(shards()) + ") * cp(" +
              word(job_.cp) + ") * tp(" + word(job_.tp) + ") * pp(" + word(job_.pp) + ") != WORLD_SIZE(" +
              word(world_) + ")");
    check(job_.seq_len % (job_.tp * 2 * job_.cp) == 0,
          "Sequence length " + word(job_.seq_len) + " must be divisible by the product of TP degree (" +
              word(job_.tp) + ") and 2 * CP degree (" + word(job_.cp) + ")");
    check(job_.replicate == 1 || shards() * job_.cp > 1,
          "parallelism.data_parallel_replicate_degree = " + word(job_.replicate) +
              " without data_parallel_shard_degree is DDP, which is not predicted; give "
              "data_parallel_shard_degree = " +
              word(job_.replicate) + " instead, or both");
    check(job_.pp == 1 || model_.has_pipeline,
          "Pipeline Parallel is enabled but " + job_.model + " does not support pipelining");
    require_experts();
  }

  void require_experts() const {
    if (model_.shape.experts == 1)
      return check(job_.ep == 1, "parallelism.expert_parallel_degree = " + std::to_string(job_.ep) + ": " +
                                     std::string(model_.both) + " has no experts");
    check(job_.ep == 1 || job_.expert_tp == job_.tp || job_.expert_tp == 1,
          "Currently we only support ETP=TP or ETP=1");
    check(
        job_.tp == 1 || (job_.ep > 1 && job_.expert_tp == 1),
        "experts split over tensor ranks are not predicted; give parallelism.expert_parallel_degree above 1 "
        "with expert_tensor_parallel_degree = 1, or tensor_parallel_degree = 1");
  }

  void read_batch(PlanOptions& options) const {
    const std::int64_t step = job_.local_batch * job_.replicate * shards();
    options.workload.global_batch = job_.global_batch < 0 ? step : job_.global_batch;
    check(options.workload.global_batch > 0 && options.workload.global_batch % step == 0,
          "training.global_batch_size = " + std::to_string(job_.global_batch) +
              " is not divisible by training.local_batch_size times the data-parallel degree, " +
              std::to_string(step));
    check(job_.pp == 1 || options.workload.global_batch == step,
          "training.global_batch_size = " + std::to_string(job_.global_batch) +
              ": accumulating gradients over pipeline steps is not predicted; expected " +
              std::to_string(step));
    check(job_.pp == 1 || job_.local_batch % job_.micro_batch == 0,
          "training.local_batch_size = " + std::to_string(job_.local_batch) +
              " is not divisible by parallelism.pipeline_parallel_microbatch_size = " +
              std::to_string(job_.micro_batch));
    options.layout.micro_batch = job_.pp > 1 ? job_.micro_batch : job_.local_batch;
  }

  const TitanSchedule& schedule() const {
    std::vector<std::string> names;
    for (const TitanSchedule& schedule : kTitanSchedules) {
      if (same_letters(job_.schedule, schedule.theirs)) return schedule;
      names.emplace_back(schedule.theirs);
    }
    throw InputError(origin_ + ": parallelism.pipeline_parallel_schedule = " + json_quote(job_.schedule) +
                     " is not predicted; expected one of " + join(names, ", "));
  }

  // Stages per rank. Throws if torchtitan cannot split the layers like that.
  std::int64_t chunks() const {
    if (job_.pp == 1) return 1;
    std::int64_t stages = job_.pp * schedule().chunks;
    const std::int64_t all = model_.shape.layers + job_.first_less + job_.last_less;
    if (job_.layers_per_stage > 0) {
      stages = ceil_div(all, job_.layers_per_stage);
      const std::string from = "; they follow from parallelism.pipeline_parallel_layers_per_stage = " +
                               std::to_string(job_.layers_per_stage);
      check(stages % job_.pp == 0, "Number of virtual stages (" + std::to_string(stages) +
                                       ") must be divisible by pipeline parallel size (" +
                                       std::to_string(job_.pp) + ")" + from);
      const std::string got = ", but got " + std::to_string(stages / job_.pp) + " stages per rank" + from;
      check(schedule().chunks > 1 || stages == job_.pp,
            "Single stage schedule requires exactly 1 stage per rank" + got);
      check(schedule().chunks == 1 || stages > job_.pp,
            "Multi-stage schedule requires at least 2 stages per rank" + got);
      check(schedule().ours == "interleaved" || stages == job_.pp * schedule().chunks,
            "v schedules assume 2 stages per rank, got " + std::to_string(stages / job_.pp) + from);
    }
    check(all / stages > std::max(job_.first_less, job_.last_less) || all == model_.shape.layers,
          "parallelism.pipeline_parallel_first_stage_less_layers = " + std::to_string(job_.first_less) +
              " and last_stage_less_layers = " + std::to_string(job_.last_less) +
              " leave an end of the pipeline without layers: there are " + std::to_string(all / stages) +
              " for each of " + std::to_string(stages) + " stages");
    return stages / job_.pp;
  }

  void read_recomputation(Beyond& beyond) const {
    const std::string& option = job_.selective;
    if (job_.recomputation == "none" || job_.recomputation == "full") return require_separate();
    check(job_.recomputation == "selective",
          "activation_checkpoint.mode = " + json_quote(job_.recomputation) +
              " is not predicted; expected none, full or selective");
    require_separate();
    if (option == "op") {
      beyond.recomputed = Recomputed::EverySecondOp;
      return;
    }
    const auto every = parse_integer(option);
    check(every && *every >= 0, "Invalid selective AC option: " + printable(option) +
                                    ". Valid options: 'op' or a positive int representing layer frequency");
    beyond.recomputed = Recomputed::EverySo;
    beyond.every = std::max<std::int64_t>(*every, 1);  // 0 means each layer, as in torchtitan
  }

  void require_separate() const {
    if (job_.pp == 1 || job_.ep == 1 || schedule().ours != "dualpipe-v" || !job_.overlaps_experts) return;
    check(job_.recomputation == "none",
          "Expert Parallel with DualPipeV and Activation Checkpointing cannot be used together");
    check(false,
          "parallelism.pipeline_parallel_expert_parallel_overlap = true is not predicted; expected false");
  }

  const TitanJob& job_;
  const std::string& origin_;
  const std::int64_t world_;
  const TitanModel& model_;
};

}  // namespace

Beyond read_torchtitan(const std::vector<GivenValue>& values, const std::string& origin,
                       PlanOptions& options) {
  const TitanJob job = read_titan_job(values, origin);
  const Reader reader(job, origin, options.cluster.gpus);
  reader.ask(options);
  return reader.beyond();
}

}  // namespace penstock::plan
