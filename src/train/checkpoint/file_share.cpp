// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/file_share.h"

#include <algorithm>

#include "backend/device.h"
#include "base/error.h"
#include "files/checksum.h"
#include "files/parted_file.h"
#include "nn/groups/tensor_bytes.h"

namespace penstock::train {
namespace {

constexpr std::size_t kWord = 4;
constexpr std::size_t kPiece = std::size_t{8} << 20;

// Calls visit(bytes of the range, their offset in the whole tensor in bytes).
template <class Visit>
void for_ranges(const TensorShare& share, Visit&& visit) {
  const SharedBytes shared(share);
  const std::span<const std::byte> bytes = shared.get();
  for (const mesh::Range& range : share.ranges) {
    visit(bytes.subspan(static_cast<std::size_t>(range.own_begin) * share.element,
                        static_cast<std::size_t>(range.count) * share.element),
          static_cast<std::uint64_t>(range.begin) * share.element);
  }
}

bool has_first_element(const FileShare& share) {
  return std::ranges::any_of(share.tensors, [&](const TensorShare& tensor) {
    return share.layout.begins[tensor.tensor] == share.layout.head.size() && tensor.ranges.front().begin == 0;
  });
}

}  // namespace

SharedBytes::SharedBytes(const TensorShare& share) : bytes_(share.copy) {
  if (!share.values.defined()) return;
  values_ = backend::to_host(share.values);
  bytes_ = nn::host_bytes_of_tensor(values_).first(share.size);
}

FileShare share_of_file(const std::vector<files::StoredTensor>& whole, const OwnedTensors& owned) {
  FileShare share{
      .whole = whole, .layout = files::lay_out_safetensors(whole, {{"format", "pt"}}), .tensors{}};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto [first, last] = owned.equal_range(whole[i].name);
    for (auto source = first; source != last; ++source) {
      const auto& [parameter, values] = source->second;
      PENSTOCK_CHECK(parameter->sizes == whole[i].shape, "a parameter has the model's size");
      auto ranges = mesh::ranges_of(parameter->shard, parameter->sizes, parameter->written());
      if (ranges.empty()) continue;  // only padding
      const std::size_t element = files::size_of(whole[i].type);
      // Padding comes last.
      const auto elements = static_cast<std::size_t>(ranges.back().own_begin + ranges.back().count);
      share.tensors.push_back({.tensor = i,
                               .element = element,
                               .ranges = std::move(ranges),
                               .size = elements * element,
                               .values = parameter->written_part(values),
                               .copy = {}});
    }
  }
  return share;
}

void for_pieces(const FileShare& share,
                const std::function<void(std::uint64_t, std::span<const std::byte>)>& visit) {
  for (const TensorShare& tensor : share.tensors) {
    for_ranges(tensor, [&](std::span<const std::byte> bytes, std::uint64_t begin) {
      for (std::size_t first = 0; first < bytes.size(); first += kPiece) {
        visit(share.layout.begins[tensor.tensor] + begin + first,
              bytes.subspan(first, std::min(kPiece, bytes.size() - first)));
      }
    });
  }
}

void write_share(const std::string& path, const FileShare& share, const std::function<void()>& after_piece) {
  if (share.tensors.empty()) return;
  files::PartedFile file(path, share.layout.size);
  if (has_first_element(share)) file.write(0, share.layout.head);
  for_pieces(share, [&](std::uint64_t begin, std::span<const std::byte> bytes) {
    file.write(begin, bytes);
    if (after_piece) after_piece();
  });
  file.flush();
}

std::vector<std::uint64_t> word_sums_of(const FileShare& share) {
  std::vector<std::uint64_t> sums(share.layout.begins.size());
  for (const TensorShare& tensor : share.tensors) {
    for_ranges(tensor, [&](std::span<const std::byte> bytes, std::uint64_t begin) {
      std::uint64_t& sum = sums[tensor.tensor];
      sum = files::add_word_sums(sum, files::word_sum(bytes, begin / kWord));
    });
  }
  return sums;
}

}  // namespace penstock::train
