// SPDX-License-Identifier: Apache-2.0
#include "run/resolve/resolve.h"

#include <gtest/gtest.h>

#include "changed.h"
#include "run/costs.h"
#include "run/memory.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::run {
namespace {

TEST(Resolve, FillsWhatWasLeftOpen) {
  const run::Run run = resolve(changed([](auto& o) { o.model.shape.heads = 4; }));
  EXPECT_EQ(run.options.model.shape.kv_heads, 4);
  EXPECT_EQ(run.options.model.shape.vocab, 259);
  EXPECT_EQ(run.options.schedule.name, "slimpipe");
  EXPECT_EQ(run.options.schedule.slices, 8);
  EXPECT_EQ(run.options.schedule.chunks, 1);
  EXPECT_EQ(run.layers, (std::vector<model::LayerRange>{{0, 4}, {4, 4}}));
  EXPECT_EQ(run.schedule, schedule::generate("slimpipe", schedule::request(2, 8, 8)));
}

TEST(Resolve, LeavesUnslicedSchedulesUnsliced) {
  const run::Run run = resolve(changed([](auto& o) { o.schedule.name = "1f1b"; }));
  EXPECT_EQ(run.options.schedule.slices, 1);
  EXPECT_EQ(resolve(changed([](auto& o) { o.data.seq_len = 3; })).options.schedule.slices, 3);
}

TEST(Resolve, KnowsBothDevicesOfDualPipesStages) {
  const Scratch scratch;
  scratch.write("two.csv", schedule::to_csv(schedule::generate("dualpipe", schedule::request(2, 8, 1, 0))));
  const run::Run run = resolve(changed([&](auto& o) { o.schedule.file = scratch / "two.csv"; }));
  EXPECT_EQ(work_of(run).held, (std::vector<std::vector<int>>{{0, 1}, {0, 1}}));
  EXPECT_TRUE(work_of(resolve(changed([](auto&) {}))).held.empty());
}

// Whatever else is asked for: what nobody chose is never refused.
TEST(Resolve, ChoosesSlicesThatTheRestOfTheRunAllows) {
  const auto slices = [](std::int64_t seq_len, std::int64_t unit, std::int64_t pp, std::int64_t chunks,
                         std::int64_t group, const char* schedule = "slimpipe") {
    return resolve(changed([&](Options& o) {
             o.data.seq_len = seq_len;
             o.model.shape.layers = pp * chunks;
             o.parallel.pp = pp;
             o.schedule = {.name = schedule, .chunks = chunks, .group = group, .slice_unit = unit};
           }))
        .options.schedule.slices;
  };
  EXPECT_EQ(slices(512, 128, 2, 1, 0), 4);
  EXPECT_EQ(slices(513, 128, 2, 1, 0), 5);
  EXPECT_EQ(slices(512, 1, 16, 1, 0), 8);
  EXPECT_EQ(slices(512, 1, 16, 2, 0), 16);
  EXPECT_EQ(slices(512, 1, 2, 2, 0), 8);
  EXPECT_EQ(slices(512, 1, 4, 2, 6), 6);
  EXPECT_EQ(slices(512, 1, 2, 2, 12), 12);
  EXPECT_EQ(slices(512, 1, 3, 2, 3), 6);
  EXPECT_EQ(slices(512, 1, 16, 2, 0, "seq1f1b-interleaved"), 16);
  EXPECT_NE(refusal([](auto& o) {
              o.data.seq_len = 4;
              o.schedule = {.chunks = 2, .group = 6};
            }).find("group = 6"),
            std::string::npos);
}

TEST(Resolve, ResolvesItsOwnResultToItself) {
  const Options once = resolve(changed([](auto&) {})).options;
  EXPECT_EQ(printed(resolve(once).options), printed(once));
}

TEST(Resolve, RefusesHeadsThatDoNotDivide) {
  EXPECT_NE(refusal([](auto& o) { o.model.shape.heads = 7; }).find("model.heads = 7"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.model.shape.kv_heads = 3; }).find("model.kv_heads = 3"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.model.shape.vocab = 100; }).find("model.vocab = 100"), std::string::npos);
}

TEST(Resolve, TakesTheShapeFromAConfigFile) {
  const Scratch scratch;
  scratch.write("config.json",
                R"({"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64, "vocab_size": 300,
    "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192}})");
  const auto from_file = [&](Options& o) { o.model.config = scratch / "config.json"; };
  const Options options = resolve(changed(from_file)).options;
  EXPECT_EQ(options.model.shape.kv_heads, 2);
  EXPECT_EQ(options.model.shape.rope_scaling.factor, 8.0);
  EXPECT_EQ(printed(resolve(options).options), printed(options)) << "the resolved file needs no other";
  EXPECT_NE(refusal([&](auto& o) {
              from_file(o);
              o.model.shape.ffn = 100;
            }).find("model.ffn = 100 and model.config"),
            std::string::npos);
}

