// SPDX-License-Identifier: Apache-2.0
// Gradients of tensor-parallel runs in f64 against autograd on one process: of every parameter on every rank,
// before the optimizer changes it. So each copy of a norm and of a key head is checked by itself.
#include <gtest/gtest.h>

#include "train/autograd_gradients.h"

namespace penstock::testing {
namespace {

struct Model {
  std::int64_t heads, kv_heads;
  bool tied;
  std::int64_t layers = 3;
  friend auto operator<=>(const Model&, const Model&) = default;
};

struct GradientMesh {
  int shards, ranks, devices, replicas, slices;
  bool vocabulary = false;
};

run::Options gradient_options(const Model& model, const GradientMesh& mesh,
                              const std::string& schedule = {}) {
  const std::string sliced = mesh.slices > 1 ? "slimpipe" : "1f1b";
  run::Options options =
      small_options(schedule.empty() ? sliced : schedule, mesh.devices, mesh.slices, "f64");
  options.model.shape = {.layers = model.layers,
                         .hidden = 12 * model.heads,  // shares of a norm are cut at 64
                         .ffn = 23,
                         .heads = model.heads,
                         .kv_heads = model.kv_heads,
                         .tied_embeddings = model.tied};
  options.data.seq_len = 13;  // slices of 4, 3, 3 and 3 tokens, or of 3 and five of 2
  options.train.batch = 4;
  options.train.clip = 0;
  options.train.loss_tile_tokens = 3;
  options.parallel.tp = mesh.ranks;
  options.parallel.dp = mesh.replicas;
  options.numerics.tensor = mesh.shards;
  options.schedule.vocabulary_parallel = mesh.vocabulary;
  return options;
}

Gradients expect_autograd(const Model& model, const GradientMesh& mesh, const run::Options& options) {
  SCOPED_TRACE(::testing::Message() << mesh.shards << " shards, t " << mesh.ranks << ", d " << mesh.replicas
                                    << ", p " << mesh.devices << ", n " << mesh.slices << ", heads "
                                    << model.heads << ":" << model.kv_heads << (model.tied ? ", tied" : "")
                                    << (mesh.vocabulary ? ", sharded vocabulary" : ""));
  return testing::expect_autograd(options);
}

// The grouped queries are 4:1; one key head is on every shard.
TEST(TensorGradients, EqualAutogradOnEveryMesh) {
  int meshes = 0;
  for (const int slices : {1, 4, 6}) {
    for (const int devices : {1, 2, 3}) {
      for (const int replicas : {1, 2}) {
        for (const int ranks : {1, 2, 3, 4}) {
          if (ranks * replicas * devices > 16) continue;
          const bool twice = meshes % 4 == 1 && ranks < 3;  // shards a rank
          const std::int64_t heads = ranks == 3 ? 12 : 8, keys = meshes % 3 == 0 ? 1 : heads / 4;
          const GradientMesh mesh{twice ? 2 * ranks : ranks,    ranks, devices, replicas, slices,
                                  slices > 1 && meshes % 5 == 2};
          const Model model{heads, keys, meshes % 2 == 0};
          expect_autograd(model, mesh, gradient_options(model, mesh));
          ++meshes;
        }
      }
    }
  }
  EXPECT_GE(meshes, 50);
}

TEST(TensorGradients, EqualAutogradUnderSchedulesThatSplitTheBackward) {
  const Model model{8, 2, true, 4};
  for (const char* schedule : {"zb-h1", "zb-v", "breadth-first", "interleaved"}) {
    SCOPED_TRACE(schedule);
    const GradientMesh mesh{4, 2, 2, 1, 1};
    expect_autograd(model, mesh, gradient_options(model, mesh, schedule));
  }
}

bool is_norm(const std::string& name) { return name.find("norm") != std::string::npos; }
bool is_of_keys(const std::string& name) {
  return name.find("k_proj") != std::string::npos || name.find("v_proj") != std::string::npos;
}

// Two key heads on four shards of two replicas.
void expect_whole_copies(bool tied, int ranks, int devices, const std::string& shard) {
  const Model model{8, 2, tied};
  const GradientMesh mesh{4, ranks, devices, 2, 4, devices == 3};
  run::Options options = gradient_options(model, mesh);
  options.parallel.shard = shard;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::vector<Copy>> copies;
  for (const Copy& copy : expect_autograd(model, mesh, options).copies) {
    if (is_norm(copy.name) || is_of_keys(copy.name))
      copies[{copy.name, copy.part.begin, copy.share.begin}].push_back(copy);
  }
  const std::size_t shares = shard == "off" ? 1 : 2, replicas = 2 / shares;
  const std::size_t norms = 2 * model.layers + 1, key_heads = 2 * 2 * model.layers;
  EXPECT_EQ(copies.size(), shares * (norms + key_heads));
  for (const auto& [part, same] : copies) {
    const std::string& name = std::get<0>(part);
    EXPECT_EQ(same.size(), replicas * (is_norm(name) ? 4 : 2)) << name;
    for (const Copy& copy : same) expect_same_bits(copy.gradient, same.front().gradient, name);
  }
}

TEST(TensorGradients, OfEveryCopyOfNormsAndKeyHeadsAreTheWholeAndTheSameBits) {
  for (const bool tied : {false, true}) {
    for (const int ranks : {1, 2, 4}) {
      for (const char* shard : {"off", "optimizer", "weights"}) {
        SCOPED_TRACE(shard);
        expect_whole_copies(tied, ranks, 1, shard);
        if (ranks < 4) expect_whole_copies(tied, ranks, 3, shard);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
