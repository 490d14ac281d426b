// SPDX-License-Identifier: Apache-2.0
// Vocabulary parallelism: the embedding and the output matrix are sharded over all devices of the pipeline
// (docs/slimpipe.md, "The vocabulary over all devices"; SlimPipe, SC'25).
#pragma once

#include "schedule/passes/transfers.h"
#include "schedule/program.h"

namespace penstock::schedule {

struct VocabularySharding {
  bool parallel = false;
  // What one device moves in a visit: the slice's hidden states one way, their gradients the other.
  TransferBytes visit_bytes;
  // Rows that one device embeds of a slice, expected: how many of the tokens are in its shard is known only
  // when they are.
  TransferBytes part_bytes;
};

// Law: every item f of the last stage (its F is the f-th F of the last device) is visited by all devices: a
// LOSS of the same key on each, in slot f + p - 1, after that slot's F and before its B; on device r that is
// p - 1 - r items after its own item f. (Any earlier deadlocks or opens bubbles.) All devices have their
// visits in the same order. Every other device r sends the rows of the first stage's F that lie in its
// shard: SEND_EMBED on r and RECV_EMBED on the device of stage 0, one slot ahead, for which the F waits.
// After that stage's B come a SEND_EMBED_GRAD for each r, and on r RECV_EMBED_GRAD in the same slot and
// EMBED_GRAD, which adds it, after the next slot's B. The rest of the program is as before.
//
// The program is compute-only and legal. Throws InputError when it has no slot grid (schedule/slot_grid.h),
// naming what would work.
Program add_vocabulary(const Program& program, const VocabularySharding& sharding);

}  // namespace penstock::schedule
