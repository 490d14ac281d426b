// SPDX-License-Identifier: Apache-2.0
// Adds the sends and receives between stages on different devices.
#pragma once

#include <functional>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Bytes of a slice's hidden states; its gradient is as large. Empty: 0 bytes.
using TransferBytes = std::function<Bytes(int micro_batch, int slice)>;
inline Bytes bytes_of(const TransferBytes& bytes, const Op& op) {
  return bytes ? bytes(op.key.micro_batch, op.key.slice) : 0;
}

// Law: every F whose next stage lives elsewhere is followed by its SEND_F, every B or I whose stage before
// lives elsewhere by its SEND_B, and each is received once, before its consumer; per (source, channel) the
// receives are in the order of the sends, even where consumers come in another order.
//
// A receive is posted when at most `lead` compute ops stand between it and its consumer, its own slot
// included: lead 1 posts it as the compute op before the consumer begins. It waits for the op before that, so
// what is on its way into a device stays bounded. Where devices keep step (schedule/slot_grid.h) and have
// several chunks, an input may be sent long before its turn (interleaved slimpipe with groups of more than p
// slices): its receive is posted in the slot after the one it is sent in, and it waits on the consumer's
// side. A consumer waits for its receive, a send for its producer.
// Between stages of one device nothing is sent: the order of the compute lane is enough.
//
// The program must be legal (check); a message without producer or without consumer is left out.
Program add_transfers(const Program& program, const TransferBytes& bytes, int lead = 1);

}  // namespace penstock::schedule
