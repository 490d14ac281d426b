// SPDX-License-Identifier: Apache-2.0
// Adds the sends and receives between stages on different devices.
#pragma once

#include <functional>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Bytes of a slice's hidden states; the gradient has the same size. Empty: 0 bytes.
using TransferBytes = std::function<Bytes(int micro_batch, int slice)>;
inline Bytes bytes_of(const TransferBytes& bytes, const Op& op) {
  return bytes ? bytes(op.key.micro_batch, op.key.slice) : 0;
}

// Law: every F whose next stage lives on another device is followed by its SEND_F, every B or I whose
// previous stage does by its SEND_B, and each message is received once, before its consumer. Per (source,
// channel) the receives are in the order of the sends, even if the consumers are not.
//
// A receive is posted `lead` actions before its consumer: lead 1 posts it just before the action that
// precedes the consumer. It waits for the action before that place, which bounds the bytes in flight into a
// device. If devices run in lock step (schedule/slot_grid.h) and have several chunks, an input may be sent
// long before its turn (interleaved slimpipe with groups of more than p slices): its receive is posted in
// the slot after the send's slot, and the input waits on the consumer's device. A consumer waits for its
// receive, a send for its producer.
// Stages of one device exchange no messages: the order of the compute lane is enough.
//
// The program must be legal (check); a message without a producer or a consumer is left out.
Program add_transfers(const Program& program, const TransferBytes& bytes, int lead = 1);

}  // namespace penstock::schedule
