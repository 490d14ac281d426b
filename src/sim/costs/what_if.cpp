// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/what_if.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "schedule/program_words.h"

namespace penstock::sim {
namespace {

using schedule::Op;

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
  throw InputError("what-if \"" + printable(text) + "\": expected " + expected);
}

int device_number(std::string_view text, std::string_view number, int devices) {
  const std::optional<std::int64_t> value = parse_integer(number);
  if (value && *value >= 0 && *value < devices) return static_cast<int>(*value);
  refuse(text, "a device from 0 to " + std::to_string(devices - 1) + ", got \"" + printable(number) + "\"");
}

schedule::OpKind action_kind(std::string_view text, std::string_view word) {
  for (const schedule::OpWord& known : schedule::kOpWords) {
    if (is_action(known.kind) && known.text == word) return known.kind;
  }
  refuse(text, "a kind F, B, I or W, got \"" + printable(word) + "\"");
}

bool has_kind(const schedule::Program& program, schedule::OpKind kind) {
  return std::ranges::any_of(program.devices, [&](const schedule::DeviceProgram& device) {
    return std::ranges::any_of(device.ops, [&](const Op& op) { return op.kind == kind; });
  });
}

bool has_link(const schedule::Program& program, int from, int to) {
  const auto& ops = program.devices[static_cast<std::size_t>(from)].ops;
  if (std::ranges::any_of(ops, [&](const Op& op) { return is_send(op.kind) && op.peer == to; })) return true;
  // Requests go one way, replies the other.
  return std::ranges::any_of(program.exchanges, [&](const schedule::Exchange& exchange) {
    return (exchange.owner == from && exchange.partner == to) ||
           (exchange.owner == to && exchange.partner == from);
  });
}

std::string changed_thing(const Override& change) {
  const std::string device = std::to_string(change.device);
  if (change.what == Override::What::Device) return "device:" + device;
  if (change.what == Override::What::Link) return "link:" + device + "-" + std::to_string(change.peer);
  return "kind:" + std::string(schedule::word_of(change.kind).text);
}

}  // namespace

void check_overrides(const schedule::Program& program, std::span<const Override> overrides) {
  std::set<std::string> known;
  for (const Override& change : overrides) {
    const std::string text = changed_thing(change);
    const std::string what_if = "what-if \"" + text + "\": ";
    if (!known.insert(text).second) throw InputError(what_if + "given twice; keep one");
    if (change.what == Override::What::Kind && !has_kind(program, change.kind))
      throw InputError(what_if + program.name + " has no " +
                       std::string(schedule::word_of(change.kind).text) + " that could take longer");
    if (change.what == Override::What::Link && !has_link(program, change.device, change.peer))
      throw InputError(what_if + "device " + std::to_string(change.device) + " sends nothing to device " +
                       std::to_string(change.peer) + " in " + program.name);
  }
}

Override parse_override(std::string_view text, int devices) {
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.find('=');
  const bool whole = colon != std::string_view::npos && equals != std::string_view::npos && colon < equals;
  if (!whole) refuse(text, "device:N=FACTOR, link:FROM-TO=FACTOR or kind:K=FACTOR");
  const std::string_view what = text.substr(0, colon);
  const std::string_view name = text.substr(colon + 1, equals - colon - 1);
  const std::optional<double> factor = parse_number(text.substr(equals + 1));
  if (!factor || !(*factor >= 0 && *factor <= kMostFactor))
    refuse(text, "a factor from 0 to 1e12 after \"=\"");
  if (what == "device") {
    return {.what = Override::What::Device, .device = device_number(text, name, devices), .factor = *factor};
  }
  if (what == "kind")
    return {.what = Override::What::Kind, .kind = action_kind(text, name), .factor = *factor};
  if (what != "link") refuse(text, "device, link or kind before \":\"");
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) refuse(text, "a link as FROM-TO");
  return {.what = Override::What::Link,
          .device = device_number(text, name.substr(0, dash), devices),
          .peer = device_number(text, name.substr(dash + 1), devices),
          .factor = *factor};
}

WhatIf::WhatIf(const Costs& base, std::span<const Override> overrides, int devices)
    : ForwardedCosts(base), device_factor_(static_cast<std::size_t>(devices), 1.0) {
  for (const Override& change : overrides) {
    if (change.what == Override::What::Device) device_factor_[change.device] *= change.factor;
    if (change.what == Override::What::Kind)
      kind_factor_[static_cast<std::size_t>(change.kind)] *= change.factor;
    if (change.what == Override::What::Link) slow_link(change);
  }
  double most = std::ranges::max(device_factor_) * std::ranges::max(kind_factor_);
  for (const Override& link : links_) most = std::max(most, link.factor);
  if (!(most <= kMostFactor))
    throw InputError("--change: factors multiply to " + exact_number(most) + "; at most 1e12 is possible");
}

void WhatIf::slow_link(const Override& change) {
  const auto known = std::ranges::find_if(
      links_, [&](const Override& link) { return link.device == change.device && link.peer == change.peer; });
  if (known == links_.end()) {
    links_.push_back(change);
  } else {
    known->factor *= change.factor;
  }
}

double WhatIf::factor(int device, const Op& op) const {
  const double kind = is_action(op.kind) ? kind_factor_[static_cast<std::size_t>(op.kind)] : 1.0;
  return kind * device_factor_[device];
}

Seconds WhatIf::seconds(int device, std::uint32_t index, const Op& op) const {
  return ForwardedCosts::seconds(device, index, op) * factor(device, op);
}

AttentionShare WhatIf::attention(int device, std::uint32_t index, const Op& op) const {
  AttentionShare share = ForwardedCosts::attention(device, index, op);
  share.seconds *= factor(device, op);
  return share;
}

AttentionShare WhatIf::served_attention(int server, int owner, std::uint32_t index, const Op& op) const {
  AttentionShare share = ForwardedCosts::served_attention(server, owner, index, op);
  share.seconds *= factor(server, op);
  return share;
}

Transfer WhatIf::transfer(int device, std::uint32_t index, const Op& send) const {
  Transfer transfer = ForwardedCosts::transfer(device, index, send);
  for (const Override& change : links_) {
    if (change.device != device || change.peer != send.peer) continue;
    transfer.occupied *= change.factor;
    transfer.latency *= change.factor;
  }
  return transfer;
}

}  // namespace penstock::sim
