// SPDX-License-Identifier: Apache-2.0
// Shards of the vocabulary outside the step: checkpoints, weights from and into files, policies and
// offloading around the visits.
#include <gtest/gtest.h>

#include "faulty_files.h"
#include "files/model_weights.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/weights_file.h"
#include "train/equal_runs.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

struct VocabularyMesh {
  int devices;
  bool sharded;
  double offload = 0;
};
constexpr VocabularyMesh kMeshes[] = {{1, false},     {1, true}, {2, true},
                                      {3, true, 0.5}, {4, true}, {4, false, 1.0}};

run::Options state_options(const VocabularyMesh& mesh, const std::string& precision, bool tied) {
  run::Options options = small_options("slimpipe", mesh.devices, 4, precision);
  options.model.shape.tied_embeddings = tied;
  options.schedule.vocabulary_parallel = mesh.sharded;
  options.memory.offload.number = mesh.offload;
  return options;
}

run::Run state_plan(const VocabularyMesh& mesh, const std::string& precision, bool tied) {
  return planned(state_options(mesh, precision, tied));
}

// Loads the checkpoint of step 2 and saves it elsewhere.
void copy_checkpoint(const run::Run& run, const std::string& from, const std::string& to) {
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const train::CheckpointDirectory checkpoints(from);
    const auto facts = train::read_checkpoint_facts(checkpoints, 2);
    train::load_checkpoint(checkpoints.of_step(2), facts, trainer);
    auto saver = saver_of(run, to, trainer, world);
    saver.begin(facts);
    saver.settle();
  });
}

TEST(VocabularyCheckpoint, IsReadAndWrittenByEveryMeshWithoutAChangedByte) {
  const FaultyFiles quick;
  for (const char* precision : {"f32", "bf16"}) {
    for (const bool tied : {false, true}) {
      const Scratch first;
      run_steps(state_plan({3, true}, precision, tied), first.path(), 1, 2);
      verify(first.path(), 2);
      for (const VocabularyMesh& mesh : kMeshes) {
        const Scratch copy;
        copy_checkpoint(state_plan(mesh, precision, tied), first.path(), copy.path());
        EXPECT_EQ(files_below(copy.path()), files_below(first.path()))
            << mesh.devices << " devices, sharded " << mesh.sharded << ", tied " << tied;
      }
    }
  }
}

TEST(VocabularyCheckpoint, GoesOnToTheBitsOfARunThatNeverStopped) {
  const FaultyFiles quick;
  for (const VocabularyMesh& mesh : {VocabularyMesh{2, true}, {4, true, 0.6}, {1, true}}) {
    for (const bool tied : {false, true}) {
      const Scratch whole, parted;
      const run::Run run = state_plan(mesh, "bf16", tied);
      run_steps(run, whole.path(), 1, 4);
      run_steps(run, parted.path(), 1, 2);
      run_steps(run, parted.path(), 3, 4);
      EXPECT_EQ(files_below(parted / "step-000004"), files_below(whole / "step-000004")) << mesh.devices;
    }
  }
}

TEST(VocabularyCheckpoint, GoesOnUnderAnotherMeshToRounding) {
  const FaultyFiles quick;
  for (const bool tied : {false, true}) {
    const Scratch whole;
    const auto wanted = run_steps(state_plan({1, false}, "f64", tied), whole.path(), 1, 5);
    for (const auto& [before, after] : {std::pair{VocabularyMesh{4, true}, VocabularyMesh{2, false}},
                                        {VocabularyMesh{2, false}, VocabularyMesh{3, true}},
                                        {VocabularyMesh{2, true}, {4, true}}}) {
      const Scratch parted;
      run_steps(state_plan(before, "f64", tied), parted.path(), 1, 2);
      run_steps(state_plan(after, "f64", tied), parted.path(), 3, 4);
      const auto got = run_steps(state_plan({1, false}, "f64", tied), parted.path(), 5, 5);
      ASSERT_EQ(got.size(), wanted.size());
      for (const auto& [name, tensor] : wanted) expect_near(got.at(name), tensor, 1e-8, name);
    }
  }
}

// The weights that training would begin with, as it would write them.
std::string weights_after_loading(const run::Run& run, const files::ModelWeights& weights) {
  const Scratch scratch;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    train::load_weights(weights, trainer.parameters());
    trainer.weights_from_masters();
    train::write_weights(scratch / "weights.safetensors", run.shape(), trainer.parameters(), world);
  });
  return scratch.read("weights.safetensors");
}

TEST(VocabularyWeights, BeginFromAFileAsWholeMatricesDo) {
  for (const bool tied : {false, true}) {
    const Scratch scratch;
    run_steps(state_plan({2, false}, "f32", tied), scratch.path(), 1, 2);  // in Hugging Face's sharded form
    const files::ModelWeights weights(scratch / "step-000002");
    const std::string wanted = weights_after_loading(state_plan({1, false}, "bf16", tied), weights);
    EXPECT_GT(wanted.size(), 259u * 16 * 4);
    for (const VocabularyMesh& mesh : kMeshes) {
      EXPECT_TRUE(weights_after_loading(state_plan(mesh, "bf16", tied), weights) == wanted)
          << mesh.devices << " devices, sharded " << mesh.sharded << ", tied " << tied;
    }
  }
}

TEST(VocabularyParallel, KeepsItsBitsUnderEveryPolicyAndShareOfOffloading) {
  const Scratch scratch;
  for (const int chunks : {1, 2}) {
    for (const char* precision : {"f32", "bf16"}) {
      run::Options options = state_options({4, true}, precision, true);
      options.schedule.chunks = chunks;
      const Trained none = train_steps(planned(options), 2);
      for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
        for (const double share : {0.0, 0.4, 1.0}) {
          SCOPED_TRACE(std::string(precision) + ", " + policy + ", " + std::to_string(share));
          options.memory.policy = policy;
          options.memory.offload.number = share;
          options.memory.offload_to = share < 1 ? "disk" : "host";
          options.memory.offload_dir = share < 1 ? scratch.path() : "";
          expect_equal_runs(train_steps(planned(options), 2), none);
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
