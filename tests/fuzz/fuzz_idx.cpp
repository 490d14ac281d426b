// SPDX-License-Identifier: Apache-2.0
// Megatron's index: eight bytes that are the length of the .bin file, then the .idx file.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "files/megatron/index.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

constexpr std::int64_t kMostRead = 1 << 16;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// What was accepted at this size was checked whole, so nothing in it can be wrong.
void read_all(const MegatronIndex& index) {
  std::int64_t tokens = 0, begin = 0;
  for (std::int64_t sequence = 0; sequence < index.sequences(); ++sequence) tokens += index.length(sequence);
  expect(tokens == index.tokens(), "the sequences have other tokens than the file");
  for (std::int64_t document = 0; document <= index.documents(); ++document) {
    const std::int64_t next = index.document_begin(document);
    expect(next >= begin && next <= tokens, "documents run backwards");
    begin = next;
  }
  for (std::int64_t first = 0; first < tokens && first < kMostRead; ++first)
    index.check_tokens(first, std::min<std::int64_t>(7, tokens - first));
}

void take(std::string_view input) {
  std::uint64_t bin_bytes = 0;
  if (input.size() < sizeof bin_bytes) throw InputError("too short");
  std::memcpy(&bin_bytes, input.data(), sizeof bin_bytes);
  bin_bytes &= INT64_MAX;  // no file is longer
  const MegatronIndex index(std::as_bytes(std::span(input.substr(sizeof bin_bytes))), bin_bytes, "fuzz");
  read_all(index);
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
