// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: a line with the length of the data, then the header.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/safetensors_header.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

constexpr std::int64_t kMostData = 1 << 16;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// Every byte is part of one tensor, and what is printed reads the same again.
void judge(const SafetensorsHeader& header, std::span<const std::byte> data) {
  const std::byte* end = data.data();
  for (const StoredTensor& tensor : header.tensors) {
    expect(tensor.bytes.data() == end, "tensors do not follow each other");
    expect(bytes_of_shape(tensor.shape, tensor.type) == tensor.bytes.size(), "bytes do not fit a shape");
    end += tensor.bytes.size();
  }
  expect(end == data.data() + data.size(), "bytes are left over");
  const std::string printed = print_safetensors_header(header.tensors, header.metadata);
  const SafetensorsHeader again = parse_safetensors_header(printed, data, "fuzz");
  expect(again.metadata == header.metadata && again.tensors.size() == header.tensors.size(),
         "printing and parsing are not inverse");
}

void take(std::string_view input) {
  static const std::vector<std::byte> kData(kMostData);
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const auto bytes = parse_integer(input.substr(0, line_end));
  if (!bytes || *bytes < 0 || *bytes > kMostData) throw InputError("too short");
  const auto data = std::span(kData).first(static_cast<std::size_t>(*bytes));
  input.remove_prefix(std::min(input.size(), line_end + 1));
  judge(parse_safetensors_header(input, data, "fuzz"), data);
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
