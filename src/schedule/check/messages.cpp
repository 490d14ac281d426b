// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/messages.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace penstock::schedule {
namespace {

// One direction of a channel.
struct Queue {
  std::vector<Cell> sends;
  std::vector<Cell> receives;
};
using Queues = std::map<std::tuple<int, int, Channel>, Queue>;

Queues messages_of(const OpTable& table) {
  Queues queues;
  for (int device = 0; device < table.program().device_count(); ++device) {
    Cell cell = table.units().row_begin(device);
    for (const Op& op : table.program().devices[device].ops) {
      const bool sends = is_send(op.kind);
      if (sends || is_receive(op.kind)) {
        const auto [from, to] = sends ? std::pair(device, op.peer) : std::pair(op.peer, device);
        Queue& queue = queues[{from, to, channel_of(op.kind)}];
        (sends ? queue.sends : queue.receives).push_back(cell);
      }
      ++cell;
    }
  }
  return queues;
}

// Returns whether the receive matches the content of the send.
bool meets(const Op& send, const Op& receive) {
  if (send.bytes != receive.bytes) return false;
  if (is_embedding_transfer(send.kind)) {
    const bool forward = send.kind == OpKind::SendEmbedding;
    return receive.kind == (forward ? OpKind::ReceiveEmbedding : OpKind::ReceiveEmbeddingGradient) &&
           receive.key.at_stage(0) == send.key.at_stage(0);
  }
  const int consumer = send.kind == OpKind::SendForward ? send.key.stage + 1 : send.key.stage - 1;
  return receive.key == send.key.at_stage(consumer);
}

std::string with_bytes_and_place(const OpTable& table, Cell cell) {
  return table.token(table.op(cell)) + " of " + std::to_string(table.op(cell).bytes) + " bytes (" +
         table.where(cell) + ')';
}

void tell_disagreement(const OpTable& table, Cell send, Cell receive, std::size_t nth, Findings& findings) {
  const std::string bytes = " of " + std::to_string(table.op(receive).bytes) + " bytes";
  findings.add(table.located(Rule::Unmatched, receive,
                             bytes + " meets " + with_bytes_and_place(table, send) + ": both are message " +
                                 std::to_string(nth) + " of their channel"));
}

void tell_leftover(const OpTable& table, Cell cell, Findings& findings) {
  const Op& op = table.op(cell);
  const std::string other = is_send(op.kind) ? "receive" : "send";
  findings.add(table.located(Rule::Unmatched, cell,
                             " has no " + other + " on device " + std::to_string(op.peer) + " to meet"));
}

}  // namespace

Partners match_messages(const OpTable& table, Findings& findings) {
  Partners partners(table.units().cells(), kNoCell);
  for (const auto& [key, queue] : messages_of(table)) {
    const std::size_t pairs = std::min(queue.sends.size(), queue.receives.size());
    std::size_t k = 0;
    for (; k < pairs && meets(table.op(queue.sends[k]), table.op(queue.receives[k])); ++k) {
      partners[queue.sends[k]] = queue.receives[k];
      partners[queue.receives[k]] = queue.sends[k];
    }
    if (findings.full()) continue;
    if (k < pairs) {
      tell_disagreement(table, queue.sends[k], queue.receives[k], k, findings);
    } else if (k < queue.sends.size() || k < queue.receives.size()) {
      tell_leftover(table, k < queue.sends.size() ? queue.sends[k] : queue.receives[k], findings);
    }
  }
  return partners;
}

}  // namespace penstock::schedule
