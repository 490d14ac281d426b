// SPDX-License-Identifier: Apache-2.0
#include "files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "files/atomic_file.h"
#include "files/safetensors_header.h"

namespace penstock::files {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kHeaderLengthBytes = sizeof(std::uint64_t);

std::uint64_t header_length(std::string_view begin, std::uint64_t size, const std::string& origin) {
  const auto fail = [&](const std::string& what) -> std::uint64_t { throw InputError(origin + ": " + what); };
  if (size < kHeaderLengthBytes) {
    return fail("has " + std::to_string(size) + " bytes; a safetensors file has at least 8");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, begin.data(), kHeaderLengthBytes);
  const std::uint64_t rest = size - kHeaderLengthBytes;
  if (length > kLongestHeader) {
    return fail("says its header has " + std::to_string(length) + " bytes; at most 100000000 are possible");
  }
  if (length > rest) {
    return fail("says its header has " + std::to_string(length) + " bytes, but only " + std::to_string(rest) +
                " follow");
  }
  return length;
}

// Not through the mapping: a page that cannot be read is then an InputError.
std::string read_head(InputFile& file, const std::string& origin) {
  std::string head;
  const auto append = [&](std::span<const std::byte> piece) {
    head.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  file.read(0, std::min<std::uint64_t>(kHeaderLengthBytes, file.size()), append);
  file.read(kHeaderLengthBytes, header_length(head, file.size(), origin), append);
  return head;
}

// Indices of the tensors in the order of their bytes in the file.
std::vector<std::size_t> order_of(std::span<const StoredTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return size_of(tensors[i].type); });
  return order;
}

}  // namespace

Safetensors::Safetensors(InputFile& file) : path_(file.path()), file_(file) {
  const std::string origin = printable(path_, 500);
  head_ = read_head(file, origin);
  SafetensorsHeader header = parse_safetensors_header(std::string_view(head_).substr(kHeaderLengthBytes),
                                                      file_.bytes().subspan(head_.size()), origin);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::uint64_t Safetensors::begin_of(const StoredTensor& tensor) const {
  return static_cast<std::uint64_t>(tensor.bytes.data() - file_.bytes().data());
}

SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors, const Metadata& metadata) {
  const std::vector<std::size_t> order = order_of(tensors);
  std::vector<StoredTensor> ordered;
  for (const std::size_t i : order) ordered.push_back(tensors[i]);
  const std::string header = print_safetensors_header(ordered, metadata);
  const std::uint64_t length = header.size();
  SafetensorsLayout layout{
      .head = std::string(kHeaderLengthBytes, '\0'), .begins{}, .size = kHeaderLengthBytes + length};
  std::memcpy(layout.head.data(), &length, kHeaderLengthBytes);
  layout.head += header;
  layout.begins.resize(tensors.size());
  for (const std::size_t i : order) {
    layout.begins[i] = layout.size;
    layout.size += *bytes_of_shape(tensors[i].shape, tensors[i].type);
  }
  return layout;
}

void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata) {
  write_safetensors(path, tensors, metadata,
                    [](const StoredTensor& tensor, const ByteSink& sink) { sink(tensor.bytes); });
}

void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata,
                       const std::function<void(const StoredTensor&, const ByteSink&)>& write_bytes) {
  AtomicFile file(path);
  file.write(lay_out_safetensors(tensors, metadata).head);
  for (const std::size_t i : order_of(tensors)) {
    std::uint64_t written = 0;
    write_bytes(tensors[i], [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      written += bytes.size();
    });
    PENSTOCK_CHECK(written == bytes_of_shape(tensors[i].shape, tensors[i].type),
                   "a tensor's bytes fit its shape");
  }
  file.commit();
}

}  // namespace penstock::files