TEST(Resolve, RefusesMoreDevicesThanLayers) {
  EXPECT_NE(refusal([](auto& o) { o.parallel.pp = 9; }), "");
  EXPECT_NE(refusal([](auto& o) { o.parallel.layers.list = {7, 2}; }), "");
}

TEST(Resolve, TellsTheKeysOfTheLettersInAGeneratorsMessage) {
  EXPECT_EQ(
      refusal([](auto& o) {
        o.schedule.name = "1f1b";
        o.schedule.slices = 8;
      }),
      "schedule.name: 1f1b does not slice micro-batches: n = 8; use n = 1, or seq1f1b or slimpipe (n is "
      "schedule.slices)");
  EXPECT_EQ(refusal([](auto& o) {
              o.schedule.name = "dualpipe-v";
              o.schedule.slices = 1;
              o.schedule.chunks = 3;
            }),
            "schedule.name: dualpipe-v needs v = 2, got 3 (v is schedule.chunks)");
}

TEST(Resolve, RefusesMoreSlicesThanTokens) {
  const std::string refused = refusal([](auto& o) {
    o.data.seq_len = 4;
    o.schedule.slices = 5;
  });
  EXPECT_NE(refused.find("schedule.slices = 5"), std::string::npos) << refused;
}

TEST(Resolve, RefusesABatchThatMicroBatchesDoNotDivide) {
  EXPECT_EQ(refusal([](auto& o) { o.train.micro_batch = 3; }),
            "train.batch = 8 is not a multiple of train.micro_batch = 3; use 6 or 9");
  EXPECT_EQ(refusal([](auto& o) { o.train.micro_batch = 16; }),
            "train.batch = 8 is not a multiple of train.micro_batch = 16; use 16");
  EXPECT_NE(refusal([](auto& o) { o.train.batch = 2'000'000; }).find("2000000 micro-batches"),
            std::string::npos);
}

TEST(Resolve, RefusesMoreTokensThanItsBytesCanCount) {
  EXPECT_EQ(refusal([](auto& o) {
              o.data.seq_len = 1 << 30;
              o.train.batch = 1000;
            }),
            "train.batch = 1000 times data.seq_len = 1073741824 are more than 1e12 tokens a step");
}

TEST(Resolve, RefusesAnEpsilonThatF32TakesForNothing) {
  EXPECT_EQ(refusal([](auto& o) { o.model.shape.norm_epsilon = 1e-46; }),
            "model.norm_epsilon = 1e-46 must be 1e-37 or more");
}

TEST(Resolve, NamesTheNearestSchedule) {
  EXPECT_NE(refusal([](auto& o) { o.schedule.name = "slimpip"; }).find("\"slimpipe\""), std::string::npos);
  EXPECT_NE(refusal([](auto& o) {
              o.schedule.name = "1f1b";
              o.schedule.slices = 4;
            }).find("slimpipe"),
            std::string::npos);
}

TEST(Resolve, TellsKeysOfTheShapeFromThoseForOtherPrograms) {
  Options options;
  std::vector<std::string_view> others;
  for (const Option& option : describe(options)) {
    if (option.section != "model") continue;
    EXPECT_NE(is_of_shape(option),
              is_for_other_programs(option) || option.key == "config" || option.key == "weights")
        << option.key;
    if (is_for_other_programs(option)) others.push_back(option.key);
  }
  EXPECT_EQ(others,
            (std::vector<std::string_view>{"positions", "begin_token", "end_tokens", "padding_token"}));
}

// Models of proteins or of characters have few tokens.
TEST(Resolve, TakesAnyVocabularyUnlessItTrainsOnBytes) {
  const auto few = [](auto& o) { o.model.shape.vocab = 77; };
  EXPECT_EQ(resolve(changed([&](auto& o) {
              few(o);
              o.data.text.clear();
            })).options.model.shape.vocab,
            77);
  EXPECT_NE(
      refusal([&](auto& o) {
        few(o);
        o.data.text = "text";
      }).find("model.vocab = 77 is less than the 259 tokens of the byte tokenizer, which data.text takes"),
      std::string::npos);
}

// What is possible resolves, whether train can do it yet or not.
TEST(Resolve, TakesAnyMeshThatTheModelFits) {
  const run::Run run = resolve(changed([](auto& o) {
    o.parallel = {.pp = 2, .dp = 2, .cp = 2, .tp = 4, .ep = 4};
    o.model.shape.experts = 4;
    o.model.shape.experts_per_token = 2;
    o.train.batch = 16;
  }));
  EXPECT_EQ(run.mesh, (mesh::Mesh{.tensor = 4, .context = 2, .expert = 4, .data = 2, .pipeline = 2}));
  EXPECT_EQ(run.schedule.micro_batches(), 8) << "of one pipeline";
  EXPECT_EQ(run.program.device_count(), 2);
  EXPECT_EQ(printed(resolve(run.options).options), printed(run.options));
  EXPECT_NO_THROW(check_ranks(run, 32));
}

