// SPDX-License-Identifier: Apache-2.0
#include "plan/published/throughput.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "plan/published/run_memory.h"
#include "plan/published/score_tables.h"
#include "plan/published/throughput_words.h"
#include "reference.h"

namespace penstock::plan {
namespace {

using model::SavedTensor;

constexpr const char* kHeader =
    "source,model,layers,hidden,ffn,heads,kv_heads,vocab,experts,experts_per_token,moe_ffn,hardware,gpus,seq_"
    "len,"
    "global_batch,micro_batch,tp,cp,ep,pp,dp,vp,sequence_parallel,recompute,fsdp_or_zero,step_s,notes\n";
constexpr const char* kRow =
    "project x,Llama2-7B,32,4096,11008,32,32,32000,,,,\"A100-80GB (8/node, "
    "somewhere)\",8,4096,16,2,1,1,1,1,8,,0,none,"
    "fsdp full (zero3),2.5,\n";

std::string with(std::string text, const std::string& old, const std::string& fresh) {
  return text.replace(text.find(old), old.size(), fresh);
}

Table table_of(const std::string& rows) { return Table(kHeader + rows, "table.csv"); }

ThroughputTable read(const std::string& rows) {
  return read_throughput(table_of(rows), reference_machines());
}

// Why the first row is bad input; empty: it is not.
std::string refusal(const std::string& rows) {
  const ThroughputTable table = read(rows);
  return table.refused.empty() || !table.refused[0].bad_input ? "" : table.refused[0].reason;
}

TEST(Throughput, ARowBecomesAWorkloadALayoutAndNamesOfFiles) {
  const ThroughputTable table = read(kRow);
  ASSERT_EQ(table.runs.size(), 1u);
  const TimedCase& timed = table.runs[0].timed;
  EXPECT_EQ(timed.hardware, "a100-hdr");
  EXPECT_EQ(timed.engine, "fsdp2");  // the typical one of sharded weights, since no file names the source
  EXPECT_EQ(timed.workload.model.shape.ffn, 11008);
  EXPECT_EQ(timed.layout.mesh.data, 8);
  EXPECT_TRUE(timed.layout.sharded.on);
  EXPECT_EQ(micro_batches(timed.workload, timed.layout), 1);
  EXPECT_EQ(table.runs[0].published, 2.5);
}

TEST(Throughput, TheSourcePicksTheEngineByThePartThatEndsLast) {
  const std::string row = kRow;
  const auto engine = [&](const std::string& source) {
    return read(with(row, "project x", source)).runs[0].timed.engine;
  };
  EXPECT_EQ(engine("mosaicml/llm-foundry 8c8dd48 README.md"), "fsdp1");
  EXPECT_EQ(engine("NVIDIA/dgxc-benchmarking v24.11.1 llama3.1/README.md"), "nemo");
  EXPECT_EQ(engine("NVIDIA/dgxc-benchmarking v24.11.1 maxtext/README.md"), "maxtext");
  EXPECT_EQ(engine("InternLM/xtuner 7575f2c docs"), "deepspeed");
  EXPECT_EQ(engine("InternLM/xtuner b934f46 docs"), "megatron-2025");
}

TEST(Throughput, BatchesThatDoNotDivideAreCutEvenlyAndStagesBeyondTheLayersAreFewer) {
  const std::string row = with(kRow, ",2.5,", ",250,");
  const auto layout = [&](const std::string& batch, const std::string& micro_batch) {
    const ThroughputTable table = read(with(row, "4096,16,2,", "4096," + batch + "," + micro_batch + ","));
    const TimedCase& timed = table.runs.at(0).timed;
    return std::pair(micro_batches(timed.workload, timed.layout), timed.layout.micro_batch);
  };
  EXPECT_EQ(layout("160", "8"), std::pair(std::int64_t{3}, 6));  // 20 of a replica: 8, 8 and 4
  EXPECT_EQ(layout("40", "10"), std::pair(std::int64_t{1}, 5));
  EXPECT_EQ(layout("64", "4"), std::pair(std::int64_t{2}, 4));
  const std::string staged = with(row, ",8,4096,16,2,1,1,1,1,8,,", ",8,4096,16,2,1,1,1,4,2,9,");
  EXPECT_EQ(read(staged).runs.at(0).timed.layout.chunks, 8);
}

TEST(Throughput, BadRowsAreNamed) {
  const std::string row = kRow;
  EXPECT_NE(refusal(with(row, ",8,4096,", ",16,4096,")).find("row 1, gpus = \"16\": tp·cp·pp·dp is 8"),
            std::string::npos);
  const std::string hardware = refusal(with(row, "A100-80GB (8/node, somewhere)", "B200"));
  EXPECT_NE(
      hardware.find("row 1, hardware = \"B200\": no hardware file describes it; did you mean \"H200\"?"),
      std::string::npos)
      << hardware;
  EXPECT_NE(refusal(with(row, "4096,16,2,", "4096,4,2,")).find("expected at least dp"), std::string::npos);
  const std::string missing = failure<InputError>([&] {
    read_throughput(Table("source,step_s,model\nx,1,Llama2-7B\n", "table.csv"), reference_machines());
  });
  EXPECT_NE(missing.find("table.csv: no column \"layers\""), std::string::npos) << missing;
}

TEST(Throughput, ImpossibleShapesAndMeshesAreNamedAndTheOtherRowsKept) {
  const std::string row = kRow;
  const auto moe = [&](const std::string& sizes) { return with(row, "32000,,,,", "32000," + sizes + ","); };
  EXPECT_NE(refusal(moe("8,16,1024")).find("expected at most experts"), std::string::npos);
  EXPECT_EQ(refusal(moe("8,2,1024")), "");
  EXPECT_NE(refusal(with(row, ",32,32,32000", ",32,12,32000")).find("kv_heads = \"12\""), std::string::npos);
  EXPECT_NE(refusal(with(row, ",2,1,1,1,1,8,", ",2,1,1,8,1,8,")).find("ep = \"8\""), std::string::npos);
  EXPECT_NE(refusal(with(row, ",32000,", ",9223372036854775807,")).find("expected at most"),
            std::string::npos);
  const ThroughputTable table = read(with(row, ",2.5,", ",,") + row);
  EXPECT_EQ(table.runs.size(), 1u);
  EXPECT_EQ(table.refused.size(), 1u);
}

TEST(Throughput, ARowThatSaysNothingOfSequenceParallelismDoesAsItsEngine) {
  const std::string row = with(with(kRow, "8,4096,16,2,1,", "8,4096,16,2,8,"), ",1,1,1,8,,0,", ",1,1,1,1,,,");
  const auto parallel = [&](const std::string& source) {
    return read(with(row, "project x", source)).runs.at(0).timed.changes.sequence_parallel;
  };
  EXPECT_TRUE(parallel("NVIDIA/NeMo"));
  EXPECT_FALSE(parallel("bigscience-workshop/bigscience"));
}

TEST(Throughput, WordsThatAreDeniedDoNotCount) {
  EXPECT_TRUE(changes_of("CUDA graphs (router)", "").captured);
  EXPECT_FALSE(changes_of("alltoall, no CUDA graphs", "").captured);
  EXPECT_FALSE(changes_of("without torch.compile", "").compiled);
  EXPECT_TRUE(changes_of("EP overlap on", "").hidden_dispatch);
  EXPECT_FALSE(changes_of("EP overlap off", "").hidden_dispatch);
  EXPECT_TRUE(changes_of("", "Grok1-314B").cut_experts);
  EXPECT_FALSE(changes_of("ETP1", "Grok1-314B").cut_experts);
  EXPECT_TRUE(changes_of("ETP 4", "Llama").cut_experts);
  EXPECT_FALSE(changes_of("TP4", "Llama").cut_experts);
  EXPECT_TRUE(changes_of("NeMo 24.09; no grouped GEMM", "").looped_experts);
  EXPECT_FALSE(changes_of("grouped GEMM", "").looped_experts);
  EXPECT_TRUE(changes_of("kernel: FA3", "").third_attention);
  EXPECT_FALSE(changes_of("without FA3", "").third_attention);
}

TEST(Throughput, AMisspeltColumnIsRefusedAndAnotherIsTheUsersOwn) {
  const auto with_header = [](const std::string& old, const std::string& fresh) {
    const Table table(with(kHeader, old, fresh) + kRow, "table.csv");
    return failure<InputError>([&] { read_throughput(table, reference_machines()); });
  };
  EXPECT_EQ(with_header(",vp,", ",xvp,"), "table.csv: column \"xvp\"; did you mean \"vp\"?");
  EXPECT_EQ(with_header("recompute", "recomputed"),
            "table.csv: column \"recomputed\"; did you mean \"recompute\"?");
  EXPECT_EQ(with_header(",notes", ",who ran it"), "");
}

TEST(Throughput, AnEngineColumnIsTakenAndAnUnknownNameGetsTheNearest) {
  const auto with_engine = [](const std::string& name) {
    return Table("engine," + std::string(kHeader) + name + "," + kRow, "table.csv");
  };
  EXPECT_EQ(read_throughput(with_engine("nanotron"), reference_machines()).runs[0].timed.engine, "nanotron");
  const ThroughputTable table = read_throughput(with_engine("nanotrom"), reference_machines());
  ASSERT_EQ(table.refused.size(), 1u);
  EXPECT_NE(table.refused[0].reason.find("did you mean \"nanotron\"?"), std::string::npos)
      << table.refused[0].reason;
}

TEST(Throughput, RowsThatCannotBeExpressedOrTrueAreNamedAndTheOthersScored) {
  const std::string row = kRow;
  const Score scored =
      score(table_of(row + with(row, "Llama2-7B", "DeepSeek-V3") + with(row, ",2.5,", ",0.25,")),
            reference_machines());
  EXPECT_EQ(scored.figures.size(), 1u);
  ASSERT_EQ(scored.refused.size(), 2u);
  EXPECT_EQ(scored.refused[0].row, 1u);
  EXPECT_NE(scored.refused[0].reason.find("latent attention"), std::string::npos);
  EXPECT_NE(scored.refused[1].reason.find("of the chip's peak"), std::string::npos);
  EXPECT_NE(print_score(scored).find("not scored: row 2, DeepSeek-V3"), std::string::npos);
}

TEST(Throughput, WordsOfRecomputationNameTensors) {
  const auto missing = [](std::string_view words) {
    const model::KeepSet all = model::keep_of(model::Policy::None),
                         kept = recomputation(words, "", false).keep;
    std::string names;
    for (std::size_t i = 0; i < model::kSavedTensors; ++i) {
      const auto tensor = static_cast<SavedTensor>(i);
      if (all.has(tensor) && !kept.has(tensor)) names += std::string(model::kSavedTensorNames[i]) + " ";
    }
    return names;
  };
  EXPECT_EQ(missing("none"), "");
  EXPECT_EQ(missing("selective (moe_act, layernorm)"), "norm1_output norm2_output product ");
  EXPECT_EQ(missing("selective (SAVE_DOT_ONLY)"), "norm1_output norm2_output product ");
  EXPECT_EQ(missing("selective (saves all projections but the MLP input ones)"), "norm2_output fc1 product ");
  EXPECT_EQ(recomputation("full", "", false).keep, model::keep_of(model::Policy::Full));
  EXPECT_EQ(recomputation("full", "doubt: full recompute flag", false).keep,
            model::keep_of(model::Policy::None));
  EXPECT_TRUE(recomputation("", "", true).unknown);
  EXPECT_TRUE(
      recomputation("selective (some blocks fully checkpointed; fraction not stated)", "", true).unknown);
}

TEST(Throughput, WordsOfSharingGiveTheGroup) {
  EXPECT_FALSE(sharded_weights("zero1 over 8 ranks, replicated beyond", 64, 8).on);
  EXPECT_EQ(sharded_weights("zero1 over 8 ranks, replicated beyond", 64, 8).group, 8);
  EXPECT_TRUE(sharded_weights("fsdp2 full (zero3) over 32", 32, 8).on);
  EXPECT_EQ(sharded_weights("fsdp2 full (zero3) over 32", 32, 8).group, 0);
  EXPECT_EQ(sharded_weights("hsdp (fsdp full in node x DP)", 64, 4).group, 4);
  EXPECT_FALSE(sharded_weights("fsdp shard_grad_op (zero2)", 64, 8).regathers);
}

TEST(Throughput, WordsOfHardwareGiveTheNetworksRate) {
  EXPECT_EQ(network_rate("A100-80GB (8/node, 4x100 Gb/s RoCE)", 8), 6.25);
  EXPECT_EQ(network_rate("H100 80GB (800 Gb/s)", 8), 12.5);
  EXPECT_EQ(network_rate("A100-80GB (8/node, 1,600 Gb/s RoCE)", 8), 25);
  EXPECT_EQ(network_rate("H100 80GB (DGX, 8/node)", 8), std::nullopt);
  EXPECT_EQ(network_rate("H100 80GB (8 x 400 Gb/s)", 8), 50);
  EXPECT_EQ(network_rate("H100 80GB (400 Gb/s per GPU)", 8), 50);
  EXPECT_EQ(gpus_of_node("H200 141GB (4/node)"), 4);
  EXPECT_EQ(gpus_of_node("H100 80GB"), std::nullopt);
  EXPECT_TRUE(has_word("NVIDIA H200", "H200"));
  EXPECT_FALSE(has_word("GH200 96GB", "H200"));
  EXPECT_TRUE(has_word("GH200 and H200", "H200"));
}

TEST(Throughput, ExpertRanksShareTheStatesOfTheirExpertsWithThoseThatHaveTheSame) {
  const Workload workload{find_model("mixtral-8x7b"), 8192, 64};
  const auto memory = [&](int expert_ranks) {
    return run_memory(workload, {.mesh = {.expert = expert_ranks, .data = 8},
                                 .schedule = ScheduleKind::OneFOneB,
                                 .sharded = {.on = true}});
  };
  EXPECT_NEAR(memory(8).states / memory(1).states, 1, 1e-9);
  EXPECT_LT(memory(8).working, memory(1).working) << "an eighth of the experts is gathered";
}

TEST(Throughput, SharedWeightsThatCannotHideAreSeenAndGroupsInANodeAreCheaper) {
  const KnownMachines known = reference_machines();
  TimedCase timed = read(kRow).runs[0].timed;
  timed.layout.mesh.data = 64;
  timed.workload.global_batch = 128;
  const Seconds over_all = cost_of(timed, known).gradients;
  timed.layout.sharded.group = 8;
  EXPECT_LT(cost_of(timed, known).gradients, over_all);
  timed.layout.sharded.group = 0;
  timed.layout.sharded.regathers = false;
  EXPECT_LT(cost_of(timed, known).gradients, over_all);
  timed.layout.sharded.on = false;
  timed.layout.mesh.data = 1;
  timed.workload.global_batch = 2;
  EXPECT_EQ(cost_of(timed, known).gradients, 0);
}

TEST(Throughput, WhatIsRecomputedIsOfTheStatesAndExpertsThatTheEngineHas) {
  const std::string row =
      ",project x,Llama2-7B,32,4096,11008,32,32,32000,8,2,11008,\"A100-80GB (8/node, somewhere)\",64,4096,"
      "256,8,2,1,1,1,32,,1,,fsdp full (zero3),25,\n";
  const KnownMachines known = reference_machines();
  for (const std::string engine : {"maxtext", "megatron-2022"}) {
    const ThroughputTable table =
        read_throughput(Table("engine," + std::string(kHeader) + engine + row, "table.csv"), known);
    ASSERT_EQ(table.runs.size(), 1u) << table.refused.at(0).reason;
    const TimedCase& timed = table.runs[0].timed;
    EXPECT_TRUE(timed.layout.cut_experts);
    EXPECT_EQ(timed.layout.sharded.group, 0) << "sharded weights have shared states";
    EXPECT_GT(timed.layout.recomputed, 0);
    EXPECT_LT(timed.layout.recomputed, 1);
    const sim::Hardware& hardware = find_hardware(known.hardware, timed.hardware);
    EXPECT_NEAR(timed.layout.recomputed, least_recomputed(timed.workload, timed.layout, hardware), 1e-9);
  }
}

TEST(Ranking, CountsPairsThatDifferAndGroupsWhoseBestIsNear) {
  Score scored;
  const auto add = [&](double predicted, double published) {
    ScoredFigure figure;
    figure.group = "one";
    figure.tokens = 1;
    figure.predicted = 1 / predicted;
    figure.published = 1 / published;
    scored.figures.push_back(figure);
  };
  add(10, 10), add(9, 9), add(12, 8), add(8.9, 9.1);  // 10 > 9, 9.1, 8; 9 and 9.1 > 8; 9.1 is as fast as 9
  const Ranking ranking = ranking_of(scored);
  EXPECT_EQ(ranking.pairs, 5u);
  EXPECT_EQ(ranking.right, 2u);
  EXPECT_EQ(ranking.groups, 1u);
  EXPECT_EQ(ranking.in_three, 1u);
}

TEST(Throughput, ThePublishedTablesAreMet) {
  const KnownMachines known = reference_machines();
  std::vector<double> errors;
  Ranking ranking;
  std::size_t refused = 0;
  for (const char* name : {"throughput/hopper", "throughput/a100"}) {
    const Score scored = score(reference_table(name), known);
    for (const ScoredFigure& figure : scored.figures) errors.push_back(std::abs(figure.relative_error()));
    const Ranking found = ranking_of(scored);
    ranking.pairs += found.pairs, ranking.right += found.right;
    ranking.groups += found.groups, ranking.in_three += found.in_three;
    refused += scored.refused.size();
  }
  EXPECT_EQ(errors.size() + refused, 644u);
  EXPECT_EQ(refused, 5u);
  const ErrorStatistics found = statistics_of(errors);
  EXPECT_LE(found.median, 0.03);
  EXPECT_LE(found.mean, 0.05);
  EXPECT_LE(found.p90, 0.12);
  EXPECT_GE(static_cast<double>(ranking.right), 0.9 * static_cast<double>(ranking.pairs));
  EXPECT_GE(static_cast<double>(ranking.in_three), 0.8 * static_cast<double>(ranking.groups));
}

}  // namespace
}  // namespace penstock::plan
