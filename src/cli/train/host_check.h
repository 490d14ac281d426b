// SPDX-License-Identifier: Apache-2.0
// Whether the memory that a run is predicted to take is free on this host, and on its cards.
#pragma once

#include "profile/host_memory.h"
#include "run/run.h"

namespace penstock::cli {

// Of the tensors (but for a card's), the records offloaded to host memory and the copies of states of the
// `ranks` devices that take the most, and of the copies that they keep for other hosts' ranks.
Bytes bytes_on_host(const run::Run& run, int ranks);

// What a start may take of this host's memory that is given back `copies` bytes of what is in use.
Bytes free_on_host(const profile::HostMemory& memory, Bytes copies);

// Throws NoAnswer when these ranks need more than `free` bytes, with the settings that would fit here and on
// the card that `on_card` of them share (0: none); does nothing under train.memory_check = "off".
void require_host_memory(const run::Run& run, int ranks, Bytes free, int on_card = 0);

// The same of the memory of this rank's card and the tensors of the `ranks` that share it; does nothing on
// the CPU.
void require_card_memory(const run::Run& run, int ranks);

// The same of each card and its ranks, where all are threads of this process and take its cards by turns.
void require_card_of_threads(const run::Run& run);

// Of the tensors of all ranks that take this card, when so many cards are taken by turns.
Bytes bytes_on_card(const run::Run& run, int card, int cards);

}  // namespace penstock::cli
