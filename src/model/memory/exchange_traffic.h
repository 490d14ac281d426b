// SPDX-License-Identifier: Apache-2.0
// Traffic if one device computes part of another's attention (docs/slimpipe.md, "Context exchange").
#pragma once

#include "model/shape.h"

namespace penstock::model {

struct ExchangeTraffic {
  Bytes request = 0;
  Bytes reply = 0;
};

// For one layer of one slice; `queries` and `keys` are tokens over all sequences. Forward: sends keys, values
// and queries, returns outputs and log-sum-exps. Backward: also sends outputs, log-sum-exps and output
// gradients; returns the gradients of queries, keys and values in the accumulator type.
ExchangeTraffic exchange_traffic(const Shape& shape, Precision precision, Tokens queries, Tokens keys,
                                 bool backward);

// Bytes that the owner copies to send one layer's keys and values: those of a partial slice that are not
// contiguous because of several sequences or (keys only) several heads.
Bytes exchange_copies(const Shape& shape, Precision precision, std::int64_t sequences, Tokens part,
                      Tokens slice);

}  // namespace penstock::model
