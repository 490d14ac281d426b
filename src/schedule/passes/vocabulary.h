// SPDX-License-Identifier: Apache-2.0
// Vocabulary parallelism: shards the embedding and the output matrix over all devices of the pipeline
// (docs/slimpipe.md, "The vocabulary over all devices"; SlimPipe, SC'25).
#pragma once

#include "schedule/passes/transfers.h"
#include "schedule/program.h"

namespace penstock::schedule {

struct VocabularySharding {
  bool parallel = false;
  // Bytes that one device moves per LOSS: the slice's hidden states one way, their gradients the other.
  TransferBytes visit_bytes;
  // Expected bytes of the rows that one device embeds of a slice: the true number of tokens in its shard is
  // known only at run time.
  TransferBytes part_bytes;
};

// Laws:
// - Output layer: for every item f of the last stage (its F is the f-th F of the last device), all devices
//   run a LOSS of the same key in slot f + p - 1, after that slot's F and before its B; on device r that is
//   p - 1 - r items after its own item f. Earlier would deadlock or open bubbles. All devices have their
//   LOSSes in the same order.
// - Embedding: for each F of stage 0, every other device r sends the embedded rows of its shard one slot
//   ahead (SEND_EMBED on r, RECV_EMBED on the device of stage 0, for which the F waits).
// - Its gradient: after the B of stage 0 comes one SEND_EMBED_GRAD per r; r has the RECV_EMBED_GRAD in the
//   same slot, and after the next slot's B an EMBED_GRAD, which adds the gradient.
// - The rest of the program is unchanged.
//
// The program must be compute-only and legal. Throws InputError, with what would work, if it has no slot grid
// (schedule/slot_grid.h).
Program add_vocabulary(const Program& program, const VocabularySharding& sharding);

}  // namespace penstock::schedule
