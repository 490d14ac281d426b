// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "files/file_system.h"

namespace penstock::files {
namespace {

constexpr std::size_t kBuffer = 1 << 20;
constexpr std::int32_t kGoesOn = std::int32_t{1} << 31;  // flag in a length: the document continues

[[noreturn]] void fail(const std::string& path) {
  throw RunError(printable(path, 500) + " cannot be written: " + std::strerror(errno));
}

// An unnamed file in the directory of the output, which needs the space anyway.
std::FILE* open_unnamed(const std::string& prefix) {
  const std::string folder = std::filesystem::path(prefix).parent_path().string();
  const int descriptor = file_system().open_unnamed(folder.empty() ? "." : folder);
  if (descriptor < 0) fail(prefix + ".idx");
  return fdopen(descriptor, "w+b");
}

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, TokenType type, std::int64_t longest_sequence)
    : type_(type),
      longest_sequence_(longest_sequence),
      bin_(prefix + ".bin"),
      idx_(prefix + ".idx"),
      lengths_(open_unnamed(prefix), std::fclose),
      lengths_name_(prefix + ".idx") {
  PENSTOCK_CHECK(lengths_ != nullptr, "a descriptor just opened makes a stream");
}

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
  if (std::fwrite(&kept, sizeof kept, 1, lengths_.get()) != 1) fail(lengths_name_);
  open_tokens_ = 0;
  ++sequences_;
}

void MegatronWriter::for_each_sequence(
    const std::function<void(std::int64_t length, bool document_ends)>& visit) {
  std::rewind(lengths_.get());
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    std::int32_t kept = 0;
    if (std::fread(&kept, sizeof kept, 1, lengths_.get()) != 1) fail(lengths_name_);
    visit(kept & ~kGoesOn, (kept & kGoesOn) == 0);
  }
}

template <class T>
void MegatronWriter::write_number(T value) {
  buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
  if (buffer_.size() < kBuffer) return;
  idx_.write(buffer_);
  buffer_.clear();
}

void MegatronWriter::commit() {
  PENSTOCK_CHECK(open_tokens_ == 0, "the last document has been ended");
  if (std::fflush(lengths_.get()) != 0) fail(lengths_name_);
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
  bin_.commit();
  idx_.commit();
}

}  // namespace penstock::files
