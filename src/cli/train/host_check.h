// SPDX-License-Identifier: Apache-2.0
// Checks that a run's predicted memory is free on this host and on its cards.
#pragma once

#include "profile/host_memory.h"
#include "run/run.h"

namespace penstock::cli {

// Host memory of the `ranks` ranks that need most: tensors (unless on a card), offloaded records, checkpoint
// staging and copies of their states; and the copies that they keep for other hosts' ranks.
Bytes bytes_on_host(const run::Run& run, int ranks);

// Host memory available to a start that releases `copies` bytes of the memory in use.
Bytes free_on_host(const profile::HostMemory& memory, Bytes copies);

// Throws NoAnswer if these ranks need more than `free` bytes, with settings that would fit here and on the
// card that `on_card` of them share (0: no card). Does nothing under train.memory_check = "off".
void require_host_memory(const run::Run& run, int ranks, Bytes free, int on_card = 0);

// The same for the memory of this rank's card and the tensors of the `ranks` ranks that share it. Does
// nothing on the CPU.
void require_card_memory(const run::Run& run, int ranks);

// The same for each card and its ranks, if all ranks are threads of this process, on its cards round-robin.
void require_card_of_threads(const run::Run& run);

// Bytes of the tensors of all ranks on `card`, if ranks take `cards` cards round-robin.
Bytes bytes_on_card(const run::Run& run, int card, int cards);

}  // namespace penstock::cli
