// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/loss_mask.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {

std::string loss_mask_of(const std::string& prefix) { return prefix + ".mask"; }

LossMask::LossMask(const std::string& prefix, std::int64_t tokens) : path_(loss_mask_of(prefix)) {
  if (!is_there(path_)) return;
  file_ = std::make_unique<MappedFile>(path_);
  const auto bytes = static_cast<std::int64_t>(file_->bytes().size());
  require(bytes == tokens, printable(path_, 500) + " has " + std::to_string(bytes) + " bytes for " +
                               std::to_string(tokens) + " tokens; expected one each");
}

void LossMask::read(std::int64_t first, std::span<char> in_loss) const {
  if (!file_) {
    std::ranges::fill(in_loss, 1);
    return;
  }
  const std::string_view bytes = file_->text().substr(static_cast<std::size_t>(first), in_loss.size());
  std::ranges::copy(bytes, in_loss.begin());
  const auto wrong = std::ranges::find_if(bytes, [](char byte) { return byte != 0 && byte != 1; });
  if (wrong == bytes.end()) return;
  throw InputError(printable(path_, 500) + ": byte " + std::to_string(first + (wrong - bytes.begin())) +
                   " is " + std::to_string(static_cast<unsigned char>(*wrong)) + "; expected 0 or 1");
}

void LossMaskWriter::add(std::string_view in_loss) {
  const auto ones = std::ranges::count(in_loss, char{1});
  if (!file_ && ones < std::ssize(in_loss)) {
    file_ = std::make_unique<AtomicFile>(path_);
    const std::string block(1 << 16, 1);
    for (std::int64_t left = tokens_; left > 0; left -= std::ssize(block))
      file_->write(std::string_view(block).substr(0, static_cast<std::size_t>(left)));
  }
  if (file_) file_->write(in_loss);
  tokens_ += std::ssize(in_loss);
  in_loss_ += ones;
}

}  // namespace penstock::files
