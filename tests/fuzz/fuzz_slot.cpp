// SPDX-License-Identifier: Apache-2.0
// The file of a copy in a host's memory: its parts lie inside it.
#include <stdexcept>

#include "base/error.h"
#include "fuzz/driver.h"
#include "train/checkpoint/copy_slot.h"

namespace penstock::train {
namespace {

void take(std::string_view input) {
  const std::span<const std::byte> file = std::as_bytes(std::span(input));
  const auto contents = contents_of_slot(file);
  if (!contents) throw InputError("not whole");
  const std::byte* end = contents->bytes.data() + contents->bytes.size();
  if (end != file.data() + file.size()) throw std::logic_error("the bytes do not end with the file");
  const auto* text = reinterpret_cast<const std::byte*>(contents->text.data());
  if (text < file.data() || text + contents->text.size() > contents->bytes.data())
    throw std::logic_error("the text is not before the bytes");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
