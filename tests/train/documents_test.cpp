// SPDX-License-Identifier: Apache-2.0
// Documents that share sequences: a step's loss and gradients are the sum over the documents trained alone,
// on meshes of all axes, and its bits repeat whatever does not change what is added to what.
#include <gtest/gtest.h>

#include <algorithm>

#include "run/costs.h"
#include "run/step_plan.h"
#include "train/autograd_gradients.h"
#include "train/equal_runs.h"
#include "train/trainable.h"

namespace penstock::testing {
namespace {

run::Options documents_options(const std::string& schedule, int devices, int slices,
                               const std::string& precision = "f64") {
  run::Options options = small_options(schedule, devices, slices, precision);
  options.model.shape = {.layers = 4, .hidden = 24, .ffn = 22, .heads = 4, .kv_heads = 1};
  options.data = {.megatron = {"no file"}, .seq_len = 40, .mask = "documents"};
  options.model.shape.vocab = 259;
  options.train.batch = 4;
  options.train.clip = 0;
  return options;
}

TEST(Documents, GradientsEqualTheSumOverDocumentsTrainedAlone) {
  for (const int slices : {1, 2, 5, 8}) {
    for (const int devices : {1, 2, 3}) {
      for (const std::int64_t kv_heads : {1, 4}) {
        for (const int sequences : {1, 2}) {
          SCOPED_TRACE(::testing::Message() << "n " << slices << ", p " << devices << ", key heads "
                                            << kv_heads << ", b " << sequences);
          run::Options options = documents_options(slices > 1 ? "slimpipe" : "1f1b", devices, slices);
          options.model.shape.kv_heads = kv_heads;
          options.train.micro_batch = sequences;
          expect_autograd(options);
        }
      }
    }
  }
}

// Nothing is merged over the end of a document then.
TEST(Documents, GradientsEqualTheSumToTheLastDigitsWhereBoundariesMeetThoseOfSlices) {
  for (const int slices : {2, 5, 8}) {
    document_unit = 40 / slices;
    for (const int devices : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << "n " << slices << ", p " << devices);
      expect_autograd(documents_options("slimpipe", devices, slices), 1e-12);
    }
  }
  document_unit = 1;
}

struct Mesh {
  int tensor = 1, context = 1, replicas = 1, devices = 1;
  const char* mode = "auto";
};

TEST(Documents, GradientsEqualTheSumOnMeshesOfAllAxes) {
  for (const Mesh& mesh : {Mesh{2}, Mesh{1, 1, 2}, Mesh{2, 1, 2, 2}, Mesh{1, 2, 1, 2, "gather"},
                           Mesh{1, 2, 1, 2, "query"}, Mesh{1, 2, 1, 2, "heads"}, Mesh{1, 4, 1, 1, "mixed"},
                           Mesh{1, 2, 2, 1, "query"}, Mesh{2, 2, 1, 1, "gather"}}) {
    for (const int slices : {1, 5}) {
      for (const char* policy : {"none", "full"}) {
        SCOPED_TRACE(::testing::Message()
                     << "t " << mesh.tensor << ", c " << mesh.context << " " << mesh.mode << ", d "
                     << mesh.replicas << ", p " << mesh.devices << ", n " << slices << ", " << policy);
        run::Options options = documents_options(slices > 1 ? "slimpipe" : "1f1b", mesh.devices, slices);
        options.model.shape.kv_heads = 2;
        options.parallel.tp = mesh.tensor;
        options.parallel.cp = mesh.context;
        options.parallel.cp_mode = mesh.mode;
        options.parallel.dp = mesh.replicas;
        options.memory.policy = policy;
        if (mesh.context > 1) options.data.seq_len = 40 * mesh.context;
        expect_autograd(options);
      }
    }
  }
}

TEST(Documents, GradientsEqualTheSumWithContextExchange) {
  for (const char* exchange : {"paired", "levelled"}) {
    for (const int context : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << exchange << ", c " << context);
      run::Options options = documents_options("slimpipe", 4, 8);
      options.model.shape.kv_heads = 4;
      options.parallel.cp = context;
      options.parallel.cp_mode = context > 1 ? "heads" : "auto";
      options.data.seq_len = 40 * context;
      options.schedule.exchange = exchange;
      expect_autograd(options);
    }
  }
}

