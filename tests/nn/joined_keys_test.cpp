// SPDX-License-Identifier: Apache-2.0
#include "nn/joined_keys.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::EarlierPart;
using nn::LayerRecord;
using nn::Saved;

// Slices of 4, 6 and 5 tokens of two sequences, newest first, of the last of which the second half is here.
class ThreeSlices {
 public:
  explicit ThreeSlices(at::ScalarType type) {
    constexpr std::int64_t kLengths[] = {4, 6, 5};
    for (int i = 0; i < 3; ++i) {
      LayerRecord& record = records_[i];
      record[Saved::Key] = random_tensor({2, 3, kLengths[i], 8}, type, i);
      // Values lie token by token.
      record[Saved::Value] = random_tensor({2, kLengths[i], 3, 8}, type, 3 + i).transpose(1, 2);
      const std::int64_t begin = i == 2 ? 3 : 0;
      parts_.push_back({&record, {.slice = 2 - i, .begin = begin, .length = kLengths[i] - begin}});
    }
  }
  const std::vector<EarlierPart>& parts() const { return parts_; }
  LayerRecord& operator[](int slice) { return records_[slice]; }

 private:
  LayerRecord records_[3];
  std::vector<EarlierPart> parts_;
};

at::Tensor part_of_slice(const EarlierPart& part, const at::Tensor& x) {
  return x.narrow(2, part.part.begin, part.part.length);
}

TEST(JoinedKeys, AreThoseOfTheirPartsOneAfterTheOther) {
  const ThreeSlices slices(at::kBFloat16);
  for (const Saved name : {Saved::Key, Saved::Value}) {
    std::vector<at::Tensor> wanted;
    for (const EarlierPart& part : slices.parts())
      wanted.push_back(part_of_slice(part, (*part.record)[name]));
    const nn::KeyValues joined = nn::keys_and_values(slices.parts());
    const at::Tensor& got = name == Saved::Key ? joined.key : joined.value;
    expect_same_bits(got, at::cat(wanted, 2), "joined");
    EXPECT_EQ(got.stride(3), 1) << "heads are read as contiguous rows";
  }
}

TEST(JoinedKeys, OfOnePartAreNotCopied) {
  ThreeSlices slices(at::kBFloat16);
  const auto groups = nn::joined_parts(slices.parts(), 10);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].size(), 2u);
  EXPECT_EQ(nn::joined_parts(slices.parts(), 0).size(), 3u);
  const nn::KeyValues last = nn::keys_and_values(groups[1]);
  EXPECT_TRUE(last.key.is_alias_of(slices[2][Saved::Key]));
}

// Results of an attention are in either type.
TEST(JoinedKeys, GradientsGoToTheSumsOfTheirSlices) {
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    ThreeSlices slices(at::kBFloat16);
    const auto made = [&](int seed) { return random_tensor({2, 3, 12, 8}, type, seed); };
    const at::Tensor keys[] = {made(10), made(11)}, values[] = {made(12), made(13)};
    for (int times = 0; times < 2; ++times)
      nn::add_gradients(slices.parts(), {keys[times].clone(), values[times].clone()});
    std::int64_t begin = 0;
    for (int i = 0; i < 3; ++i) {
      const EarlierPart& part = slices.parts()[i];
      const auto expect_sum = [&](const at::Tensor& sum, const at::Tensor* all) {
        const auto piece = [&](const at::Tensor& x) {
          return x.narrow(2, begin, part.part.length).to(at::kFloat);
        };
        expect_same_bits(part_of_slice(part, sum), piece(all[0]).add(piece(all[1])), "sum");
        EXPECT_EQ(sum.storage().nbytes(), sum.nbytes()) << "a tensor of its own";
        EXPECT_EQ(sum.sizes(), slices[i][Saved::Key].sizes());
      };
      expect_sum(slices[i].key_gradient, keys);
      expect_sum(slices[i].value_gradient, values);
      begin += part.part.length;
    }
  }
}

}  // namespace
}  // namespace penstock::testing
