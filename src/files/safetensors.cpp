// SPDX-License-Identifier: Apache-2.0
#include "files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "files/atomic_file.h"
#include "files/safetensors_header.h"

namespace penstock::files {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

std::uint64_t header_length(std::span<const std::byte> bytes, const std::string& origin) {
  const auto fail = [&](const std::string& what) -> std::uint64_t { throw InputError(origin + ": " + what); };
  if (bytes.size() < kLengthBytes) {
    return fail("has " + std::to_string(bytes.size()) + " bytes; a safetensors file has at least 8");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t rest = bytes.size() - kLengthBytes;
  if (length > kLongestHeader) {
    return fail("says its header has " + std::to_string(length) + " bytes; at most 100000000 are possible");
  }
  if (length > rest) {
    return fail("says its header has " + std::to_string(length) + " bytes, but only " + std::to_string(rest) +
                " follow");
  }
  return length;
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : file_(path) {
  const std::string origin = printable(path, 500);
  const auto length = static_cast<std::size_t>(header_length(file_.bytes(), origin));
  head_bytes_ = kLengthBytes + length;
  SafetensorsHeader header = parse_safetensors_header(file_.text().substr(kLengthBytes, length),
                                                      file_.bytes().subspan(head_bytes_), origin);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::string write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                              const Metadata& metadata) {
  for (const StoredTensor& tensor : tensors) {
    PENSTOCK_CHECK(bytes_of_shape(tensor.shape, tensor.type) == tensor.bytes.size(),
                   "a tensor's bytes fit its shape");
  }
  return write_safetensors(path, tensors, metadata,
                           [](const StoredTensor& tensor, const ByteSink& sink) { sink(tensor.bytes); });
}

std::string write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                              const Metadata& metadata,
                              const std::function<void(const StoredTensor&, const ByteSink&)>& write_bytes) {
  std::vector<StoredTensor> ordered(tensors.begin(), tensors.end());
  std::ranges::stable_sort(ordered, std::greater(),
                           [](const StoredTensor& tensor) { return size_of(tensor.type); });
  const std::string header = print_safetensors_header(ordered, metadata);
  const std::uint64_t length = header.size();
  std::string head(kLengthBytes, '\0');
  std::memcpy(head.data(), &length, kLengthBytes);
  head += header;
  AtomicFile file(path);
  file.write(head);
  for (const StoredTensor& tensor : ordered) {
    std::uint64_t written = 0;
    write_bytes(tensor, [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      written += bytes.size();
    });
    PENSTOCK_CHECK(written == bytes_of_shape(tensor.shape, tensor.type), "a tensor's bytes fit its shape");
  }
  file.commit();
  return head;
}

}  // namespace penstock::files