TEST(Documents, GradientsEqualTheSumOverExpertRanks) {
  for (const int tensor : {1, 2}) {
    run::Options options = documents_options("slimpipe", 2, 5);
    options.model.shape.kv_heads = 2;
    options.model.shape.experts = 4;
    options.model.shape.experts_per_token = 2;
    options.parallel.tp = tensor;
    options.parallel.dp = 2;
    options.parallel.ep = 2 * tensor;
    expect_autograd(options);
  }
}

// Slices of equal work, in numbers that follow the lengths of the micro-batches.
TEST(Documents, GradientsEqualTheSumWhereverSlicesAreCut) {
  for (const char* cut : {"tokens", "work"}) {
    for (const char* exchange : {"off", "paired", "levelled"}) {
      for (const Tokens slice_tokens : {0, 7}) {
        for (const Mesh& mesh : {Mesh{1, 1, 1, 1}, Mesh{2, 1, 1, 2}, Mesh{1, 1, 2, 2}, Mesh{1, 1, 1, 4}}) {
          SCOPED_TRACE(::testing::Message()
                       << cut << ", " << exchange << ", " << slice_tokens << ", t " << mesh.tensor << ", d "
                       << mesh.replicas << ", p " << mesh.devices);
          run::Options options = documents_options("slimpipe", mesh.devices, slice_tokens > 0 ? 0 : 5);
          options.model.shape.kv_heads = 2;
          options.parallel.tp = mesh.tensor;
          options.parallel.dp = mesh.replicas;
          options.schedule.cut = cut;
          options.schedule.exchange = exchange;
          options.schedule.slice_tokens = slice_tokens;
          if (slice_tokens > 0) options.data.packing = "best_fit";
          expect_autograd(options);
        }
      }
    }
  }
}

TEST(Documents, GradientsEqualTheSumWithShardedVocabularyAndSlicesOfEqualWork) {
  for (const int devices : {2, 4}) {
    for (const Tokens slice_tokens : {0, 7}) {
      for (const char* exchange : {"off", "levelled"}) {
        SCOPED_TRACE(::testing::Message() << devices << ", " << slice_tokens << ", " << exchange);
        run::Options options = documents_options("slimpipe", devices, slice_tokens > 0 ? 0 : 5);
        options.schedule.vocabulary_parallel = true;
        options.schedule.cut = "work";
        options.schedule.exchange = exchange;
        options.schedule.slice_tokens = slice_tokens;
        if (slice_tokens > 0) options.data.packing = "best_fit";
        expect_autograd(options);
      }
    }
  }
}

TEST(Documents, GradientsEqualTheSumWithContextRanksAndSlicesOfEqualWork) {
  for (const char* mode : {"gather", "query", "heads"}) {
    run::Options options = documents_options("slimpipe", 2, 5);
    options.model.shape.kv_heads = 2;
    options.data.seq_len = 80;
    options.parallel.cp = 2;
    options.parallel.cp_mode = mode;
    options.schedule.cut = "work";
    expect_autograd(options);
  }
}

TEST(Documents, BitsOfPlannedStepsAreThoseOfOneDevice) {
  for (const bool packed : {false, true}) {
    const auto cut_by_work = [&](int devices, const char* policy) {
      run::Options options = documents_options("slimpipe", devices, packed ? 0 : 5, "bf16");
      options.schedule.cut = "work";
      options.schedule.slice_tokens = packed ? 7 : 0;
      if (packed) options.data.packing = "best_fit";
      options.memory.policy = policy;
      return options;
    };
    const Trained wanted = train_steps(planned(cut_by_work(1, "none")), 3);
    for (const int devices : {2, 3}) {
      for (const char* policy : {"none", "full"}) {
        SCOPED_TRACE(::testing::Message() << packed << ", p " << devices << ", " << policy);
        run::Options options = cut_by_work(devices, policy);
        expect_equal_runs(train_steps(planned(options), 3), wanted);
        options.memory.offload.number = 0.5;
        expect_equal_runs(train_steps(planned(options), 3), wanted);
      }
    }
    run::Options terapipe = cut_by_work(2, "none");
    terapipe.schedule.name = "terapipe";
    expect_equal_runs(train_steps(planned(terapipe), 3), wanted);
  }
}

