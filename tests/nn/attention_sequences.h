// SPDX-License-Identifier: Apache-2.0
// Attention of sequences in slices: the outputs of all slices and their gradients, by our kernels, against
// plain softmax attention over the whole sequence and its autograd.
#pragma once

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/merge.h"
#include "nn/reference_model.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {

namespace kernels = nn::kernels;
using kernels::AttentionKernel;
using kernels::AttentionPart;
using kernels::Mask;

// How one slice's queries attend to one slice's keys.
struct Attend {
  std::function<AttentionPart(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const kernels::Visible& visible)>
      forward;
  std::function<kernels::AttentionGradients(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, const kernels::Visible& visible)>
      backward;

  Attend() = default;
  Attend(AttentionKernel kernel)  // NOLINT: converts
      : forward([kernel](auto&&... of) { return kernels::attend(of..., kernel); }),
        backward([kernel](auto&&... of) { return kernels::attend_backward(of..., kernel); }) {}
};

struct Sizes {
  std::int64_t heads, kv_heads;
  std::vector<std::int64_t> slices;
  std::int64_t width = 6;  // of a head
};

inline std::vector<Sizes> all_sizes() {
  std::vector<Sizes> result;
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}, {4, 1}}) {
    for (const auto& slices : std::vector<std::vector<std::int64_t>>{
             {1}, {2}, {7}, {128}, {1, 1}, {3, 3, 1}, {2, 7, 1, 4}, {100, 28}}) {
      result.push_back({heads, kv_heads, slices});
    }
  }
  return result;
}

// Whole sequences [2, heads, s, width] and the slices of them.
struct Sequences {
  at::Tensor query, key, value, grad_output;
  std::vector<std::int64_t> begins, lengths;
  Attend attend;
  at::Tensor documents;  // [2, s]: of each token where its document begins; or undefined

  Sequences(const Sizes& sizes, at::ScalarType type, Attend attend)
      : lengths(sizes.slices), attend(std::move(attend)) {
    std::int64_t tokens = 0;
    for (const std::int64_t length : lengths) {
      begins.push_back(tokens);
      tokens += length;
    }
    query = random_tensor({2, sizes.heads, tokens, sizes.width}, type, 1);
    key = random_tensor({2, sizes.kv_heads, tokens, sizes.width}, type, 2);
    value = random_tensor({2, sizes.kv_heads, tokens, sizes.width}, type, 3);
    grad_output = random_tensor({2, sizes.heads, tokens, sizes.width}, type, 4);
  }
  // Cuts each sequence into documents of random lengths.
  void draw_documents(std::uint64_t longest) {
    const std::int64_t tokens = query.size(2);
    documents = at::empty({2, tokens}, at::kLong);
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      for (std::int64_t begin = 0, end = 0; begin < tokens; begin = end) {
        const auto drawn = static_cast<std::uint64_t>(sequence * tokens + begin);
        end = std::min(tokens, begin + 1 + static_cast<std::int64_t>(random_bits(longest, drawn) % longest));
        documents[sequence].narrow(0, begin, end - begin).fill_(begin);
      }
    }
  }
  // Of slice i's queries to slice j's keys.
  kernels::Visible visible(std::size_t i, std::size_t j) const {
    const Mask mask = j == i ? Mask::Causal : Mask::None;
    if (!documents.defined()) return mask;
    return {mask, documents.narrow(1, begins[i], lengths[i]), begins[j]};
  }
  at::Tensor slice(const at::Tensor& x, std::size_t i) const {
    return x.narrow(2, begins[i], lengths[i]).contiguous();
  }
  // Of slice i's queries and the keys of slice j <= i.
  AttentionPart part(std::size_t i, std::size_t j) const {
    return attend.forward(slice(query, i), slice(key, j), slice(value, j), visible(i, j));
  }
  kernels::AttentionGradients gradients(std::size_t i, std::size_t j, const AttentionPart& merged) const {
    return attend.backward(slice(grad_output, i), slice(query, i), slice(key, j), slice(value, j), merged,
                           visible(i, j));
  }
};

inline AttentionPart forward(const Sequences& all, std::size_t i) {
  const at::ScalarType type = all.query.scalar_type();
  AttentionPart total = all.part(i, i);
  total.output = total.output.to(kernels::accumulator_type(type));
  for (std::size_t j = i; j-- > 0;) kernels::merge(total, all.part(i, j));
  total.output = total.output.to(type);
  return total;
}

struct Gradients {
  std::vector<at::Tensor> query, key, value;
};

inline Gradients backward(const Sequences& all) {
  const std::size_t n = all.lengths.size();
  Gradients sums{std::vector<at::Tensor>(n), std::vector<at::Tensor>(n), std::vector<at::Tensor>(n)};
  for (std::size_t i = n; i-- > 0;) {
    const AttentionPart merged = forward(all, i);
    for (std::size_t j = i + 1; j-- > 0;) {
      const auto part = all.gradients(i, j, merged);
      kernels::accumulate_or_take(sums.query[i], part.query);
      kernels::accumulate_or_take(sums.key[j], part.key);
      kernels::accumulate_or_take(sums.value[j], part.value);
    }
  }
  return sums;
}

// longest_document 0: every sequence is one document.
inline void expect_equals_autograd(const Sizes& sizes, at::ScalarType type, const Attend& attend,
                                   double tolerance, std::uint64_t longest_document = 0) {
  Sequences all(sizes, type, attend);
  if (longest_document > 0) all.draw_documents(longest_document);
  const at::Tensor query = leaf(all.query), key = leaf(all.key), value = leaf(all.value);
  const at::Tensor wanted = reference::attention(query, key, value, all.documents);
  const auto exact = torch::autograd::grad({wanted}, {query, key, value}, {all.grad_output.to(at::kDouble)});
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < all.lengths.size(); ++i) outputs.push_back(forward(all, i).output);
  const Gradients got = backward(all);
  expect_near(at::cat(outputs, 2), wanted, tolerance, "output");
  expect_near(at::cat(got.query, 2), exact[0], tolerance, "query");
  expect_near(at::cat(got.key, 2), exact[1], tolerance, "key");
  expect_near(at::cat(got.value, 2), exact[2], tolerance, "value");
}

}  // namespace penstock::testing
