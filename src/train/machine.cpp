// SPDX-License-Identifier: Apache-2.0
#include "train/machine.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "base/text.h"

namespace penstock::train {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo.
std::string processor_field(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) != key) continue;
    return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::string best_instructions(const std::string& flags) {
  const std::string padded = " " + flags + " ";
  for (const char* name : {"amx_bf16", "avx512_bf16", "avx512f", "avx2"}) {
    if (padded.find(" " + std::string(name) + " ") != std::string::npos) return name;
  }
  return "no wide vectors";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace

Machine this_machine() {
  const std::string name = processor_field("model name");
  const long pages = sysconf(_SC_PHYS_PAGES);
  return {.processor = name.empty() ? "unknown processor" : name,
          .instructions = best_instructions(processor_field("flags")),
          .cores = usable_cores(),
          .memory = pages > 0 ? static_cast<Bytes>(pages) * sysconf(_SC_PAGESIZE) : 0};
}

Flops measure_matmul_rate(model::Precision precision) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t size = 1024;
  const auto type = precision == model::Precision::BF16  ? at::kBFloat16
                    : precision == model::Precision::F32 ? at::kFloat
                                                         : at::kDouble;
  // In memory that goes back to the system: tensors would leave blocks behind that are of no use to a small
  // model.
  const auto bytes = static_cast<std::size_t>(size * size) * at::elementSize(type);
  std::vector<std::byte> from(bytes), to(bytes);
  const at::Tensor a = at::from_blob(from.data(), {size, size}, at::dtype(type)).fill_(1);
  at::Tensor product = at::from_blob(to.data(), {size, size}, at::dtype(type));
  at::mm_out(product, a, a);  // the first call pays for set-up
  double best = 0;
  const auto began = Clock::now();
  do {
    const auto start = Clock::now();
    at::mm_out(product, a, a);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * size * size * size / seconds);
  } while (Clock::now() - began < std::chrono::milliseconds(200));
  return best;
}

}  // namespace penstock::train
