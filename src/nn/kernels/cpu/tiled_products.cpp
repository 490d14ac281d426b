// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/tiled_products.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "nn/kernels/cpu/tile_products.h"

namespace penstock::nn::kernels {
namespace {

using Element = c10::BFloat16;

// A tile of the gradient is kRows by kColumns; it and kTokens tokens of both sides fit in the L2 cache.
constexpr std::int64_t kRows = 64, kColumns = 256, kTokens = 1024;

std::int64_t blocks(std::int64_t total, std::int64_t size) { return (total + size - 1) / size; }
std::int64_t length(std::int64_t total, std::int64_t block, std::int64_t size) {
  return std::min(size, total - block * size);
}

// Panels of one side of the product: kTokens tokens of `width` columns each.
struct Panels {
  std::int64_t tokens, columns, width;
  at::Tensor packed;

  Panels(const at::Tensor& rows, std::int64_t width)
      : tokens(rows.size(0)),
        columns(rows.size(1)),
        width(width),
        packed(
            at::empty({blocks(tokens, kTokens) * blocks(columns, width), kTokens * width}, rows.options())) {}

  std::int64_t count() const { return packed.size(0); }
  std::int64_t token_blocks() const { return blocks(tokens, kTokens); }
  // Panels of one block of columns are adjacent.
  Element* at(std::int64_t block, std::int64_t token_block) const {
    return packed.mutable_data_ptr<Element>() + (block * token_blocks() + token_block) * kTokens * width;
  }
  std::int64_t tokens_of(std::int64_t token_block) const { return length(tokens, token_block, kTokens); }
  std::int64_t columns_of(std::int64_t block) const { return length(columns, block, width); }
};

template <class Pack>
void fill(const Panels& panels, const at::Tensor& rows, Pack&& pack) {
  const Element* data = rows.const_data_ptr<Element>();
  at::parallel_for(0, panels.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = i / panels.token_blocks(), token_block = i % panels.token_blocks();
      pack(data + token_block * kTokens * panels.columns + block * panels.width, panels.columns,
           panels.tokens_of(token_block), panels.columns_of(block), panels.at(block, token_block));
    }
  });
}

template <class Number>
bool multiplies() {
  try {
    const std::vector<Number> a(4, Number(1)), b(4, Number(1));
    std::vector<float> c(4);
    TileProduct<Number>{2, 2, 2, 2, 2, 2, false}(a.data(), b.data(), c.data());
    release_products<Number>();
    return c == std::vector<float>(4, 2.0f);
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

bool has_tile_products(at::ScalarType type) {
  static const bool narrow = multiplies<c10::BFloat16>(), single = multiplies<float>();
  return (type == at::kBFloat16 && narrow) || (type == at::kFloat && single);
}

void accumulate_by_tiles(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x) {
  const Panels left(grad_output, kRows), right(x, kColumns);
  fill(left, grad_output,
       [](const Element* rows, std::int64_t stride, std::int64_t tokens, std::int64_t columns, Element* to) {
         transpose_rows(rows, stride, tokens, columns, padded<Element>(tokens), to);
       });
  fill(right, x,
       [](const Element* rows, std::int64_t stride, std::int64_t tokens, std::int64_t columns, Element* to) {
         pack_rows(rows, stride, tokens, columns, to);
       });
  float* sums = grad.data_ptr<float>();
  const std::int64_t in = x.size(1), row_blocks = blocks(grad_output.size(1), kRows);
  at::parallel_for(0, row_blocks * blocks(in, kColumns), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t row = task % row_blocks, column = task / row_blocks;
      for (std::int64_t block = 0; block < left.token_blocks(); ++block) {
        const std::int64_t tokens = padded<Element>(left.tokens_of(block));
        TileProduct<Element>{left.columns_of(row),
                             right.columns_of(column),
                             tokens,
                             tokens,
                             right.columns_of(column),
                             in,
                             true}(left.at(row, block), right.at(column, block),
                                   sums + row * kRows * in + column * kColumns);
      }
    }
    release_products<Element>();
  });
}

}  // namespace penstock::nn::kernels
