// SPDX-License-Identifier: Apache-2.0
#include "cli/train/start_table.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "cli/train/memory_report.h"

namespace penstock::cli {
namespace {

std::string note_line(const run::Run& run, run::Topic topic) {
  const std::string note = run.note(topic);
  if (note.empty()) return {};
  std::string line(name_of(topic));
  line.resize(10, ' ');
  return line + note + "\n";
}

// A requested exchange has no note.
std::string exchange_line(const run::Run& run) {
  const std::string chosen = note_line(run, run::Topic::Exchange);
  if (!chosen.empty() || run.exchange == schedule::ExchangeMode::Off) return chosen;
  return "exchange  " + std::string(name_of(run.exchange)) + ": " +
         std::to_string(run.program.exchanges.size()) + " actions' attention is shared in a step\n";
}

std::string experts_line(const run::Run& run) {
  const model::Shape& shape = run.shape();
  if (shape.experts == 1) return {};
  std::string text = "experts   " + std::to_string(shape.experts) + ", " +
                     std::to_string(shape.experts_per_token) + " of them for each token";
  if (shape.shared_ffn > 0) text += ", and one of width " + std::to_string(shape.shared_ffn) + " for all";
  if (run.mesh.expert > 1) text += ", over " + std::to_string(run.mesh.expert) + " ranks";
  text += "; memory is predicted for an even load";
  if (run.options.moe.forced_balance)
    text += "; FORCED BALANCE: tokens go to the experts in turn, so the routers choose nothing";
  if (run.options.moe.skew > 0)
    text += "; FORCED SKEW " + exact_number(run.options.moe.skew) + ": the routers choose nothing";
  return text + "\n";
}

std::string copies_line(const run::TrainOptions& train) {
  if (train.buddy_every == 0) return {};
  return "copies    of weights and moments after every " +
         (train.buddy_every == 1 ? "step" : std::to_string(train.buddy_every) + " steps") +
         ", in this host's memory and, if there are several, another's (" + train.buddy_dir + ")\n";
}

std::string slices_of(const run::Run& run) {
  const auto [least, most] = std::ranges::minmax(run.program.slices);
  const std::string counts =
      least == most ? std::to_string(most) : std::to_string(least) + " to " + std::to_string(most);
  return counts + (most == 1 ? " slice" : " slices");
}

}  // namespace

std::string start_table(const run::Run& run, const std::string& machine, int threads) {
  const model::Shape& shape = run.shape();
  const run::TrainOptions& train = run.options.train;
  const Tokens tokens = train.batch * run.options.data.seq_len;
  const std::string chosen = run.note(run::Topic::Schedule);
  std::ostringstream text;
  text << "model     " << print_count(static_cast<double>(model::total_parameters(shape)))
       << " parameters: " << shape.layers << " layers, hidden " << shape.hidden << ", ffn " << shape.ffn
       << ", " << shape.heads << " heads (" << shape.kv_heads << " for keys and values), vocabulary "
       << shape.vocab << ", " << train.precision << "\n"
       << "step      " << counted(train.batch, "sequence") << " of " << run.options.data.seq_len
       << " tokens, "
       << print_count(static_cast<double>(tokens) * model::flops_per_token(shape, run.options.data.seq_len))
       << "FLOP (6·(N − embedding) + 6·L·H·d·s a token); " << counted(train.steps, "step") << "\n"
       << "schedule  " << run.program.name << ": " << counted(run.program.device_count(), "device") << ", "
       << counted(run.stages(), "stage") << ", " << counted(run.program.micro_batches(), "micro-batch")
       << " of " << slices_of(run) << (chosen.empty() ? "" : "; ") << chosen << "\n"
       << experts_line(run) << note_line(run, run::Topic::Layers) << note_line(run, run::Topic::Context)
       << exchange_line(run) << note_line(run, run::Topic::Gathers) << copies_line(train) << "machine   "
       << machine << ", " << threads << (threads == 1 ? " thread" : " threads") << " a rank\n"
       << memory_before(run);
  return text.str();
}

}  // namespace penstock::cli
