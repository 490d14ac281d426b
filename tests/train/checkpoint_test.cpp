// SPDX-License-Identifier: Apache-2.0
// Checkpoints: the same bytes for every number of devices, and a run goes on from one to the bits of a run
// that never stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/layout.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

void expect_same_state(const std::map<std::string, at::Tensor>& got,
                       const std::map<std::string, at::Tensor>& wanted) {
  ASSERT_FALSE(wanted.empty());
  for (const auto& [name, tensor] : got) {
    if (wanted.contains(name)) expect_same_bits(tensor, wanted.at(name), name);
  }
}

struct Setting {
  std::string schedule;
  int devices, slices;
  std::string precision;
  bool tied;
};

run::Run plan_of(const Setting& setting) {
  auto options = small_options(setting.schedule, setting.devices, setting.slices, setting.precision);
  options.model.shape.tied_embeddings = setting.tied;
  return planned(options);
}

// Steps 1 to 4 without a break, against steps 3 and 4 from a checkpoint under another mesh.
void expect_same_after_resume(const Setting& before, const Setting& after) {
  SCOPED_TRACE(before.schedule + " then " + after.schedule + " in " + before.precision);
  const FaultyFiles quick;
  const Scratch whole, parted;
  const auto wanted = run_steps(plan_of(before), whole.path(), 1, 4);
  run_steps(plan_of(before), parted.path(), 1, 2);
  const auto got = run_steps(plan_of(after), parted.path(), 3, 4);
  expect_same_state(got, wanted);
  EXPECT_EQ(files_below(parted / "step-000004"), files_below(whole / "step-000004"));
}

// Moments are twice as many bytes as weights.
TEST(Checkpoint, IsVerifiedByRanksThatReadAboutAsManyBytesEach) {
  const FaultyFiles quick;
  const Scratch scratch;
  run_steps(plan_of({"slimpipe", 1, 4, "bf16", false}), scratch.path(), 1, 1);
  const train::CheckpointDirectory checkpoints(scratch.path());
  const auto facts = train::read_checkpoint_facts(checkpoints, 1);
  constexpr int kShares = 2;
  double total = 0, greatest = 0;
  std::map<int, double> bytes;  // by share
  for (const train::FileSums& sums : facts.files) {
    const std::filesystem::path file = checkpoints.of_step(1) + "/" + sums.file;
    const auto size = static_cast<double>(std::filesystem::file_size(file));
    total += size;
    greatest = std::max(greatest, size);
    const std::string whole = contents_of(file);
    std::ofstream(file, std::ios::binary) << std::string(whole.size(), 'x');
    int finds = 0;
    for (int share = 0; share < kShares; ++share) {
      const auto verifies = [&] { train::verify_checkpoint(checkpoints.of_step(1), facts, share, kShares); };
      if (failure<InputError>(verifies).empty()) continue;
      ++finds;
      bytes[share] += size;
    }
    EXPECT_EQ(finds, 1) << file;
    std::ofstream(file, std::ios::binary) << whole;
  }
  for (const auto& [share, read] : bytes) EXPECT_LT(std::abs(read - total / kShares), greatest) << share;
}

TEST(Checkpoint, GoesOnToTheSameBitsOnOtherDevicesAndSchedules) {
  for (const char* precision : {"f32", "bf16"}) {
    for (const bool tied : {false, true}) {
      expect_same_after_resume({"slimpipe", 1, 4, precision, tied}, {"slimpipe", 4, 4, precision, tied});
      expect_same_after_resume({"slimpipe", 4, 4, precision, tied}, {"seq1f1b", 2, 4, precision, tied});
    }
  }
  expect_same_after_resume({"1f1b", 2, 1, "bf16", false}, {"zb-v", 2, 1, "bf16", false});
  expect_same_after_resume({"zb-v", 4, 1, "f64", true}, {"gpipe", 1, 1, "f64", true});
}

// Which tokens meet changes with the expert ranks, so only what was saved is the same.
TEST(Checkpoint, OfExpertsGoesOnUnderEveryMesh) {
  const auto plan = [](int experts, int tensor, int replicas, int devices, const char* shard) {
    auto options = small_options("slimpipe", devices, 4, "bf16");
    options.model.shape.layers = 2;
    options.model.shape.experts = 4;
    options.model.shape.experts_per_token = 2;
    options.model.shape.head_norms = true;
    options.moe.balance_coefficient = 0.1;
    options.parallel.ep = experts;
    options.parallel.tp = options.numerics.tensor = tensor;
    options.parallel.dp = options.numerics.replicas = replicas;
    options.parallel.shard = shard;
    return planned(options);
  };
  const run::Run first = plan(2, 1, 2, 1, "optimizer");
  const FaultyFiles quick;
  const Scratch saved;
  const auto wanted = run_steps(first, saved.path(), 1, 2);
  for (const run::Run& other :
       {plan(2, 1, 2, 2, "weights"), plan(1, 1, 1, 2, "off"), plan(4, 2, 2, 1, "optimizer"),
        plan(2, 2, 1, 1, "auto"), plan(1, 1, 4, 1, "weights")}) {
    expect_same_state(loaded(other, saved.path(), 2), wanted);
  }
  const auto same_experts = run_steps(plan(2, 1, 2, 2, "weights"), saved.path(), 3, 4);
  const Scratch whole;
  expect_same_state(same_experts, run_steps(first, whole.path(), 1, 4));
}

