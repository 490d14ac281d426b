// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/run_number.h"

#include <cstdint>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/file_system.h"
#include "files/mapped_file.h"
#include "files/run_files.h"

namespace penstock::train {
namespace {

constexpr std::size_t kDigits = 16;

// Empty if the file is missing or has other text.
std::string number_in(const std::string& path) try {
  std::string text = files::read_text_if_there(path, kDigits + 1).value_or("").substr(0, kDigits);
  return files::parse_checksum(text) ? text : std::string();
} catch (const InputError&) {
  return {};
}

}  // namespace

std::string number_file(const std::string& output_directory) {
  return (std::filesystem::path(output_directory) / files::kNumber).string();
}

std::string drawn_number() {
  std::random_device random;
  return files::checksum_text((std::uint64_t{random()} << 32) | random());
}

std::string run_number(const std::string& output_directory, comm::World world) {
  const bool first = world->rank() == 0;
  return comm::broadcast_text(first ? number_in(number_file(output_directory)) : std::string(), 0, *world);
}

std::string renew_run_number(const std::string& output_directory, comm::World world) {
  std::string number;
  if (world->rank() == 0) {
    number = drawn_number();
    files::write_atomically(number_file(output_directory), number + "\n");
  }
  return comm::broadcast_text(number, 0, *world);
}

void forget_run_number(const std::string& output_directory) {
  files::file_system().remove(number_file(output_directory));
}

}  // namespace penstock::train