// Of four steps the last two have the documents of the second and of the first.
TEST(Documents, OffloadedBytesAreTheMostOfAnyStep) {
  run::Options options = documents_options("slimpipe", 2, 0, "f32");
  options.data.packing = "best_fit";
  options.schedule.slice_tokens = 7;
  options.memory.policy = "none";
  options.memory.offload.number = 0.5;
  const run::Run run = planned(options);
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    Bytes most = 0;
    for (const std::uint64_t seed : {1U, 2U, 2U, 1U}) {
      trainer.step(1, tokens_of(run, world.rank(), drawn_batches(run, seed)));
      most = std::max(most, trainer.copies().away_peak);
      EXPECT_EQ(trainer.away_peak(), most) << "rank " << world.rank();
    }
    if (world.rank() == 0) {
      EXPECT_GT(most, 0);
    }
  });
}

// The second step has other documents than the first.
TEST(Documents, TimesOfRanksAreOverTheWorkOfTheStepsDocuments) {
  for (const char* cut : {"tokens", "work"}) {
    run::Options options = documents_options("slimpipe", 1, 5, "f32");
    options.schedule.cut = cut;
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      for (const std::uint64_t seed : {1U, 2U}) {
        trainer.step(1, tokens_of(run, world.rank(), drawn_batches(run, seed)));
        const run::Run step = run::planned(run, trainer.content());
        const sim::AnalyticCosts costs = run::costs_of(step, sim::assumed_hardware());
        const auto& ops = step.program.devices[0].ops;
        Seconds taken = 0, work = 0;
        for (std::uint32_t op = 0; op < ops.size(); ++op) {
          if (!is_backward(ops[op].kind)) continue;
          taken += trainer.events()[op].end - trainer.events()[op].start;
          work += costs.seconds(0, op, ops[op]);
        }
        EXPECT_NEAR(trainer.time_of_work().value_or(0) * work / taken, 1, 1e-9) << cut << ", step " << seed;
      }
    });
  }
}

TEST(Documents, BitsOfPlannedStepsAreThoseOfAnyNumberOfReplicas) {
  const auto on = [](int replicas) {
    run::Options options = documents_options("slimpipe", 2, 0, "f32");
    options.data.packing = "best_fit";
    options.schedule.slice_tokens = 7;
    options.schedule.cut = "work";
    options.parallel.dp = replicas;
    options.numerics.replicas = 4;
    return train_steps(planned(options), 3);
  };
  const Trained wanted = on(1);
  for (const int replicas : {2, 4}) expect_equal_runs(on(replicas), wanted);
}

TEST(Documents, AreRefusedWhereExchangeWouldNeedTwoRunsOfKeys) {
  run::Options options = documents_options("slimpipe", 4, 8);
  options.model.shape.kv_heads = 4;
  options.data.seq_len = 160;
  options.parallel.cp = 2;
  options.parallel.cp_mode = "query";
  options.schedule.exchange = "auto";
  const run::Run off = planned(options);
  EXPECT_EQ(off.exchange, schedule::ExchangeMode::Off);
  EXPECT_NO_THROW(train::require_trainable(off));
  options.schedule.exchange = "paired";
  EXPECT_THROW(train::require_trainable(planned(options)), InputError);
}

TEST(Documents, GradientsEqualTheSumWithPositionsOfTheSequence) {
  run::Options options = documents_options("slimpipe", 2, 5);
  options.data.positions = "sequence";
  expect_autograd(options);
}

TEST(Documents, BitsAreThoseOfOneDeviceForEverySchedulePolicyAndOffloading) {
  for (const char* precision : {"f32", "bf16"}) {
    for (const auto& [schedule, slices] : {std::pair{"slimpipe", 4}, {"1f1b", 1}, {"zb-v", 1}}) {
      run::Options alone = documents_options(slices > 1 ? "slimpipe" : "1f1b", 1, slices, precision);
      const Trained wanted = train_steps(planned(alone), 3);
      for (const char* policy : {"none", "balanced", "full"}) {
        SCOPED_TRACE(::testing::Message() << precision << ", " << schedule << ", " << policy);
        run::Options options = documents_options(schedule, 2, slices, precision);
        options.memory.policy = policy;
        expect_equal_runs(train_steps(planned(options), 3), wanted);
        options.memory.offload.number = 0.5;
        expect_equal_runs(train_steps(planned(options), 3), wanted);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
