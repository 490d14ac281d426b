// SPDX-License-Identifier: Apache-2.0
#include "cli/become.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

// The command line of this process.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size(); begin += words.back().size() + 1)
    words.emplace_back(text.c_str() + begin);
  return words;
}

bool has_libtorch(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "libtorch_cpu.so", error);
}

// Finds the library folder of python3's torch, if it has this version, without importing it.
fs::path python_libtorch() {
  constexpr const char* kAsk =
      "python3 -c 'import importlib.util, os; s = importlib.util.find_spec(\"torch\"); "
      "print(os.path.dirname(s.origin) if s else \"\")' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> asked(popen(kAsk, "r"), &pclose);
  char line[4096] = {};
  if (!asked || !std::fgets(line, sizeof line, asked.get())) return {};
  const fs::path torch(std::string(line, std::strcspn(line, "\n")));
  std::ifstream file(torch / "version.py");
  const std::string version{std::istreambuf_iterator<char>(file), {}};
  const bool same = version.find("'" PENSTOCK_TORCH_VERSION "+") != std::string::npos ||
                    version.find("'" PENSTOCK_TORCH_VERSION "'") != std::string::npos;
  return same ? torch / "lib" : fs::path();
}

// A program copied to another machine finds LibTorch there among python3's packages.
void find_libtorch(const std::string& program) {
  const char* const set = std::getenv("LD_LIBRARY_PATH");
  const std::string paths = set ? set : "";
  if (has_libtorch(PENSTOCK_TORCH_LIBRARIES) || has_libtorch(fs::path(program).parent_path() / "../lib"))
    return;
  std::istringstream folders(paths);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (has_libtorch(folder)) return;
  }
  const fs::path found = python_libtorch();
  if (!has_libtorch(found))
    throw RunError("LibTorch " PENSTOCK_TORCH_VERSION " is neither in " PENSTOCK_TORCH_LIBRARIES
                   " nor among the packages of python3; install it with: python3 -m pip install "
                   "torch==" PENSTOCK_TORCH_VERSION);
  const fs::path cuda = found / "../../nvidia/cu13/lib";
  setenv("LD_LIBRARY_PATH",
         (found.string() + ":" + cuda.string() + (paths.empty() ? "" : ":" + paths)).c_str(), 1);
}

// LibTorch registers its operators in many small heap blocks, which huge pages fault in faster. glibc reads
// its tunables before main, so they are set here for the program that will be loaded.
void ask_for_huge_pages() {
  const char* const set = std::getenv("GLIBC_TUNABLES");
  std::string tunables = set ? set : "";
  if (tunables.find("glibc.malloc.hugetlb=") != std::string::npos) return;
  if (!tunables.empty()) tunables += ':';
  setenv("GLIBC_TUNABLES", (tunables + "glibc.malloc.hugetlb=1").c_str(), 1);
}

// Threads wait for one another awake for a while, then asleep. The default is some milliseconds, which other
// threads of the same core need where ranks and threads are more than cores: steps took up to six times as
// long. A fraction of a millisecond costs nothing where they are not.
void sleep_early() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", 0);
}

}  // namespace

std::string program_beside(const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

void become(const std::string& path) {
  std::error_code error;
  static_cast<void>(fs::current_path(error));
  if (error) throw InputError("the current directory has been removed; change to one that exists");
  find_libtorch(path);
  ask_for_huge_pages();
  sleep_early();
  std::vector<std::string> words = own_words();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  throw RunError("cannot start " + path + ": " + std::strerror(errno));
}

}  // namespace penstock::cli
