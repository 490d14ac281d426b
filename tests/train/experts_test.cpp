// SPDX-License-Identifier: Apache-2.0
// Layers with experts: gradients and the routers' losses against autograd on meshes of all axes, and equal
// bits whatever does not change which tokens meet.
#include <gtest/gtest.h>

#include "train/autograd_gradients.h"
#include "train/equal_runs.h"

namespace penstock::testing {
namespace {

run::Options experts_options(std::int64_t experts, std::int64_t chosen, int slices,
                             const std::string& precision = "f64") {
  run::Options options = small_options(slices > 1 ? "slimpipe" : "1f1b", 1, slices, precision);
  options.model.shape = {.layers = 3,
                         .hidden = 24,
                         .ffn = 11,
                         .heads = 4,
                         .kv_heads = 2,
                         .experts = experts,
                         .experts_per_token = chosen};
  options.data.seq_len = 18;
  options.train.batch = 4;
  options.train.clip = 0;
  options.moe.balance_coefficient = 0.3;
  options.moe.z_coefficient = 0.05;
  return options;
}

struct Sizes {
  int tensor = 1, context = 1, replicas = 1, devices = 1, expert = 1;
};

std::ostream& operator<<(std::ostream& out, const Sizes& sizes) {
  return out << "t " << sizes.tensor << ", c " << sizes.context << ", d " << sizes.replicas << ", p "
             << sizes.devices << ", e " << sizes.expert;
}

run::Options on_expert_mesh(run::Options options, const Sizes& sizes) {
  options.parallel.tp = sizes.tensor;
  options.parallel.cp = sizes.context;
  options.parallel.dp = sizes.replicas;
  options.parallel.pp = sizes.devices;
  options.parallel.ep = sizes.expert;
  return options;
}

TEST(Experts, GradientsEqualAutogradOverStagesAndSlices) {
  for (const auto& [experts, chosen] : {std::pair{2, 1}, {3, 2}, {3, 3}, {8, 1}, {8, 2}, {8, 8}}) {
    for (const int slices : {1, 4}) {
      for (const int devices : {1, 2}) {
        for (const bool normalised : {true, false}) {
          SCOPED_TRACE(::testing::Message() << experts << " experts, " << chosen << " of them, n " << slices
                                            << ", p " << devices << ", normalised " << normalised);
          run::Options options = experts_options(experts, chosen, slices);
          options.parallel.pp = devices;
          options.model.shape.normalised_experts = normalised;
          expect_autograd(options);
        }
      }
    }
  }
}

TEST(Experts, GradientsEqualAutogradOverTensorContextAndDataRanks) {
  for (const Sizes& sizes :
       {Sizes{2}, Sizes{1, 2}, Sizes{1, 1, 2}, Sizes{2, 1, 2}, Sizes{2, 2, 1, 2}, Sizes{2, 2, 2}}) {
    for (const char* over : {"micro_batch", "step"}) {
      SCOPED_TRACE(::testing::Message() << sizes << ", over a " << over);
      run::Options options = on_expert_mesh(experts_options(3, 2, 1), sizes);
      options.data.seq_len = 20;
      options.moe.balance_over = over;
      if (options.moe.balance_over == "step") options.schedule.name = "gpipe";
      expect_autograd(options);
    }
  }
}

TEST(Experts, GradientsEqualAutogradOverExpertRanks) {
  int meshes = 0;
  for (const int ranks : {2, 4}) {
    for (const auto& [sizes, slices] : {std::pair{Sizes{1, 1, 2, 1, ranks}, 1},
                                        {Sizes{1, 1, 4, 1, ranks}, 4},
                                        {Sizes{2, 1, 1, 2, ranks}, 4},
                                        {Sizes{2, 1, 2, 1, ranks}, 1},
                                        {Sizes{1, 2, 1, 2, ranks}, 4},
                                        {Sizes{1, 2, 2, 1, ranks}, 4},
                                        {Sizes{2, 2, 1, 1, ranks}, 1},
                                        {Sizes{2, 1, 2, 2, ranks}, 4},
                                        {Sizes{2, 2, 2, 1, ranks}, 4}}) {
      if (sizes.tensor * sizes.context * sizes.replicas % ranks != 0) continue;
      for (const char* shard : {"off", "optimizer", "weights"}) {
        SCOPED_TRACE(::testing::Message() << sizes << ", n " << slices << ", shard " << shard);
        run::Options options = on_expert_mesh(experts_options(8, 2, slices), sizes);
        options.data.seq_len = 24;
        options.parallel.shard = shard;
        expect_autograd(options);
        ++meshes;
      }
    }
  }
  EXPECT_GE(meshes, 40);
}

TEST(Experts, GradientsEqualAutogradOverExpertRanksForEveryChoice) {
  for (const auto& [experts, chosen, ranks] :
       {std::tuple{2, 1, 2}, {2, 2, 2}, {8, 1, 2}, {8, 8, 2}, {8, 1, 4}, {8, 8, 4}, {4, 2, 4}}) {
    for (const auto& [sizes, slices] : {std::pair{Sizes{2, 1, 2, 2, ranks}, 4},
                                        {Sizes{1, 1, 4, 1, ranks}, 1},
                                        {Sizes{2, 2, 1, 1, ranks}, 4}}) {
      SCOPED_TRACE(::testing::Message()
                   << experts << " experts, " << chosen << " of them, " << sizes << ", n " << slices);
      run::Options options = on_expert_mesh(experts_options(experts, chosen, slices), sizes);
      options.data.seq_len = 24;
      expect_autograd(options);
    }
  }
}

TEST(Experts, GradientsEqualAutogradWithNormsOfHeads) {
  for (const auto& [experts, sizes, slices] : {std::tuple{1, Sizes{1, 1, 1, 2}, 4},
                                               {1, Sizes{2}, 4},
                                               {1, Sizes{4}, 1},
                                               {1, Sizes{1, 2, 1, 2}, 4},
                                               {4, Sizes{2, 2}, 4},
                                               {4, Sizes{1, 1, 1, 2}, 1}}) {
    for (const char* policy : {"none", "balanced", "full"}) {
      for (const char* mode : {"gather", "query", "heads"}) {
        if (sizes.context == 1 && std::string(mode) != "heads") continue;
        SCOPED_TRACE(::testing::Message() << experts << " experts, " << sizes << ", " << mode << ", n "
                                          << slices << ", " << policy);
        run::Options options = on_expert_mesh(experts_options(experts, std::min(experts, 2), slices), sizes);
        if (experts == 1) options.moe = {};
        options.model.shape.head_norms = true;
        options.data.seq_len = 24;
        options.parallel.cp_mode = mode;
        options.memory.policy = policy;
        expect_autograd(options);
      }
    }
  }
}

TEST(Experts, GradientsEqualAutogradWithASharedExpert) {
  for (const bool gate : {false, true}) {
    for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
      for (const auto& [schedule, slices, sizes] : {std::tuple{"slimpipe", 4, Sizes{1, 1, 1, 2}},
                                                    {"zb-h1", 1, Sizes{1, 1, 1, 2}},
                                                    {"slimpipe", 4, Sizes{2, 1, 2, 2, 4}},
                                                    {"1f1b", 1, Sizes{1, 2, 2, 1, 2}},
                                                    {"slimpipe", 4, Sizes{2, 2, 1, 1, 2}}}) {
        SCOPED_TRACE(::testing::Message()
                     << "gate " << gate << ", " << schedule << ", " << sizes << ", " << policy);
        run::Options options = on_expert_mesh(experts_options(4, 2, slices), sizes);
        options.schedule.name = schedule;
        options.model.shape.shared_ffn = 7;
        options.model.shape.shared_gate = gate;
        options.data.seq_len = 24;
        options.memory.policy = policy;
        expect_autograd(options);
      }
    }
  }
}

// Slices, ranks of the other axes and experts stay; all else may change.
run::Options bits_options(int slices, const std::string& precision, int experts_ranks = 1) {
  run::Options options = experts_options(4, 2, slices, precision);
  options.data.seq_len = 32;
  options.train.batch = 8;
  options.parallel.dp = experts_ranks;
  options.parallel.ep = experts_ranks;
  return options;
}

// With an offloaded share of a half and of all by turns, so that each schedule and each policy has both.
TEST(Experts, BitsAreThoseOfOneDeviceForEverySchedulePolicyAndOffloading) {
  constexpr int kSteps = 3;
  int turn = 0;
  for (const int ranks : {1, 2}) {
    for (const char* precision : {"f32", "bf16"}) {
      for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
        for (const char* schedule : {"slimpipe", "1f1b", "zb-h1", "zb-v", "dualpipe-v"}) {
          SCOPED_TRACE(::testing::Message()
                       << "e " << ranks << ", " << precision << ", " << policy << ", " << schedule);
          const bool slices = std::string(schedule) == "slimpipe";
          run::Options options = bits_options(slices ? 4 : 1, precision, ranks);
          options.schedule.name = schedule;
          options.parallel.pp = 2;
          options.model.shape.layers = 4;
          options.model.shape.shared_ffn = ranks == 2 ? 24 : 0;
          options.model.shape.shared_gate = ranks == 2;
          options.memory.policy = policy;
          run::Options alone = options;
          alone.parallel.pp = 1;
          alone.schedule.name = slices ? "slimpipe" : "1f1b";
          alone.memory.policy = "none";
          static std::map<std::string, Trained> wanted;
          const std::string key = std::to_string(ranks) + precision + (slices ? " sliced" : "");
          if (!wanted.contains(key)) wanted[key] = train_steps(planned(alone), kSteps);
          expect_equal_runs(train_steps(planned(options), kSteps), wanted.at(key));
          // Of an expert rank with few rows, less leaves than planned.
          options.memory.offload.number = turn++ % 2 == 0 ? 0.5 : 1.0;
          expect_equal_runs(train_steps(planned(options), kSteps), wanted.at(key));
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
