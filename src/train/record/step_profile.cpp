// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/columns.h"
#include "base/text.h"
#include "train/record/gather_lists.h"

namespace penstock::train {
namespace {

using Json = nlohmann::json;

struct Row {
  nn::Block block = nn::Block::Stream;
  nn::Kernel kernel = nn::Kernel::Product;
  double calls = 0;
  Seconds seconds = 0;
  double flops = 0;
  double bytes = 0;
};

std::vector<Row> rows_of(const std::vector<StepProfile>& steps) {
  std::map<std::pair<nn::Block, nn::Kernel>, Row> rows;
  for (const StepProfile& step : steps) {
    for (const auto& device : step.devices) {
      for (const nn::KernelCall& call : device) {
        Row& row = rows[{call.block, call.kernel}];
        row = {call.block,
               call.kernel,
               row.calls + 1,
               row.seconds + call.end - call.start,
               row.flops + call.flops,
               row.bytes + call.bytes};
      }
    }
  }
  std::vector<Row> sorted;
  for (const auto& [key, row] : rows) sorted.push_back(row);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &Row::seconds);
  return sorted;
}

std::string rate_of(const Row& row) {
  if (row.seconds <= 0) return "";
  return row.flops > 0 ? print_count(row.flops / row.seconds) + "FLOP/s"
                       : print_count(row.bytes / row.seconds) + "B/s";
}

}  // namespace

StepProfile gather_profile(std::int64_t step, const std::vector<nn::KernelCall>& mine,
                           comm::Pipeline pipeline) {
  return {.step = step, .devices = gather_lists(mine, pipeline)};
}

std::string to_json(const std::vector<StepProfile>& steps) {
  Json kernels = Json::array(), blocks = Json::array();
  for (int i = 0; i < nn::kKernels; ++i) kernels.push_back(name_of(static_cast<nn::Kernel>(i)));
  for (int i = 0; i < nn::kBlocks; ++i) blocks.push_back(name_of(static_cast<nn::Block>(i)));
  Json list = Json::array();
  for (const StepProfile& step : steps) {
    Json devices = Json::array();
    for (const auto& calls : step.devices) {
      Json entries = Json::array();
      for (const nn::KernelCall& call : calls) {
        entries.push_back(Json::array({static_cast<unsigned>(call.kernel), static_cast<unsigned>(call.block),
                                       call.start, call.end, call.flops, call.bytes}));
      }
      devices.push_back(std::move(entries));
    }
    list.push_back({{"step", step.step}, {"devices", std::move(devices)}});
  }
  return Json{{"kernels", kernels}, {"blocks", blocks}, {"steps", std::move(list)}}.dump() + "\n";
}

std::string profile_table(const std::vector<StepProfile>& steps, Seconds compute) {
  const auto count = static_cast<double>(std::max<std::size_t>(steps.size(), 1));
  Rows cells{{"block", "kernel", "calls", "ms", "%", "rate"}};
  const auto add = [&](std::string_view block, std::string_view kernel, const std::string& calls,
                       Seconds seconds, const std::string& rate) {
    cells.push_back({std::string(block), std::string(kernel), calls, number(1e3 * seconds / count, 2),
                     number(100 * seconds / compute, 1), rate});
  };
  Seconds inside = 0;
  for (const Row& row : rows_of(steps)) {
    add(name_of(row.block), name_of(row.kernel), std::to_string(std::llround(row.calls / count)), row.seconds,
        rate_of(row));
    inside += row.seconds;
  }
  add("outside kernels", "", "", std::max(0.0, compute - inside), "");
  return columns(cells, "llr");
}

}  // namespace penstock::train
