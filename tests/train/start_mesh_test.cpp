// SPDX-License-Identifier: Apache-2.0
#include "train/record/start_mesh.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "train/record/metrics.h"

namespace penstock::train {
namespace {

std::string line_of_start(std::int64_t step, const run::ParallelOptions& mesh) {
  return to_json(StepMetrics{.step = step, .start = StartMetrics{.mesh = mesh_options(mesh)}}) + "\n";
}

TEST(MeshOfStep, IsThatOfTheLastStartUpToTheStep) {
  const run::ParallelOptions first{.pp = 2, .shard = "weights", .tp_overlap = false};
  const run::ParallelOptions second{.dp = 2, .shard_group = 2, .cp = 4, .cp_mode = "heads", .ep = 2};
  const std::string metrics =
      line_of_start(1, first) + to_json(StepMetrics{.step = 2}) + "\n" + line_of_start(3, second);
  for (const auto& [step, wanted] : {std::pair(1, first), {2, first}, {3, second}, {9, second}}) {
    const std::optional<run::ParallelOptions> found = mesh_of_step(metrics, step, "m");
    ASSERT_TRUE(found) << step;
    EXPECT_EQ(mesh_options(*found), mesh_options(wanted)) << step;
  }
  EXPECT_FALSE(mesh_of_step(metrics, 0, "m"));
}

TEST(MeshOfStep, IsNotKnownFromStartsOfEarlierVersions) {
  const std::string earlier = "{\"step\":3,\"start\":{\"resumed_from\":2,\"load_s\":1.5}}\n";
  EXPECT_FALSE(mesh_of_step(line_of_start(1, {}) + earlier, 5, "m"));
  EXPECT_FALSE(mesh_of_step("noise\n{\"start\":3}\n", 5, "m"));
}

TEST(MeshOfStep, RefusesOptionsThatAreNoMesh) {
  const auto refused = [](const std::string& mesh) {
    const std::string line = "{\"step\":1,\"start\":{\"parallel\":" + mesh + "}}\n";
    return failure<InputError>([&] { mesh_of_step(line, 1, "m"); });
  };
  EXPECT_TRUE(refused("{\"pp\":0}").starts_with("m: parallel.pp = 0 must be "));
  for (const char* mesh : {"3", "[2]", "{\"pp\":[2]}", "{\"pipes\":2}", "{\"cp_mode\":\"no\"}"})
    EXPECT_TRUE(refused(mesh).starts_with("m: ")) << mesh;
}

}  // namespace
}  // namespace penstock::train