TEST(Resolve, RefusesMeshesThatTheModelDoesNotFitAndNamesTheNearest) {
  EXPECT_EQ(refusal([](auto& o) { o.parallel.tp = 3; }),
            "parallel.tp = 3 does not divide model.heads = 8; use 2 or 4");
  EXPECT_EQ(refusal([](auto& o) {
              o.model.shape.heads = 12;
              o.model.shape.hidden = 768;
              o.model.shape.kv_heads = 6;
              o.parallel.tp = 4;
            }),
            "parallel.tp = 4 neither divides model.kv_heads = 6 nor is a multiple of it; use 3 or 6");
  EXPECT_EQ(refusal([](auto& o) { o.parallel.ep = 2; }),
            "parallel.ep = 2 does not divide tp·cp·dp = 1; use 1");
  EXPECT_EQ(refusal([](auto& o) { o.parallel.ep = o.parallel.dp = 2; }),
            "parallel.ep = 2 does not divide model.experts = 1; use 1");
  EXPECT_EQ(refusal([](auto& o) {
              o.model.shape.experts = 6;
              o.parallel.ep = o.parallel.dp = 4;
            }),
            "parallel.ep = 4 does not divide model.experts = 6; use 2")
      << "and of the ranks' divisors";
  EXPECT_EQ(refusal([](auto& o) { o.moe.balance_coefficient = 0.1; }),
            "moe.balance_coefficient = 0.1 applies to layers with experts; use model.experts above 1, or "
            "leave it out");
  EXPECT_EQ(refusal([](auto& o) { o.model.shared_experts = 1; }),
            "a shared expert of width 688 needs model.experts above 1");
  EXPECT_EQ(refusal([](auto& o) {
              o.model.shape.experts = 4;
              o.model.shape.shared_gate = true;
            }),
            "moe.shared_gate = true needs moe.shared_experts above 0");
  EXPECT_EQ(refusal([](auto& o) {
              o.model.shape.experts = 4;
              o.moe.forced_balance = true;
              o.moe.skew = 0.5;
            }),
            "moe.forced_balance = true and moe.skew = 0.5 are both given; keep one");
  EXPECT_EQ(refusal([](auto& o) {
              o.model.shape.experts = 4;
              o.moe.balance_over = "step";
            }),
            "moe.balance_over = \"step\" belongs to moe.balance_coefficient above 0; leave it out");
  EXPECT_EQ(
      refusal([](auto& o) {
        o.model.shape.experts = 4;
        o.numerics.tensor = 2;
      }),
      "numerics.tensor = 2 with model.experts = 4: experts work on a rank's own tokens, not on those of "
      "logical shards; use parallel.tp = 2, or in a new run numerics.tensor = 1");
  EXPECT_EQ(refusal([](auto& o) { o.parallel.dp = 3; }),
            "train.batch = 8 is not a multiple of train.micro_batch = 1 times parallel.dp = 3; use 6 or 9");
}

TEST(Resolve, CutsSlicesAtTheUnitAsked) {
  const run::Run run = resolve(changed([](auto& o) {
    o.data.seq_len = 1000;
    o.schedule.slice_unit = 128;
    o.schedule.slices = 4;
  }));
  EXPECT_EQ(cut(run.options, 4),
            (std::vector<model::TokenRange>{{0, 256}, {256, 256}, {512, 256}, {768, 232}}));
  EXPECT_EQ(refusal([](auto& o) {
              o.data.seq_len = 1000;
              o.schedule.slice_unit = 128;
              o.schedule.slices = 9;
            }),
            "schedule.slices = 9 is more than the 8 units of 128 tokens of a sequence; use at most 8");
}

TEST(Resolve, RefusesChunksThatLeaveAStageWithoutALayer) {
  EXPECT_EQ(
      refusal([](auto& o) { o.schedule.chunks = 8; }),
      "parallel.pp = 2 with schedule.chunks = 8 makes 16 stages, which need a layer each; model.layers = "
      "8: use schedule.chunks = 4 or fewer, or 16 layers or more");
  EXPECT_EQ(
      refusal([](auto& o) { o.parallel.pp = 9; }),
      "parallel.pp = 9 makes 9 stages, which need a layer each; model.layers = 8: use parallel.pp = 8 or "
      "fewer, or 9 layers or more");
}

