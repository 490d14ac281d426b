// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/writer.h"

#include <algorithm>

#include "base/error.h"
#include "files/directory.h"

namespace penstock::files {
namespace {

constexpr std::size_t kBuffer = 1 << 20;
constexpr std::size_t kLengths = 1 << 18;  // entries per write
constexpr Bytes kLengthBytes = sizeof(std::int32_t);
constexpr std::int32_t kGoesOn = std::int32_t{1} << 31;  // flag in a length: the document continues

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, TokenType type, std::int64_t longest_sequence)
    : type_(type),
      longest_sequence_(longest_sequence),
      bin_(prefix + ".bin"),
      idx_(prefix + ".idx"),
      lengths_(folder_of(prefix), prefix + ".idx", 0) {}  // the output's folder needs the space anyway

void MegatronWriter::add(std::span<const std::byte> tokens) {
  const std::int64_t size = size_of(type_);
  auto left = static_cast<std::int64_t>(tokens.size()) / size;
  PENSTOCK_CHECK(left * size == static_cast<std::int64_t>(tokens.size()), "tokens are whole");
  bin_.write(tokens);
  tokens_ += left;
  while (left > 0) {
    if (open_tokens_ == longest_sequence_) end_sequence(false);
    const std::int64_t taken = std::min(left, longest_sequence_ - open_tokens_);
    open_tokens_ += taken;
    left -= taken;
  }
}

void MegatronWriter::end_document() {
  if (open_tokens_ == 0) return;
  end_sequence(true);
  ++documents_;
}

void MegatronWriter::end_sequence(bool document_ends) {
  const auto length = static_cast<std::int32_t>(open_tokens_);
  const std::int32_t kept = document_ends ? length : length | kGoesOn;
  new_lengths_.push_back(kept);
  open_tokens_ = 0;
  ++sequences_;
  if (new_lengths_.size() >= kLengths) put_lengths_away();
}

void MegatronWriter::put_lengths_away() {
  const auto before = sequences_ - std::ssize(new_lengths_);
  lengths_.write(before * kLengthBytes, std::as_bytes(std::span(new_lengths_)));
  new_lengths_.clear();
}

void MegatronWriter::for_each_sequence(
    const std::function<void(std::int64_t length, bool document_ends)>& visit) {
  std::vector<std::int32_t> block;
  for (std::int64_t begin = 0; begin < sequences_; begin += std::ssize(block)) {
    block.resize(std::min(kLengths, static_cast<std::size_t>(sequences_ - begin)));
    lengths_.read(begin * kLengthBytes, std::as_writable_bytes(std::span(block)));
    for (const std::int32_t kept : block) visit(kept & ~kGoesOn, (kept & kGoesOn) == 0);
  }
}

template <class T>
void MegatronWriter::write_number(T value) {
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
  if (buffer_.size() < kBuffer) return;
  idx_.write(buffer_);
  buffer_.clear();
}

void MegatronWriter::commit(AtomicFile* mask) {
  PENSTOCK_CHECK(open_tokens_ == 0, "the last document has been ended");
  put_lengths_away();
  buffer_ = kMegatronMagic;
  write_number(kMegatronVersion);
  write_number(type_);
  write_number(static_cast<std::uint64_t>(sequences_));
  write_number(static_cast<std::uint64_t>(documents_ + 1));
  for_each_sequence([&](std::int64_t length, bool) { write_number(static_cast<std::int32_t>(length)); });
  std::int64_t offset = 0, sequence = 0;
  for_each_sequence([&](std::int64_t length, bool) {
    write_number(offset);
    offset += length * size_of(type_);
  });
  write_number(std::int64_t{0});
  for_each_sequence([&](std::int64_t, bool document_ends) {
    ++sequence;
    if (document_ends) write_number(sequence);
  });
  idx_.write(buffer_);
  // Mask first: without it all tokens would be targets. .idx last: without it there is no pair.
  AtomicFile* const all[] = {mask, &bin_, &idx_};
  commit_together(std::span(all).subspan(mask == nullptr ? 1 : 0));
}

}  // namespace penstock::files
