// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/deadlock.h"
#include "sim/exchange_run.h"

namespace penstock::sim {

using schedule::Exchange;

void ExchangeRun::serve(int d) {
  Device& device = devices_[d];
  const std::uint32_t number = device.inbox.front();
  device.inbox.pop_front();
  end_wait(d);
  const Exchange& exchange = program_.exchanges[number];
  const Device& owner = devices_[exchange.owner];
  const Seconds took =
      seconds_of_layer(costs_.served_attention(d, exchange.owner, owner.next, op_of(exchange.owner)),
                       costs_.share_of_attention(exchange));
  timeline_.exchanges[d].push_back({.exchange = number, .start = time_, .end = time_ + took});
  device.working = true;
  happen({.time = time_ + took, .what = Happening::What::Served, .device = d, .value = number});
}

void ExchangeRun::send_reply(int d, std::uint32_t number) {
  const Exchange& exchange = program_.exchanges[number];
  const Seconds arrives = by_link(d, exchange.owner, exchange.reply / layers_of(exchange.owner));
  happen({.time = arrives, .what = Happening::What::Reply, .device = exchange.owner, .value = number});
}

void ExchangeRun::post_keys(int d) {
  Device& device = devices_[d];
  device.keys_arrive.clear();
  for (const std::uint32_t number : device.own) {
    const Exchange& exchange = program_.exchanges[number];
    device.keys_arrive.push_back(by_link(d, exchange.partner, exchange.request / layers_of(d)));
  }
}

void ExchangeRun::post_queries(int d) {
  Device& device = devices_[d];
  for (std::size_t i = 0; i < device.own.size(); ++i) {
    const int partner = program_.exchanges[device.own[i]].partner;
    const Seconds arrives = std::max(device.keys_arrive[i], by_link(d, partner, 0, false));
    happen({.time = arrives, .what = Happening::What::Request, .device = partner, .value = device.own[i]});
    ++device.replies;
  }
}

void ExchangeRun::begin_wait(int d) {
  if (devices_[d].waits_since == kPending) devices_[d].waits_since = time_;
}

void ExchangeRun::end_wait(int d) {
  Device& device = devices_[d];
  if (device.waits_since != kPending && time_ > device.waits_since) {
    timeline_.exchanges[d].push_back({device.own.front(), device.waits_since, time_, true});
  }
  device.waits_since = kPending;
}

Seconds ExchangeRun::by_link(int from, int to, Bytes bytes, bool with_bytes) {
  const schedule::Op message{.kind = schedule::OpKind::SendForward, .peer = to, .bytes = bytes};
  const Transfer transfer = costs_.transfer(from, kNoOp, message);
  if (!with_bytes) return time_ + transfer.latency;
  return transfer.arrival(time_, devices_[from].links.at(to, schedule::Channel::Control));
}

int ExchangeRun::layers_of(int owner) const {
  return simulated_layers(costs_.attention(owner, devices_[owner].next, op_of(owner)));
}

}  // namespace penstock::sim
