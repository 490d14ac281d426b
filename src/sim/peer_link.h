// SPDX-License-Identifier: Apache-2.0
// The messages from one device to another during a simulation.
#pragma once

#include <array>
#include <cstdint>

#include "schedule/timeline.h"
#include "sim/fifo.h"

namespace penstock::sim {

// Messages to one peer on one channel: either messages or posted receives are waiting, never both.
struct Mailbox {
  Fifo<schedule::Event> arrivals;  // from the start of the send to the arrival
  Fifo<std::uint32_t> waiting;     // receives, indices into the peer's ops
};

// The link to one peer, shared by the channels.
struct PeerLink {
  int peer = 0;
  Seconds free = 0;
  std::array<Mailbox, schedule::kChannels> mailboxes;
};

}  // namespace penstock::sim
