// SPDX-License-Identifier: Apache-2.0
#include "sim/messages.h"

#include "base/error.h"
#include "sim/channel_table.h"

namespace penstock::sim {
namespace {

// Start times of the messages of one source on one channel, and how many have been received.
struct Flow {
  std::vector<Seconds> sent;
  std::size_t received = 0;
};

}  // namespace

std::vector<std::vector<Seconds>> departures(const schedule::Program& program,
                                             const schedule::Timeline& timeline) {
  std::vector<ChannelTable<Flow>> inbox(program.devices.size());
  for (int d = 0; d < program.device_count(); ++d) {
    const std::vector<schedule::Op>& ops = program.devices[d].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!is_send(ops[i].kind)) continue;
      inbox[ops[i].peer].at(d, channel_of(ops[i].kind)).sent.push_back(timeline.devices[d][i].start);
    }
  }
  std::vector<std::vector<Seconds>> result(program.devices.size());
  for (int d = 0; d < program.device_count(); ++d) {
    for (const schedule::Op& op : program.devices[d].ops) {
      if (!is_receive(op.kind)) continue;
      Flow& flow = inbox[d].at(op.peer, channel_of(op.kind));
      PENSTOCK_CHECK(flow.received < flow.sent.size(), "a program that ran to its end sent every message");
      result[d].push_back(flow.sent[flow.received++]);
    }
  }
  return result;
}

}  // namespace penstock::sim
