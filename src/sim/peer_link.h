// SPDX-License-Identifier: Apache-2.0
// What one device has sent another while a program is simulated.
#pragma once

#include <array>
#include <cstdint>

#include "schedule/timeline.h"
#include "sim/fifo.h"

namespace penstock::sim {

// Messages to one peer on one channel: either some have arrived or some receives wait, never both.
struct Mailbox {
  Fifo<schedule::Event> arrivals;  // each from its send to its arrival
  Fifo<std::uint32_t> waiting;     // ops of the peer
};

// To one peer, shared by the channels.
struct PeerLink {
  int peer = 0;
  Seconds free = 0;
  std::array<Mailbox, schedule::kChannels> mailboxes;
};

}  // namespace penstock::sim
