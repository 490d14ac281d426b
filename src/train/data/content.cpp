// SPDX-License-Identifier: Apache-2.0
#include "train/data/content.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/whole.h"
#include "files/checksum.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kSpan = 4096;  // tokens
constexpr std::int64_t kSpans = 256;  // over all stretches

// Checksum of `count` values that `read` fills in.
template <class Value, class Read>
std::uint64_t sum_of(std::int64_t count, Read read) {
  std::vector<Value> values(static_cast<std::size_t>(count));
  try {
    read(std::span(values));
  } catch (const InputError&) {
    std::ranges::fill(values, Value{});
  }
  return files::checksum(std::as_bytes(std::span(values)));
}

// The first token of the span. Spans are evenly spaced between the ends, and overlap if they cover all.
std::int64_t begin_of(const Stretch& stretch, std::int64_t span, std::int64_t spans) {
  const std::int64_t last = stretch.end - stretch.begin - kSpan;
  if (last <= 0 || spans == 1) return stretch.begin;
  return stretch.begin + last / (spans - 1) * span + last % (spans - 1) * span / (spans - 1);
}

struct Sums {
  std::uint64_t tokens = 0;
  std::uint64_t marks = 0;
};

// Checkpoints store these sums: if spans were placed differently, a resumed run would see changed data.
Sums sums_of(std::span<const Stretch> stretches) {
  const std::int64_t most =
      std::max<std::int64_t>(kSpans / std::max<std::int64_t>(std::ssize(stretches), 1), 1);
  std::vector<std::uint64_t> tokens, marks;
  for (const Stretch& stretch : stretches) {
    const TokenSource& source = *stretch.source;
    const std::int64_t size = stretch.end - stretch.begin, spans = std::min(most, ceil_div(size, kSpan));
    for (std::int64_t span = 0; span < spans; ++span) {
      const std::int64_t first = begin_of(stretch, span, spans), count = std::min(kSpan, size);
      tokens.push_back(sum_of<std::int64_t>(count, [&](auto values) { source.read(first, values); }));
      marks.push_back(
          sum_of<std::int64_t>(count, [&](auto values) { source.document_starts(first, values); }));
      marks.push_back(sum_of<char>(count, [&](auto values) { source.in_loss(first, values); }));
    }
  }
  return {files::checksum(std::as_bytes(std::span(tokens))),
          files::checksum(std::as_bytes(std::span(marks)))};
}

}  // namespace

Content content_of(std::span<const Stretch> training, std::span<const Stretch> held_out) {
  const Sums trained = sums_of(training), evaluated = sums_of(held_out);
  const std::uint64_t both[] = {evaluated.tokens, evaluated.marks};
  return {trained.tokens, trained.marks, files::checksum(std::as_bytes(std::span(both)))};
}

}  // namespace penstock::train
