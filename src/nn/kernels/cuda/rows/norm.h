// SPDX-License-Identifier: Apache-2.0
// Root-mean-square normalisation, row by row (kernels/rms_norm.h has the formulas).
#pragma once

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// Row n: its norm; with a branch, the norm of x + branch, which is also stored in `sum`.
template <class Element, int kWidth>
struct NormRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;

  const Element* x;
  const Element* branch;  // or null
  const Element* weight;
  Element* sum;  // null without a branch
  Element* output;
  Number* scale;
  std::int64_t h;
  Number epsilon;

  std::int64_t scratch_bytes() const { return 0; }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t row) const {
    const std::int64_t first = row * h, packs = h / kWidth;
    if (branch) {
      lanes.each(packs, [&](std::int64_t k) {
        const auto a = load<kWidth>(x + first, k), b = load<kWidth>(branch + first, k);
        store(sum + first, k, packed<Element, kWidth>([&](int i) { return a[i] + b[i]; }));
      });
    }
    // No wait: each lane reads only what it wrote itself.
    const Element* of = (branch ? sum : x) + first;
    const Number squares = lanes.template sum<Number>(packs, [&](std::int64_t k) {
      const auto v = load<kWidth>(of, k);
      Number total = 0;
      for (int i = 0; i < kWidth; ++i) total += v[i] * v[i];
      return total;
    });
    const Number factor = Number(1) / std::sqrt(squares / Number(h) + epsilon);
    lanes.each(packs, [&](std::int64_t k) {
      const auto v = load<kWidth>(of, k), w = load<kWidth>(weight, k);
      store(output + first, k, packed<Element, kWidth>([&](int i) { return w[i] * (v[i] * factor); }));
    });
    lanes.once([&] { scale[row] = factor; });
  }
};

// Block b, rows [kRows·b, ...) of x: their gradients, and the sum of their parts of the weight's gradient, in
// weight_sums[b]. kRows is a constant, so that bits depend on the sizes alone.
template <class Element, int kWidth>
struct NormBackwardRows {
  using Number = Accumulator<Element>;
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kRows = 8;

  const Element* grad_output;
  const Element* x;
  const Element* weight;
  const Element* residual;  // or null
  const Number* scale;
  Element* grad_input;
  Number* weight_sums;  // [blocks, h]
  std::int64_t rows, h;

  std::int64_t scratch_bytes() const { return h * static_cast<std::int64_t>(sizeof(Number)); }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t block) const {
    const std::int64_t packs = h / kWidth, begin = block * kRows;
    const std::int64_t end = begin + kRows < rows ? begin + kRows : rows;
    auto* sums = lanes.template scratch<Number>();  // [kWidth, packs]: lanes access adjacent elements
    lanes.each(packs, [&](std::int64_t k) {
      for (int i = 0; i < kWidth; ++i) sums[i * packs + k] = 0;
    });
    for (std::int64_t row = begin; row < end; ++row) one_row(lanes, row, end, sums);
    lanes.each(packs, [&](std::int64_t k) {
      store(weight_sums + block * h, k, packed<Number, kWidth>([&](int i) { return sums[i * packs + k]; }));
    });
  }

 private:
  // dx = r·(w·dy) − x·r³/h·Σ(w·dy·x) + residual. Each lane adds only to the sums of its own columns.
  PENSTOCK_BOTH void one_row(const Lanes<kLanes>& lanes, std::int64_t row, std::int64_t end,
                             Number* sums) const {
    const std::int64_t first = row * h, packs = h / kWidth;
    const Number r = scale[row];
    const Number dot = lanes.template sum<Number>(packs, [&](std::int64_t k) {
      const auto d = load<kWidth>(grad_output + first, k), v = load<kWidth>(x + first, k);
      const auto w = load<kWidth>(weight, k);
      if (residual) prefetch<kWidth>(residual + first, k);
      Number total = 0;
      for (int i = 0; i < kWidth; ++i) {
        const Number product = d[i] * v[i];
        sums[i * packs + k] += r * product;
        total += w[i] * product;
      }
      return total;
    });
    const Number pull = dot * r * r * r / Number(h);
    lanes.each(packs, [&](std::int64_t k) {
      const auto d = load<kWidth>(grad_output + first, k), v = load<kWidth>(x + first, k);
      const auto w = load<kWidth>(weight, k);
      if (row + 1 < end) {
        prefetch<kWidth>(grad_output + first + h, k);
        prefetch<kWidth>(x + first + h, k);
      }
      Pack<Element, kWidth> rest{};
      if (residual) rest = load<kWidth>(residual + first, k);
      store(grad_input + first, k,
            packed<Element, kWidth>([&](int i) { return r * w[i] * d[i] - pull * v[i] + rest[i]; }));
    });
  }
};

// Row c: columns [c·kColumns, ...) of `sums` += the same columns of all blocks. Each of kParts partial sums
// adds every kParts-th block in order; then the partial sums are added in order.
template <class Number>
struct AddBlockColumns {
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kColumns = 8, kParts = kBlock / kColumns;

  const Number* blocks;  // [count, h]
  Number* sums;          // [h]
  std::int64_t count, h;

  std::int64_t scratch_bytes() const { return kBlock * static_cast<std::int64_t>(sizeof(Number)); }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t group) const {
    const std::int64_t first = group * kColumns;
    auto* of_parts = lanes.template scratch<Number>();  // [kParts, kColumns]
    lanes.each(kBlock, [&](std::int64_t i) {
      const std::int64_t column = first + i % kColumns;
      Number sum = 0;
      for (std::int64_t block = i / kColumns; column < h && block < count; block += kParts)
        sum += blocks[block * h + column];
      of_parts[i] = sum;
    });
    lanes.wait();
    lanes.each(kColumns < h - first ? kColumns : h - first, [&](std::int64_t i) {
      Number sum = sums[first + i];
      for (std::int64_t part = 0; part < kParts; ++part) sum += of_parts[part * kColumns + i];
      sums[first + i] = sum;
    });
  }
};

}  // namespace penstock::nn::kernels::cuda
