// SPDX-License-Identifier: Apache-2.0
// Kernels over rows read several elements at a time where memory allows it. Whether it does must not show.
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/row_dots.h"
#include "nn/kernels/sharded_softmax.h"
#include "nn/kernels/sum_parts.h"
#include "nn/kernels/swiglu.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;
using Tensors = std::vector<at::Tensor>;
constexpr std::int64_t kRows = 37, kWidth = 64, kHeads = 4;

// A kernel's inputs, made in order: each at the beginning of its memory, or one element behind it.
class Inputs {
 public:
  Inputs(at::ScalarType type, bool shifted) : type_(type), shifted_(shifted) {}

  at::Tensor make(at::IntArrayRef sizes, std::optional<at::ScalarType> type = {}) {
    return copy(random_tensor(sizes, type.value_or(type_), ++made_));
  }
  at::Tensor copy(const at::Tensor& values) const {
    if (!shifted_) return values.clone();
    at::Tensor room = at::empty({values.numel() + 1}, values.options());
    return room.narrow(0, 1, values.numel()).view(values.sizes()).copy_(values);
  }
  at::Tensor rows() { return make({kRows, kWidth}); }
  at::Tensor heads() { return make({1, kHeads, kRows, kWidth}); }
  at::Tensor sums(at::IntArrayRef sizes) { return make(sizes, accumulator()); }
  at::ScalarType accumulator() const { return kernels::accumulator_type(type_); }
  at::ScalarType type() const { return type_; }

 private:
  at::ScalarType type_;
  bool shifted_;
  std::uint64_t made_ = 0;
};

Tensors norm(Inputs& in) {
  at::Tensor sum, grad_weight = in.sums({kWidth});
  const at::Tensor x = in.rows(), weight = in.make({kWidth}), grad = in.rows(), residual = in.rows();
  const auto normed = kernels::rms_norm_of_sum(x, in.rows(), weight, 1e-5, sum);
  const at::Tensor back = kernels::rms_norm_backward(grad, x, weight, normed.scale, residual, grad_weight);
  return {normed.output, normed.scale, sum, back, grad_weight};
}

Tensors gate(Inputs& in) {
  const at::Tensor gate = in.rows(), up = in.rows(), grad = in.rows(), weights = in.sums({kRows});
  Tensors results{kernels::swiglu(gate, up), kernels::weighted_swiglu(gate, up, weights)};
  for (const bool has_product : {false, true}) {
    for (const bool weighted : {false, true}) {
      at::Tensor dy = in.copy(grad), dg = in.copy(gate), du = in.copy(up), product, of_weights;
      if (has_product) product = results[weighted ? 1 : 0];
      if (weighted) {
        of_weights = kernels::weighted_swiglu_backward(dy, dg, du, weights, product);
      } else {
        kernels::swiglu_backward(dy, dg, du, product);
      }
      results.insert(results.end(), {dg, du, product});
      if (weighted) results.push_back(of_weights);
    }
  }
  return results;
}

Tensors rotation(Inputs& in) {
  const model::Shape shape{.hidden = kHeads * kWidth, .heads = kHeads, .kv_heads = kHeads};
  const auto table = kernels::rotary_table(shape, kRows + 3, in.type());
  const at::Tensor x = in.make({1, kRows, kHeads * kWidth}), grad = in.heads(), wide = in.sums(grad.sizes());
  return {kernels::rope(x, table, kHeads, 3), kernels::rope_backward(grad, table, 3, in.type()),
          kernels::rope_backward(wide, table, 3, in.type())};
}

Tensors merging(Inputs& in) {
  kernels::AttentionPart total{in.sums({1, kHeads, kRows + 5, kWidth}), in.sums({1, kHeads, kRows + 5})};
  kernels::merge_at(total, 2, {in.heads(), in.sums({1, kHeads, kRows})});
  return {total.output, total.log_sum_exp};
}

