// SPDX-License-Identifier: Apache-2.0
// Policies in whole runs: the bits of none, and the memory that was predicted.
#include <gtest/gtest.h>

#include <set>

#include "nn/tensor_checks.h"
#include "run/costs.h"
#include "train/equal_runs.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

using model::Category;

constexpr const char* kPolicies[] = {"none", "balanced", "balanced+fc1", "full"};

struct Case {
  const char* schedule;
  int devices, slices;
};

run::Options policy_options(const Case& c, const char* precision, const std::string& policy) {
  run::Options options = small_options(c.schedule, c.devices, c.slices, precision);
  options.memory.policy = policy;
  return options;
}

TEST(PoliciesInARun, GiveTheLossesAndWeightsOfNoneUnderEverySchedule) {
  for (const Case& c : {Case{"slimpipe", 2, 4},
                        {"1f1b", 4, 1},
                        {"zb-h1", 2, 1},
                        {"zb-v", 2, 1},
                        {"seq1f1b-interleaved", 2, 4}}) {
    for (const char* precision : {"f64", "f32", "bf16"}) {
      const Trained none = train_steps(planned(policy_options(c, precision, "none")), 2);
      for (const char* policy : kPolicies) {
        SCOPED_TRACE(std::string(c.schedule) + ", " + precision + ", " + policy);
        expect_equal_runs(train_steps(planned(policy_options(c, precision, policy)), 2), none);
      }
    }
  }
}

TEST(PoliciesInARun, MayDifferByStageAndLayerAndKeepAnyLegalSet) {
  const Case c{"slimpipe", 2, 4};
  run::Options options = policy_options(c, "bf16", "none");
  const Trained none = train_steps(planned(options), 2);
  options.memory.keep = {"layer_input", "q", "kv"};
  expect_equal_runs(train_steps(planned(options), 2), none);
  options.memory.stages = {"1: full"};
  options.memory.layers = {"0-2: balanced", "3: layer_input+fc1+product"};
  expect_equal_runs(train_steps(planned(options), 2), none);
}

// What a device's records hold after each of its compute ops, from the program's order alone.
struct Kept {
  Bytes activations = 0, weight_records = 0, kv_gradients = 0, logits = 0;
};
std::vector<Kept> kept_after_each_op(const run::Run& run, const sim::MemoryCosts& costs, int device) {
  std::vector<Kept> all;
  Kept now;
  std::set<std::pair<int, int>> begun;
  for (const schedule::Op& op : run.program.devices[device].ops) {
    if (lane_of(op.kind) != schedule::Lane::Compute) continue;
    const bool forward = op.kind == schedule::OpKind::Forward;
    const bool weight = op.kind == schedule::OpKind::BackwardWeight;
    const bool input = op.kind == schedule::OpKind::BackwardInput;
    if (forward || weight || input || op.kind == schedule::OpKind::Backward) {
      const auto bytes = costs.record(op.key);
      if (forward) now.activations += bytes.record, now.logits += bytes.logits;
      if (weight) now.weight_records -= bytes.weight_record;
      if (!forward && !weight) {
        now.activations -= bytes.record, now.logits -= bytes.logits;
        if (begun.insert({op.key.stage, op.key.micro_batch}).second) {
          for (int slice = 0; slice < run.program.slices[op.key.micro_batch]; ++slice) {
            now.kv_gradients +=
                costs.record(schedule::make_key(op.key.stage, op.key.micro_batch, slice)).kv_gradient;
          }
        }
        now.kv_gradients -= bytes.kv_gradient;
        if (input) now.weight_records += bytes.weight_record;
      }
    }
    all.push_back(now);
  }
  return all;
}

