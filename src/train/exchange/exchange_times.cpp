// SPDX-License-Identifier: Apache-2.0
#include "train/exchange/exchange_times.h"

#include <algorithm>

namespace penstock::train {

using schedule::ExchangeSpan;

std::vector<ExchangeSpan> ExchangeTimes::resolved(const std::vector<Timed>& all,
                                                  const backend::DeviceClock& clock) {
  std::vector<ExchangeSpan> spans;
  for (const Timed& timed : all) {
    spans.push_back(timed.span);
    spans.back().start = clock.seconds(timed.start);
    spans.back().end = clock.seconds(timed.end);
  }
  return spans;
}

std::vector<ExchangeSpan> ExchangeTimes::spans(const backend::DeviceClock& clock) const {
  const std::vector<ExchangeSpan> served = resolved(served_, clock);
  std::vector<ExchangeSpan> spans = served;
  auto next = served.begin();  // first one that may end after the wait starts
  for (ExchangeSpan wait : resolved(waits_, clock)) {
    while (next != served.end() && next->end <= wait.start) ++next;
    for (auto inside = next; inside != served.end() && inside->start < wait.end; ++inside) {
      ExchangeSpan before = wait;
      before.end = inside->start;
      if (before.start < before.end) spans.push_back(before);
      wait.start = std::max(wait.start, inside->end);
    }
    if (wait.start < wait.end) spans.push_back(wait);
  }
  std::ranges::stable_sort(spans, {}, &ExchangeSpan::start);
  return spans;
}

}  // namespace penstock::train