// Some schedules have a fixed number of chunks, and one device may already have too many for the layers.
TEST(Resolve, AdvisesOnlyStagesThatAreLegal) {
  const auto advised = [](const char* name, std::int64_t layers, std::int64_t chunks) {
    const std::string refused = refusal([&](auto& o) {
      o.schedule = {.name = name, .chunks = chunks};
      o.model.shape.layers = layers;
    });
    return refused.substr(refused.find(": use "));
  };
  EXPECT_EQ(advised("zb-v", 3, 2), ": use parallel.pp = 1, or 4 layers or more");
  EXPECT_EQ(advised("zb-v", 1, 2), ": use 4 layers or more");
  EXPECT_EQ(advised("interleaved", 3, 2), ": use schedule.chunks = 1, or 4 layers or more");
  EXPECT_EQ(advised("interleaved", 1, 2), ": use 4 layers or more");
}

// Before a machine is measured for the choices that are left.
TEST(Resolve, TellsWhatIsImpossibleWhateverIsChosen) {
  const auto refusal = [](const Options& options) {
    return failure<InputError>([&] { require_possible(options); });
  };
  const Options options = changed([](auto& o) {
    o.parallel.cp = 2;
    o.data.seq_len = 24;
    o.schedule.slices = 12;
  });
  EXPECT_EQ(refusal(options), failure<InputError>([&] { resolve(options); }));
  EXPECT_NE(refusal(options).find("schedule.slices = 12 is more than the 6 units"), std::string::npos);
  const Options greedy = changed([](auto& o) {
    o.schedule.name = "greedy";
    o.schedule.chunks = 2;
    o.parallel.pp = 8;
  });
  EXPECT_NE(refusal(greedy).find("makes 16 stages, which need a layer each"), std::string::npos)
      << refusal(greedy);
  EXPECT_EQ(refusal(changed([](auto& o) { o.parallel.cp = 2; })), "");
  EXPECT_EQ(refusal(changed([](auto& o) { o.schedule.slices = 0; })), "");
}

TEST(Resolve, RefusesWhatCannotTrain) {
  EXPECT_NE(refusal([](auto& o) { o.train.min_lr = 1; }).find("train.min_lr = 1 is above"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.train.lr = 1e-5; }).find("train.min_lr = 3e-05, the default, is above"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.output.dir.clear(); }).find("output.dir"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) {
              o.data.seq_len = 1;
              o.train.loss_targets = "s-1";
            }).find("data.seq_len = 1"),
            std::string::npos);
}

TEST(Resolve, RefusesDataThatContradictsItself) {
  const auto with = [](auto change) {
    return refusal([&](Options& o) {
      o.data.text.clear();
      o.data.megatron = {"a", "b"};
      o.model.shape.vocab = 300;
      change(o);
    });
  };
  EXPECT_EQ(with([](auto& o) { o.data.megatron_weights = {0.3, 0.7}; }), "");
  EXPECT_EQ(with([](auto& o) { o.model.shape.vocab = 0; }),
            "model.vocab is missing; data.megatron does not give it");
  EXPECT_NE(with([](auto& o) { o.data.text = "x"; }).find("are both given; keep one"), std::string::npos);
  EXPECT_NE(
      with([](auto& o) { o.data.megatron_weights = {1}; }).find("has 1 number, but data.megatron has 2"),
      std::string::npos);
  EXPECT_NE(with([](auto& o) {
              o.data.megatron_weights = {1, 1e-6};
            }).find("at least one part in 10000"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.data.split = "x"; }).find("data.split = \"x\" is not a split"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) {
              o.data.split = "9,1";
              o.data.validation_fraction = 0.5;
            }).find("are both given; keep one"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.data.split = "9,1"; }).find("belongs to data.megatron"),
            std::string::npos);
  EXPECT_EQ(with([](auto& o) {
              o.data.mask = "none";
              o.data.positions = "sequence";
            }),
            "data.positions = \"sequence\" applies to documents that are masked: leave it out, or use "
            "data.mask = \"documents\"");
}

TEST(Resolve, WantsAsManyRanksAsTheMesh) {
  const run::Run pipeline = resolve(changed([](auto&) {}));
  EXPECT_EQ(failure<InputError>([&] { check_ranks(pipeline, 3); }),
            "3 ranks were started, but parallel.pp = 2 needs 2; start 2 (--ranks 2, or mpirun -np 2), or set "
            "parallel.pp = 3");
  EXPECT_NO_THROW(check_ranks(pipeline, 2));
  const run::Run mesh = resolve(changed([](auto& o) { o.parallel.tp = 2; }));
  EXPECT_EQ(
      failure<InputError>([&] { check_ranks(mesh, 2); }),
      "2 ranks were started, but parallel.tp·cp·dp·pp = 4 needs 4; start 4 (--ranks 4, or mpirun -np 4)");
}

}  // namespace
}  // namespace penstock::run
