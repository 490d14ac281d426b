// SPDX-License-Identifier: Apache-2.0
// What travels when one device computes a part of another's attention (algorithms: "Attention context
// exchange").
#pragma once

#include "model/shape.h"

namespace penstock::model {

struct HelpTraffic {
  Bytes request = 0;
  Bytes reply = 0;
};

// One layer of one slice: `queries` and `keys` are tokens over all sequences. Forward: keys, values and
// queries go, outputs and log-sum-exps come back. Backward: outputs, log-sum-exps and output gradients go
// too, and the gradients of queries, keys and values come back in the accumulator type.
HelpTraffic help_traffic(const Shape& shape, Precision precision, Tokens queries, Tokens keys, bool backward);

// Bytes that the owner copies to send the keys and values of one layer: those of a part of a slice that does
// not lie in one piece, because of several sequences or, of keys, several heads.
Bytes help_copies(const Shape& shape, Precision precision, std::int64_t sequences, Tokens part, Tokens slice);

}  // namespace penstock::model
