// SPDX-License-Identifier: Apache-2.0
#include "run/tensor.h"

#include <string>

#include "base/error.h"
#include "base/refusal.h"
#include "run/replicas.h"

namespace penstock::run {
namespace {

using Count = std::int64_t;

bool fits_key_heads(Count shards, Count kv_heads) { return kv_heads % shards == 0 || shards % kv_heads == 0; }

bool fits(Count shards, const model::Shape& shape) {
  return shape.heads % shards == 0 && fits_key_heads(shards, shape.kv_heads) && shape.ffn >= shards;
}

// The nearest numbers of shards that fit the model and, where some do, also `ranks` that differ.
std::string shards_near(Count shards, Count ranks, const model::Shape& shape) {
  const auto of_tree = [&](Count other) { return fits(other, shape) && keeps_tree(other, ranks); };
  const std::string near = shards == ranks ? "none" : nearest_legal(shards, shape.heads, of_tree);
  if (near != "none") return near;
  return nearest_legal(shards, shape.heads, [&](Count other) { return fits(other, shape); });
}

// Errors name parallel.tp if it equals the number of shards, else numerics.tensor.
void check_shape(const model::Shape& shape, Count shards, Count ranks) {
  if (fits(shards, shape)) return;
  const std::string set = setting(shards == ranks ? "parallel.tp" : "numerics.tensor", shards),
                    near = "; use " + shards_near(shards, ranks, shape);
  require(shape.heads % shards == 0, set + " does not divide " + setting("model.heads", shape.heads) + near);
  require(fits_key_heads(shards, shape.kv_heads), set + " neither divides " +
                                                      setting("model.kv_heads", shape.kv_heads) +
                                                      " nor is a multiple of it" + near);
  require(shape.ffn >= shards, set + " is above " + setting("model.ffn", shape.ffn) +
                                   ", so that a part would have no column" + near);
}

// The nearest numbers of shards for these ranks, and of ranks for these shards.
std::string legal_near(Count shards, Count ranks, const model::Shape& shape) {
  const std::string others = nearest_legal(
      shards, shape.heads, [&](Count count) { return fits(count, shape) && keeps_tree(count, ranks); });
  const std::string fewer =
      nearest_legal(ranks, shards, [&](Count count) { return keeps_tree(shards, count); });
  return "; use " + (others == "none" ? std::string() : "numerics.tensor = " + others + ", or ") +
         "parallel.tp = " + fewer;
}

void check_tree(const model::Shape& shape, Count shards, Count ranks) {
  const std::string set = setting("numerics.tensor", shards);
  require(shards % ranks == 0,
          set + " is not a multiple of " + setting("parallel.tp", ranks) + legal_near(shards, ranks, shape));
  require(keeps_tree(shards, ranks),
          set + " is " + std::to_string(shards / ranks) + " times " + setting("parallel.tp", ranks) +
              "; parts of a product are added in a binary tree, so that must be a power of two" +
              legal_near(shards, ranks, shape));
}

}  // namespace

void require_shards(const model::Shape& shape, Count ranks) { check_shape(shape, ranks, ranks); }

void settle_tensor(Options& options) {
  const Count ranks = options.parallel.tp;
  Count& shards = options.numerics.tensor;
  if (shards == 0) shards = ranks;
  check_shape(options.model.shape, shards, ranks);
  check_tree(options.model.shape, shards, ranks);
}

}  // namespace penstock::run
