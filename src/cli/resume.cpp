// SPDX-License-Identifier: Apache-2.0
#include "cli/resume.h"

#include <filesystem>
#include <span>

#include "base/text.h"
#include "cli/agree.h"
#include "train/checkpoint_settings.h"
#include "train/run.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

template <class T>
void broadcast_from_first(T& value, comm::Communicator& world) {
  world.broadcast(comm::writable_bytes_of(value), 0);
}

std::vector<std::int64_t> steps_on_first(const train::CheckpointDirectory& directory,
                                         comm::Communicator& world) {
  std::vector<std::int64_t> steps;
  if (world.rank() == 0) steps = directory.steps();
  auto count = static_cast<std::int64_t>(steps.size());
  broadcast_from_first(count, world);
  steps.resize(static_cast<std::size_t>(count));
  world.broadcast(std::as_writable_bytes(std::span(steps)), 0);
  return steps;
}

bool exists_on_first(const std::string& directory, const char* file, comm::Communicator& world) {
  std::error_code error;
  std::int64_t exists = fs::exists(fs::path(directory) / file, error) ? 1 : 0;
  broadcast_from_first(exists, world);
  return exists != 0;
}

std::string text_of(const train::SettingChange& change) {
  return change.name + " = " + printable(change.is, 200) + " where the checkpoint's run had " +
         printable(change.was, 200);
}

void require_fit(const train::CheckpointFacts& facts, const std::string& checkpoint,
                 const train::RunPlan& plan, const train::TextData& data) {
  for (const auto& change : train::changes(facts.settings, train::settings_of(plan, 1))) {
    if (change.fits) continue;
    throw InputError(checkpoint + " does not fit: " + text_of(change) + "; set it back");
  }
  if (facts.samples_per_epoch != data.samples()) {
    throw InputError(checkpoint + " does not fit: the data has " + std::to_string(data.samples()) +
                     " samples where the checkpoint's run had " + std::to_string(facts.samples_per_epoch) +
                     "; give the same data");
  }
  if (facts.step > plan.options.train.steps) {
    throw InputError("train.steps = " + std::to_string(plan.options.train.steps) + " is less than the " +
                     std::to_string(facts.step) + " steps that " + checkpoint +
                     " has done; use that or more");
  }
}

}  // namespace

Resumption choose_checkpoint(const train::RunPlan& plan, const train::TextData& data,
                             comm::Communicator& world) {
  const train::CheckpointDirectory directory = train::checkpoints_of(plan);
  const std::string& run = plan.options.output.dir;
  const std::vector<std::int64_t> steps = steps_on_first(directory, world);
  const bool ended = exists_on_first(run, "summary.json", world);
  Resumption chosen;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string checkpoint = directory.of_step(*step);
    train::CheckpointFacts facts;
    const Refusal damage = agree(refusal_of([&] {
                                   facts = train::read_checkpoint_facts(directory, *step);
                                   train::verify_checkpoint(checkpoint, facts, world.rank(), world.size());
                                 }),
                                 world);
    if (!damage) {
      require_fit(facts, checkpoint, plan, data);
      chosen.finished = ended && facts.step == plan.options.train.steps;
      chosen.checkpoint = std::move(facts);
      if (!chosen.remarks.empty()) chosen.remarks.push_back("going on from " + checkpoint + " instead");
      return chosen;
    }
    chosen.remarks.push_back("checkpoint " + checkpoint + " cannot be used: " + damage.text);
  }
  if (!steps.empty()) {
    throw InputError("output.dir = " + json_quote(run) + " holds no valid checkpoint: " +
                     chosen.remarks.front() + (steps.size() > 1 ? "; nor can the older ones" : ""));
  }
  if (ended) {
    throw InputError("output.dir = " + json_quote(run) +
                     " holds a run that ended without a checkpoint; name another directory for a new one");
  }
  chosen.remarks.push_back("output.dir = " + json_quote(run) +
                           " holds no checkpoint yet; the run begins again at step 1");
  return chosen;
}

std::vector<std::string> changed_settings(const train::CheckpointFacts& checkpoint,
                                          const train::RunPlan& plan, int threads) {
  std::vector<std::string> lines;
  for (const auto& change : train::changes(checkpoint.settings, train::settings_of(plan, threads))) {
    lines.push_back(text_of(change) + ": the run goes on, but not to the bits of one that never stopped");
  }
  return lines;
}

}  // namespace penstock::cli