Tensors sums(Inputs& in) {
  at::Tensor sum = in.sums({kRows, kWidth}), of_heads = in.sums({1, kHeads, kRows, kWidth});
  kernels::accumulate(sum, in.rows());
  kernels::accumulate(of_heads, in.make({1, kRows, kHeads, kWidth}).transpose(1, 2));
  const Tensors parts{in.rows(), in.rows(), in.rows()};
  const at::Tensor a = in.heads(), b = in.heads(), dots = kernels::row_dots(a, b);
  return {sum,
          of_heads,
          kernels::sum_parts(parts, in.type()),
          kernels::sum_parts(parts, in.accumulator()),
          dots,
          kernels::with_row_dots(a, dots)};
}

Tensors loss(Inputs& in) {
  at::Tensor logits = in.rows(), targets = random_ids(kRows, kWidth, 1);
  targets[5] = -1;
  const double alone = kernels::cross_entropy(logits, targets).value();
  const double loss = kernels::cross_entropy_with_gradient(logits, targets, 0.25).value();
  return {at::full({2}, alone).sub(loss), at::full({1}, loss), logits};
}

// The second of two shards of 100 columns, 50 and its padding.
Tensors sharded_loss(Inputs& in) {
  const mesh::Shard shard{.begin = 64, .count = 36, .held = kWidth};
  at::Tensor logits = in.rows(), targets = random_ids(kRows, 100, 1);
  targets[5] = -1;
  const at::Tensor own = kernels::shard_statistics(logits, targets, shard);
  const auto softmax = kernels::combine_statistics(at::stack({own, own}), targets, kWidth);
  kernels::shard_gradient(logits, targets, shard, softmax.scale, 0.25);
  return {own, softmax.scale, logits, at::full({}, softmax.loss.value(), at::kDouble)};
}

Tensors embedding(Inputs& in) {
  const at::Tensor table = in.make({50, kWidth}), tokens = random_ids(kRows, 50, 1);
  at::Tensor grad_table = in.sums({50, kWidth}), held = in.rows(), held_grad = in.sums({20, kWidth});
  const mesh::Shard shard{.begin = 10, .count = 20, .held = 20};
  kernels::accumulate_held_embedding_gradient(grad_table, mesh::padded_block(50, 1, 0), in.rows(), tokens);
  kernels::embed_held(held, table.narrow(0, 10, 20), shard, tokens);
  kernels::accumulate_held_embedding_gradient(held_grad, shard, in.rows(), tokens);
  return {kernels::embed(table, tokens), grad_table, held, held_grad};
}

TEST(RowKernels, GiveTheSameWhereverRowsBegin) {
  const std::map<std::string, std::function<Tensors(Inputs&)>> all{
      {"norm", norm}, {"gate", gate}, {"rotation", rotation},         {"merging", merging},
      {"sums", sums}, {"loss", loss}, {"sharded loss", sharded_loss}, {"embedding", embedding}};
  for (const auto& [name, kernel] : all) {
    for (const at::ScalarType type : kComputeTypes) {
      Inputs plain(type, false), shifted(type, true);
      const Tensors wanted = kernel(plain), got = kernel(shifted);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string what = name + " " + std::to_string(i) + ", " + at::toString(type);
        const double computed = tolerance_of(plain.accumulator());  // losses are kept in f64
        expect_near(got[i], wanted[i], std::max(tolerance_of(wanted[i].scalar_type()), computed), what);
      }
    }
  }
}

TEST(RowKernels, HaveNoProductsWithRowsOfVanishingNumbers) {
  const at::Tensor dots = at::full({1, 1, 2, 1}, 3.0, at::kFloat);
  at::Tensor rows = at::full({1, 1, 2, kWidth}, 1e-40, at::kFloat);
  rows.select(2, 1).narrow(2, 0, kWidth / 2).zero_();
  const at::Tensor stand_ins = kernels::with_row_dots(rows, dots);
  EXPECT_TRUE(at::equal(stand_ins, at::zeros_like(rows)));
}

}  // namespace
}  // namespace penstock::testing
