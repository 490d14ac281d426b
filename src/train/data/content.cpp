// SPDX-License-Identifier: Apache-2.0
#include "train/data/content.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "files/checksum.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kSpan = 4096;  // tokens
constexpr std::int64_t kSpans = 256;  // of all stretches

std::vector<std::int64_t> read(const Stretch& stretch, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count));
  try {
    stretch.source->read(first, tokens);
  } catch (const InputError&) {
    std::ranges::fill(tokens, 0);
  }
  return tokens;
}

// The first token of the span: spans lie evenly between the ends, and overlap where they cover all.
std::int64_t begin_of(const Stretch& stretch, std::int64_t span, std::int64_t spans) {
  const std::int64_t last = stretch.end - stretch.begin - kSpan;
  if (last <= 0 || spans == 1) return stretch.begin;
  return stretch.begin + last / (spans - 1) * span + last % (spans - 1) * span / (spans - 1);
}

}  // namespace

std::uint64_t content_of(std::span<const Stretch> stretches) {
  const std::int64_t most =
      std::max<std::int64_t>(kSpans / std::max<std::int64_t>(std::ssize(stretches), 1), 1);
  std::vector<std::uint64_t> sums;
  for (const Stretch& stretch : stretches) {
    const std::int64_t size = stretch.end - stretch.begin, spans = std::min(most, (size + kSpan - 1) / kSpan);
    for (std::int64_t span = 0; span < spans; ++span) {
      const auto tokens = read(stretch, begin_of(stretch, span, spans), std::min(kSpan, size));
      sums.push_back(files::checksum(std::as_bytes(std::span(tokens))));
    }
  }
  return files::checksum(std::as_bytes(std::span(sums)));
}

}  // namespace penstock::train