TEST(Checkpoint, IsTheSameBytesForEveryNumberOfDevices) {
  const FaultyFiles quick;
  for (const bool tied : {false, true}) {
    const Scratch alone;
    run_steps(plan_of({"slimpipe", 1, 4, "bf16", tied}), alone.path(), 1, 2);
    for (const int devices : {2, 3, 8}) {
      const Scratch many;
      run_steps(plan_of({"slimpipe", devices, 4, "bf16", tied}), many.path(), 1, 2);
      EXPECT_EQ(files_below(many.path()), files_below(alone.path())) << devices;
    }
  }
}

TEST(Checkpoint, HasWeightsAsShardsInHuggingFacesForm) {
  const Scratch scratch;
  const auto run = plan_of({"slimpipe", 2, 4, "bf16", false});
  const auto state = run_steps(run, scratch.path(), 1, 1);
  const auto index = nlohmann::json::parse(scratch.read("step-000001/model.safetensors.index.json"));
  const auto names = model::parameter_names(run.shape());
  ASSERT_EQ(index.at("weight_map").size(), names.size());
  for (const std::string& name : names) {
    const std::string file = index.at("weight_map").at(name);
    const files::Safetensors shard(scratch / ("step-000001/" + file));
    const files::StoredTensor* weight = shard.find(name);
    ASSERT_TRUE(weight) << name;
    EXPECT_EQ(weight->type, files::ElementType::F32);
    EXPECT_EQ(weight->shape, state.at(name).sizes().vec());
    EXPECT_EQ(0, std::memcmp(weight->bytes.data(), state.at(name).data_ptr(), weight->bytes.size()));
  }
}

TEST(Checkpoint, KeepsTheNewest) {
  const Scratch scratch;
  const auto run = plan_of({"slimpipe", 2, 4, "f32", false});
  const FaultyFiles quick;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    auto saver = saver_of(run, scratch.path(), trainer, world, 3);
    for (std::int64_t step = 1; step <= 7; ++step) saver.begin(facts_of(run, step, trainer));
    saver.settle();
    EXPECT_EQ(saver.newest(), 7);
  });
  EXPECT_EQ(train::CheckpointDirectory(scratch.path()).steps(), (std::vector<std::int64_t>{5, 6, 7}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 3);
}

TEST(Checkpoint, IsWrittenWhileTheStepsGoOn) {
  const Scratch scratch;
  const auto run = plan_of({"slimpipe", 2, 4, "bf16", false});
  std::map<std::string, at::Tensor> wanted;
  std::mutex mutex;
  FaultyFiles disk;
  disk.close_gate();
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    auto saver = saver_of(run, scratch.path(), trainer, world);
    step_on_drawn_tokens(run, trainer, world.rank(), 1);
    {
      const std::lock_guard lock(mutex);
      collect_state(trainer, wanted);
    }
    saver.begin(facts_of(run, 1, trainer));
    for (std::int64_t step = 2; step <= 4; ++step) step_on_drawn_tokens(run, trainer, world.rank(), step);
    EXPECT_TRUE(saver.busy());
    world.barrier();
    if (world.rank() == 0) disk.open_gate();
    saver.settle();
  });
  std::map<std::string, at::Tensor> saved;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const train::CheckpointDirectory checkpoints(scratch.path());
    train::load_checkpoint(checkpoints.of_step(1), train::read_checkpoint_facts(checkpoints, 1), trainer);
    const std::lock_guard lock(mutex);
    collect_state(trainer, saved);
  });
  EXPECT_EQ(saved.size(), wanted.size());
  expect_same_state(saved, wanted);
}

TEST(Checkpoint, OfAnotherShapeIsNamedByTheTensor) {
  const Scratch scratch;
  run_steps(plan_of({"slimpipe", 1, 4, "f32", false}), scratch.path(), 1, 1);
  auto options = small_options("slimpipe", 1, 4, "f32");
  options.model.shape.ffn = 32;
  const std::string failed = failure<InputError>([&] { run_steps(planned(options), scratch.path(), 2, 2); });
  EXPECT_NE(failed.find("mlp.gate_proj.weight\" is F32 of [24, 16]; the model's is F32 of [32, 16]"),
            std::string::npos)
      << failed;
  options = small_options("slimpipe", 1, 4, "f32");
  options.model.shape.layers = 9;
  EXPECT_NE(failure<InputError>([&] {
              run_steps(planned(options), scratch.path(), 2, 2);
            }).find("names no tensor \"model.layers.8."),
            std::string::npos);
}

TEST(Checkpoint, FilesFollowFromTheShape) {
  const auto files = train::checkpoint_files({.layers = 2});
  ASSERT_EQ(files.size(), 8u);
  EXPECT_EQ(files[2].name, "model-00002-of-00004.safetensors");
  EXPECT_EQ(files[3].name, "optimizer-00002-of-00004.safetensors");
  EXPECT_EQ(files[3].tensors.front().name, "model.layers.0.input_layernorm.weight.first_moment");
  EXPECT_EQ(train::checkpoint_name(50), "step-000050");
  EXPECT_EQ(train::checkpoint_name(12345678), "step-12345678");
}

}  // namespace
}  // namespace penstock::testing