// After every action of a step the allocator's live bytes are those of the records; what is a temporary then
// can only be on its way to the next action.
void expect_nothing_else_kept(const run::Options& options) {
  const run::Run run = planned(options);
  const sim::RunBytes costs(run::work_of(run));
  const Bytes hidden = run.options.train.micro_batch * run.slices[0][0].length * run.shape().hidden *
                       model::element_size(run.precision);
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    trainer.step(1, tokens_of(drawn_batches(run, 1)));
    const auto wanted = kept_after_each_op(run, costs, world.rank());
    ASSERT_EQ(trainer.memory().size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto live = [&](Category category) {
        return trainer.memory()[i].live[static_cast<std::size_t>(category)];
      };
      EXPECT_EQ(live(Category::Activations), wanted[i].activations) << "after op " << i;
      EXPECT_EQ(live(Category::WeightRecords), wanted[i].weight_records) << "after op " << i;
      EXPECT_EQ(live(Category::KvGradients), wanted[i].kv_gradients) << "after op " << i;
      EXPECT_EQ(live(Category::Logits), wanted[i].logits) << "after op " << i;
      EXPECT_LE(live(Category::Transient), hidden) << "after op " << i;
    }
  });
}

TEST(RecordsInARun, AreAllThatLivesAfterEveryAction) {
  for (const Case& c : {Case{"slimpipe", 2, 4}, {"1f1b", 2, 1}, {"zb-h1", 4, 1}, {"seq1f1b", 4, 4}}) {
    for (const char* policy : kPolicies) {
      SCOPED_TRACE(std::string(c.schedule) + ", " + policy);
      expect_nothing_else_kept(policy_options(c, "bf16", policy));
    }
  }
}

// Runs large enough that a scratch buffer of a library is a small share.
run::Options larger(const Case& c, const char* precision, const char* policy) {
  run::Options options = policy_options(c, precision, policy);
  options.model.shape = {.layers = 4, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = 2};
  options.data.seq_len = 1024;
  options.train.batch = 4;
  return options;
}

TEST(PredictedMemory, IsExactForWhatIsSavedAndWithinTwoPercentInAllOverAGridOfRuns) {
  int runs = 0;
  for (const Case& c : {Case{"1f1b", 2, 1}, {"slimpipe", 2, 2}, {"slimpipe", 2, 8}, {"zb-h1", 2, 1}}) {
    for (const char* precision : {"f32", "bf16"}) {
      for (const char* policy : kPolicies) {
        SCOPED_TRACE(std::string(c.schedule) + ", " + std::to_string(c.slices) + " slices, " + precision +
                     ", " + policy);
        const run::Run run = planned(larger(c, precision, policy));
        on_ranks(run, [&](comm::Communicator& world) {
          train::Trainer trainer(run, world);
          trainer.step(1, tokens_of(drawn_batches(run, 1)));
          const backend::Ledger& ledger = trainer.ledger();
          const auto& predicted = run.predicted[world.rank()];
          EXPECT_EQ(predicted.weights, ledger.peak(Category::Weights));
          EXPECT_EQ(predicted.gradients, ledger.peak(Category::Gradients));
          EXPECT_EQ(predicted.optimizer, ledger.peak(Category::Optimizer));
          EXPECT_EQ(predicted.activations, ledger.peak(Category::Activations));
          EXPECT_EQ(predicted.weight_records, ledger.peak(Category::WeightRecords));
          EXPECT_EQ(predicted.kv_gradients, ledger.peak(Category::KvGradients));
          EXPECT_EQ(predicted.logits, ledger.peak(Category::Logits));
          // A message is there or not at the moment of the peak, as the other rank is early or late.
          const auto message =
              static_cast<double>(run.options.data.seq_len / c.slices * run.options.model.shape.hidden *
                                  model::element_size(model::parse_precision(precision)));
          const auto measured = static_cast<double>(ledger.peak_total());
          const double most = std::max(0.02 * measured, message);
          EXPECT_NEAR(static_cast<double>(predicted.total()), measured, most) << "device " << world.rank();
          if (world.rank() == 0) ++runs;
        });
      }
    }
  }
  EXPECT_GE(runs, 24);
}

}  // namespace
}  // namespace penstock::testing
