// SPDX-License-Identifier: Apache-2.0
// Shared by the forward and the backward of tiled attention: tile sizes, and access to tensors by head.
#pragma once

#include <cmath>
#include <memory>
#include <new>

#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/exponential.h"
#include "nn/kernels/cpu/tile_products.h"
#include "nn/kernels/first_keys.h"

namespace penstock::nn::kernels {

inline constexpr double kLogOfE = 1.44269504088896341;  // log2(e)
inline constexpr std::int64_t kQueries = 64;            // per tile
inline constexpr std::int64_t kKeys = 256;              // per tile

inline constexpr std::int64_t kPanel = 32;  // queries or columns of our own products (avx512.h)

// Rows allocated for a packed tile: rounds up to whole panels.
inline std::int64_t room_of(std::int64_t rows) { return (rows + kPanel - 1) / kPanel * kPanel; }

// One tensor's rows of d elements by sequence, head and token.
template <class Element>
struct Heads {
  Element* data;
  at::IntArrayRef strides;

  Element* at(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
    return data + sequence * strides[0] + head * strides[1] + token * strides[2];
  }
  std::int64_t stride() const { return strides[2]; }  // from token to token
};

template <class Element>
Heads<const Element> read_heads(const at::Tensor& x) {
  return {x.const_data_ptr<Element>(), x.strides()};
}

struct Extent {
  std::int64_t sequences, heads, kv_heads, queries, keys, width;

  Extent(const at::Tensor& query, const at::Tensor& key)
      : sequences(query.size(0)),
        heads(query.size(1)),
        kv_heads(key.size(1)),
        queries(query.size(2)),
        keys(key.size(2)),
        width(query.size(3)) {}

  std::int64_t group() const { return heads / kv_heads; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(width)); }
  float scale_of_two() const {
    return static_cast<float>(kLogOfE / std::sqrt(static_cast<double>(width)));
  }  // for scores in base 2
  std::int64_t query_tiles() const { return (queries + kQueries - 1) / kQueries; }
  std::int64_t key_tiles() const { return (keys + kKeys - 1) / kKeys; }
  std::int64_t queries_of(std::int64_t tile) const { return std::min(kQueries, queries - tile * kQueries); }
  std::int64_t keys_of(std::int64_t tile) const { return std::min(kKeys, keys - tile * kKeys); }
  std::int64_t most_queries() const { return std::min(queries, kQueries); }
  std::int64_t most_keys() const { return std::min(keys, kKeys); }
};

// Number of keys, of `count` from `first` on, that the query at `position` sees.
inline std::int64_t seen_keys(Mask mask, std::int64_t position, std::int64_t first, std::int64_t count) {
  return mask == Mask::None ? count : std::clamp<std::int64_t>(position + 1 - first, 0, count);
}

// Scratch memory of a task, aligned to cache lines: vectors and tiles that cross lines are slow.
inline constexpr std::align_val_t kLine{64};
struct FreeLines {
  void operator()(void* memory) const { ::operator delete(memory, kLine); }
};
template <class Element>
using Scratch = std::unique_ptr<Element[], FreeLines>;

// Not initialised.
template <class Element>
Scratch<Element> scratch(std::int64_t elements) {
  static_assert(std::is_trivially_destructible_v<Element>);
  return Scratch<Element>(
      static_cast<Element*>(::operator new(static_cast<std::size_t>(elements) * sizeof(Element), kLine)));
}

}  // namespace penstock::nn::kernels
