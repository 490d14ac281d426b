// SPDX-License-Identifier: Apache-2.0
#include "model/memory/exchange_traffic.h"

namespace penstock::model {

ExchangeTraffic exchange_traffic(const Shape& shape, Precision precision, Tokens queries, Tokens keys,
                                 bool backward) {
  const Bytes element = element_size(precision), accumulator = accumulator_size(precision);
  const Bytes query = queries * shape.query_width(), key_and_value = keys * 2 * shape.kv_width();
  const Bytes log_sum_exp = queries * shape.heads * accumulator;
  if (!backward) return {(key_and_value + query) * element, query * element + log_sum_exp};
  return {(key_and_value + 3 * query) * element + log_sum_exp, (key_and_value + query) * accumulator};
}

Bytes exchange_copies(const Shape& shape, Precision precision, std::int64_t sequences, Tokens part,
                      Tokens slice) {
  if (part == slice) return 0;
  const Bytes one = sequences * part * shape.kv_width() * element_size(precision);
  return (sequences * shape.kv_heads > 1 ? one : 0) + (sequences > 1 ? one : 0);
}

}  // namespace penstock::model
