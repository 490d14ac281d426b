// SPDX-License-Identifier: Apache-2.0
#include "schedule/exchange/time.h"

#include <algorithm>

namespace penstock::schedule {
namespace {

// Calls visit(span, op, seconds) for each overlap of a span with a compute op.
template <class Visit>
void for_overlaps(const DeviceProgram& list, std::span<const Event> events,
                  std::span<const ExchangeSpan> spans, Visit&& visit) {
  std::vector<std::uint32_t> computing;
  for (std::uint32_t op = 0; op < events.size(); ++op) {
    if (lane_of(list.ops[op].kind) == Lane::Compute) computing.push_back(op);
  }
  std::size_t first = 0;  // first compute op that can overlap this or a later span
  for (std::size_t s = 0; s < spans.size(); ++s) {
    while (first < computing.size() && events[computing[first]].end <= spans[s].start) ++first;
    for (std::size_t i = first; i < computing.size() && events[computing[i]].start < spans[s].end; ++i) {
      const Event& event = events[computing[i]];
      const Seconds begin = std::max(spans[s].start, event.start);
      visit(s, computing[i], std::max(0.0, std::min(spans[s].end, event.end) - begin));
    }
  }
}

}  // namespace

std::vector<Seconds> seconds_inside_ops(const DeviceProgram& list, std::span<const Event> events,
                                        std::span<const ExchangeSpan> spans) {
  std::vector<Seconds> inside(spans.size());
  for_overlaps(list, events, spans,
               [&](std::size_t span, std::uint32_t, Seconds seconds) { inside[span] += seconds; });
  return inside;
}

std::vector<Seconds> own_seconds(const DeviceProgram& list, std::span<const Event> events,
                                 std::span<const ExchangeSpan> spans) {
  std::vector<Seconds> own;
  for (const Event& event : events) own.push_back(event.end - event.start);
  for_overlaps(list, events, spans, [&](std::size_t, std::uint32_t op, Seconds seconds) {
    own[op] = std::max(0.0, own[op] - seconds);
  });
  return own;
}

Seconds busy_seconds(const DeviceProgram& list, std::span<const Event> events,
                     std::span<const ExchangeSpan> spans) {
  Seconds busy = 0;
  for (std::size_t op = 0; op < events.size(); ++op) {
    if (lane_of(list.ops[op].kind) == Lane::Compute) busy += events[op].end - events[op].start;
  }
  const std::vector<Seconds> inside = seconds_inside_ops(list, events, spans);
  for (std::size_t i = 0; i < spans.size(); ++i)
    busy += spans[i].waiting ? -inside[i] : spans[i].end - spans[i].start - inside[i];
  return busy;
}

}  // namespace penstock::schedule
