// SPDX-License-Identifier: Apache-2.0
// Shards of either dimension: the initial values of the whole tensor, and one file of whole tensors from the
// parts of many ranks.
#include "train/checkpoint/file_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "files/checksum.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/parameters/parameter_maker.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/weights_file.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

const std::vector<std::int64_t> kSizes{6, 10};
const nn::ParameterMaker kMake(model::Precision::F32, 7);

// One of the ways to cut the matrix: the shards of all ranks.
using Cutting = std::vector<mesh::Shard>;

std::vector<Cutting> cuttings() {
  std::vector<Cutting> all;
  for (int parts = 1; parts <= 4; ++parts) {
    Cutting padded, rows, columns;
    for (int index = 0; index < parts; ++index) {
      padded.push_back(mesh::padded_block(kSizes[0], parts, index));
      rows.push_back(mesh::even_block(kSizes[0], parts, index, 0));
      columns.push_back(mesh::even_block(kSizes[1], parts, index, 1));
    }
    all.insert(all.end(), {padded, rows, columns});
  }
  return all;
}

nn::Parameter whole_matrix(const std::string& name) {
  return kMake.shard(name, kSizes, mesh::padded_block(kSizes[0], 1, 0));
}

TEST(Shards, BeginWithTheValuesOfTheWholeMatrix) {
  const nn::Parameter whole = whole_matrix("a");
  for (const Cutting& cutting : cuttings()) {
    for (const mesh::Shard& shard : cutting) {
      const nn::Parameter part = kMake.shard("a", kSizes, shard);
      EXPECT_EQ(part.master.size(shard.dimension), shard.held);
      expect_same_bits(part.master.narrow(shard.dimension, 0, shard.count).contiguous(),
                       whole.master.narrow(shard.dimension, shard.begin, shard.count).contiguous(), "a");
      const std::int64_t padding = shard.held - shard.count;
      const at::Tensor rest = part.master.narrow(shard.dimension, shard.count, padding);
      EXPECT_EQ(rest.count_nonzero().item<std::int64_t>(), 0);
    }
  }
}

files::StoredTensor without_bytes(const std::string& name) {
  return {name, files::ElementType::F32, kSizes, {}};
}

// The file of two matrices, both cut like this, as its ranks write it.
struct CutFile {
  explicit CutFile(const Cutting& cutting) {
    for (const mesh::Shard& shard : cutting) {
      auto& [a, b] =
          parameters.emplace_back(kMake.shard("a", kSizes, shard), kMake.shard("b", kSizes, shard));
      shares.push_back(train::share_of_file({without_bytes("a"), without_bytes("b")},
                                            {{"a", {&a, a.master}}, {"b", {&b, b.master}}}));
    }
  }
  std::deque<std::pair<nn::Parameter, nn::Parameter>> parameters;
  std::vector<train::FileShare> shares;
};

TEST(FileShares, MakeTheSameFileAndSumsHoweverTheTensorsAreCut) {
  const Scratch scratch;
  const nn::Parameter a = whole_matrix("a"), b = whole_matrix("b");
  const auto bytes_a = nn::bytes_of_tensor(a.master), bytes_b = nn::bytes_of_tensor(b.master);
  files::StoredTensor stored[] = {without_bytes("a"), without_bytes("b")};
  stored[0].bytes = bytes_a;
  stored[1].bytes = bytes_b;
  files::write_safetensors(scratch / "whole", stored, {{"format", "pt"}});
  for (const Cutting& cutting : cuttings()) {
    CutFile file(cutting);
    std::vector<std::uint64_t> sums(2);
    for (auto share = file.shares.rbegin(); share != file.shares.rend(); ++share) {
      train::write_share(scratch / "parts", *share);
      const auto own = train::word_sums_of(*share);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = files::add_word_sums(sums[i], own[i]);
    }
    EXPECT_EQ(scratch.read("parts"), scratch.read("whole"));
    EXPECT_EQ(sums, (std::vector{files::word_sum(bytes_a), files::word_sum(bytes_b)}));
    const files::Safetensors read(scratch / "parts");
    for (auto& [part, other] : file.parameters) {
      const at::Tensor wanted = part.master.clone();
      part.master.narrow(part.shard.dimension, 0, part.shard.count).zero_();
      train::read_part(read.find("a"), "a", "parts", part, part.master);
      expect_same_bits(part.master, wanted, "a");
    }
    std::filesystem::remove(scratch / "parts");
  }
}

// So that those who wait for it hear of it meanwhile.
TEST(FileShares, OfALargeTensorAreWrittenInPieces) {
  const Scratch scratch;
  const std::vector<std::int64_t> sizes{3, 1 << 20};
  const nn::Parameter large = kMake.shard("a", sizes, mesh::padded_block(sizes[0], 1, 0));
  const std::vector<files::StoredTensor> whole{{"a", files::ElementType::F32, sizes, {}}};
  train::OwnedTensors owned;
  owned.emplace("a", train::TensorSource{&large, large.master});
  const train::FileShare share = train::share_of_file(whole, owned);
  int pieces = 0;
  train::write_share(scratch / "large", share, [&] { ++pieces; });
  EXPECT_EQ(pieces, 2) << "8 and 4 MiB";
  const files::Safetensors read(scratch / "large");
  EXPECT_TRUE(std::ranges::equal(read.find("a")->bytes, nn::bytes_of_tensor(large.master)));
}

TEST(FileShares, OfRanksThatOwnNothingTouchNoFile) {
  const Scratch scratch;
  const train::FileShare none = train::share_of_file({without_bytes("a")}, {});
  train::write_share(scratch / "none", none);
  EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
  EXPECT_EQ(train::word_sums_of(none), std::vector<std::uint64_t>{0});
}

}  // namespace
}  // namespace penstock::testing
