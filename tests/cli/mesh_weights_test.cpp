// SPDX-License-Identifier: Apache-2.0
// Weights that a run leaves, in our form or Hugging Face's, are where runs on other meshes begin: with the
// same bits for every number of tensor ranks, stages and replicas. (With cp_mode = "auto" measured speeds
// choose how context ranks attend, which bits depend on.)
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

struct Mesh {
  int tensor = 1, context = 1, replicas = 1, devices = 1;
};

Left left_by(const Scratch& scratch, const std::string& name, const Mesh& mesh, Arguments more) {
  SCOPED_TRACE(name);
  Arguments arguments{"train",          scratch / "run.toml",
                      "--output.dir",   scratch / name,
                      "--parallel.tp",  std::to_string(mesh.tensor),
                      "--parallel.cp",  std::to_string(mesh.context),
                      "--parallel.dp",  std::to_string(mesh.replicas),
                      "--parallel.pp",  std::to_string(mesh.devices),
                      "--train.steps",  "2",
                      "--train.lr",     "0.01",
                      "--data.seq_len", "32"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ending ending = run_program(
      with_threads(mesh.tensor * mesh.context * mesh.replicas * mesh.devices, std::move(arguments)));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  return left_in(scratch, name);
}

TEST(MeshWeights, AreWhereRunsOnAnyMeshBegin) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Left drawn = left_by(scratch, "first", {.tensor = 2, .devices = 2}, {});
  const Ending converted = program({"convert", scratch / "first", "--output", scratch / "there"});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  for (const int context : {1, 2}) {
    const auto begun = [&](const std::string& name, Mesh mesh, const std::string& weights) {
      mesh.context = context;
      return left_by(scratch, name + std::to_string(context), mesh,
                     {"--model.weights", scratch / weights, "--numerics.tensor", "4", "--numerics.replicas",
                      "2", "--train.precision", "bf16", "--parallel.cp_mode", "query"});
    };
    const Left wanted = begun("alone", {}, "first/weights.safetensors");
    ASSERT_EQ(wanted.steps.size(), 2);
    EXPECT_NE(wanted.steps[0], drawn.steps[0]);
    const std::pair<const char*, Mesh> others[] = {{"two", {.tensor = 2, .devices = 2}},
                                                   {"four", {.tensor = 4}},
                                                   {"all", {.tensor = 2, .replicas = 2, .devices = 2}}};
    for (const auto& [name, mesh] : others) {
      if (context == 2 && mesh.replicas == 2) continue;  // 16 ranks take minutes on two cores
      for (const char* weights : {"first/weights.safetensors", "there"}) {
        const Left got = begun(std::string(name) + weights[0], mesh, weights);
        EXPECT_EQ(got.steps, wanted.steps) << name << ", " << weights;
        EXPECT_TRUE(got.weights == wanted.weights) << name << ", " << weights;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
