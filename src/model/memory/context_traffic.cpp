// SPDX-License-Identifier: Apache-2.0
#include "model/memory/context_traffic.h"

namespace penstock::model {

bool share_heads(const Shape& part, std::int64_t ranks) {
  return part.heads % ranks == 0 && (part.kv_heads % ranks == 0 || ranks % part.kv_heads == 0);
}

std::int64_t mixed_heads(const Shape& part, std::int64_t ranks) {
  for (std::int64_t heads = ranks / 2; heads > 1; --heads) {
    if (ranks % heads == 0 && share_heads(part, heads)) return heads;
  }
  return 1;
}

ContextSplit automatic_split(const Shape& part, std::int64_t ranks) {
  return {.ranks = ranks, .heads = share_heads(part, ranks) ? ranks : mixed_heads(part, ranks)};
}

ContextTraffic context_traffic(const Shape& part, const ContextSplit& split, double tokens, double element,
                               double accumulator) {
  const double queries = tokens * static_cast<double>(part.query_width());
  const double keys = 2 * tokens * static_cast<double>(part.kv_width());
  ContextTraffic traffic;
  if (split.heads > 1) {
    // Forward: queries, keys and values go, the output returns. Backward: its gradient goes, theirs return.
    const auto ranks = static_cast<double>(split.heads);
    const double travelling =
        2 * tokens * ranks * static_cast<double>(split.kept_heads(part.kv_heads) * part.head_dim());
    const double exchanged = (ranks - 1) / ranks * element * (2 * queries + travelling);
    traffic.forward.exchanged = traffic.backward.exchanged = exchanged;
    traffic.forward.exchanges = traffic.backward.exchanges = 4;
    traffic.again.exchanged = (ranks - 1) / ranks * element * 2 * queries;
    traffic.again.exchanges = 2;
  }
  if (split.token_ranks() == 1) return traffic;
  const auto others = static_cast<double>(split.token_ranks() - 1);
  if (split.gathers) {
    traffic.forward.gathered = others * element * keys;
    traffic.backward.gathered = others * accumulator * keys;
    traffic.forward.gathers = traffic.backward.gathers = 2;
  } else {
    // Forward: queries, partial outputs. Backward: queries, output gradients, partial query gradients.
    traffic.forward.gathered = others * (element + accumulator) * queries;
    traffic.forward.gathers = 2;
    traffic.again.gathered = traffic.forward.gathered;
    traffic.again.gathers = traffic.forward.gathers;
    traffic.backward.gathered = others * (2 * element + accumulator) * queries;
    traffic.backward.gathers = 3;
  }
  return traffic;
}

}  // namespace penstock::model
