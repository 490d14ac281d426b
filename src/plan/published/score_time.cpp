// SPDX-License-Identifier: Apache-2.0
// Scores the three timed tables.
#include "base/text.h"
#include "plan/published/kwai_case.h"
#include "plan/published/rows.h"
#include "plan/published/score_tables.h"
#include "plan/published/timed_cases.h"

namespace penstock::plan {

namespace {

std::string setting_of(const TimedCase& timed) {
  const Layout& layout = timed.layout;
  return print_mesh(layout.mesh) + " v" + std::to_string(layout.chunks) + " b" +
         std::to_string(layout.micro_batch) + " m" + std::to_string(micro_batches(timed.workload, layout)) +
         (layout.recompute_scores ? " selective" : "");
}

}  // namespace

Score score_kwai_throughput(const Table& table, const KnownMachines& known) {
  Score score{"atc24_throughput", ErrorKind::Relative, {}, {}, {}, {}, {}};
  for_each_row(table, score.refused, [&](std::size_t row) {
    const std::string setting = table.text(row, "hardware") + " " + kwai_setting(table, row);
    if (ran_out_of_memory(table, row, "tokens_per_second")) {
      const KwaiMemory memory = kwai_memory(kwai_memory_case(table, row));
      const double gpu = find_hardware(known.hardware, table.text(row, "hardware")).device.memory_gb * 1e9;
      score.out_of_memory.push_back({row, setting, memory.total(), kwai_fits(memory, gpu)});
      return;
    }
    const TimedCase timed = kwai_timed_case(table, row);
    const double published = published_figure(table, row, "tokens_per_second");
    const double tokens = static_cast<double>(timed.workload.global_batch * timed.workload.seq_len);
    const std::string model = table.text(row, "model") + " " + table.text(row, "hardware");
    score.figures.push_back(
        {row, model, setting, "tokens/s", tokens / seconds_of(timed, known), published, {}, {}, {}});
  });
  return score;
}

Score score_calculon(const Table& table, const KnownMachines& known) {
  Score score{"calculon_cases", ErrorKind::Relative, {}, {}, {}, {}, {}};
  for_each_row(table, score.refused, [&](std::size_t row) {
    const TimedCase timed = calculon_case(table, row);
    score.figures.push_back({row,
                             "gpt",
                             table.text(row, "model") + " " + setting_of(timed),
                             "step s",
                             seconds_of(timed, known),
                             published_figure(table, row, "iteration_s"),
                             {},
                             {},
                             {}});
  });
  return score;
}

Score score_vtrain(const Table& table, const KnownMachines& known) {
  Score score{"vtrain_multi_node", ErrorKind::Relative, {}, {}, {}, {}, {}};
  for_each_row(table, score.refused, [&](std::size_t row) {
    const TimedCase timed = vtrain_case(table, row);
    score.figures.push_back({row,
                             table.text(row, "params_billion") + "B",
                             setting_of(timed),
                             "step s",
                             seconds_of(timed, known),
                             published_figure(table, row, "iteration_ms") / 1000,
                             {},
                             {},
                             {}});
  });
  return score;
}

}  // namespace penstock::plan
