// SPDX-License-Identifier: Apache-2.0
#include "cli/become.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/error.h"

namespace penstock::cli {
namespace {

// The words this process was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size(); begin += words.back().size() + 1)
    words.emplace_back(text.c_str() + begin);
  return words;
}

}  // namespace

std::string program_beside(const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

void become(const std::string& path) {
  std::vector<std::string> words = own_words();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  throw RunError(path + ", which trains, cannot be started: " + std::strerror(errno));
}

}  // namespace penstock::cli
