// SPDX-License-Identifier: Apache-2.0
#include "cli/train/prepare.h"

#include <filesystem>
#include <iostream>
#include <optional>

#include "backend/device.h"
#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "base/whole.h"
#include "cli/agree.h"
#include "cli/tell.h"
#include "cli/train/copies_in_memory.h"
#include "cli/train/host_check.h"
#include "cli/train/memory_report.h"
#include "cli/train/resolve_run.h"
#include "comm/launcher.h"
#include "comm/single.h"
#include "files/checksum.h"
#include "profile/host_memory.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"
#include "schedule/text.h"
#include "train/device.h"
#include "train/sample.h"
#include "train/trainable.h"

namespace penstock::cli {
namespace {

train::RunStart start_of(const TrainFlags& flags) {
  return flags.source.resumes ? train::RunStart::Resume : train::RunStart::New;
}

void check_sample(const TrainFlags& flags, const run::DataOptions& data) {
  if (flags.sample > 0 && data.text.empty())
    throw InputError("--sample needs the text of data.text; leave it out with data.megatron");
  const Tokens seq_len = data.seq_len;
  const Tokens room = seq_len - train::prompt_bytes(seq_len);
  if (flags.sample <= room) return;
  throw InputError("--sample " + std::to_string(flags.sample) + ": a sequence of data.seq_len = " +
                   std::to_string(seq_len) + " has room for " + std::to_string(room) +
                   " tokens after the prompt; use at most that, or a greater data.seq_len");
}

void check_offload(const run::Run& run) {
  std::error_code error;
  const std::string& directory = run.options.memory.offload_dir;
  const bool to_disk = run.offload > 0 && run.offload_to == run::OffloadTo::Disk;
  if (to_disk && directory.empty() && run.options.output.gather)
    throw InputError(
        "memory.offload_to = \"disk\" needs memory.offload_dir, a folder on each host, since output.gather "
        "keeps the run directory on rank 0's host");
  if (!directory.empty() && run.options.memory.offload_to != "disk")
    throw InputError("memory.offload_dir = " + json_quote(directory) +
                     " is for records that go to disk: use memory.offload_to = \"disk\", or leave it out");
  if (!directory.empty() && !std::filesystem::is_directory(directory, error)) {
    throw InputError("memory.offload_dir = " + json_quote(directory) +
                     " is not a directory; name an existing one");
  }
}

// Only its last folder is made: more would hide a mistyped path, and fill a disk instead of memory.
void check_buddy_directory(const run::TrainOptions& train) {
  if (train.buddy_every == 0) return;
  std::error_code error;
  const std::filesystem::path folder = folder_of_copies(train);
  const bool there = std::filesystem::exists(folder, error);
  if (!std::filesystem::is_directory(there ? folder : folder.parent_path(), error))
    throw InputError("train.buddy_dir = " + json_quote(train.buddy_dir) +
                     " is not a directory; name an existing one, such as \"/dev/shm\"" +
                     (there ? "" : ", or a new one in an existing one"));
}

// Prints the memory table before a refusal.
void check_memory(const run::Run& run, const RanksHere& here) {
  const profile::HostMemory memory = profile::host_memory();
  try {
    here.threads ? require_gpu_of_threads(run) : require_gpu_memory(run, here.gpu);
    require_host_memory(run, here.host, free_on_host(memory, here.given_back), here.gpu);
    require_room_for_copies(run, here.host, free_for_copies(run.options.train, here.given_back));
  } catch (const NoAnswer&) {
    if (comm::launched_rank() == 0) std::cout << memory_before(run) << std::flush;
    throw;
  }
}

// Checks the weights and returns their checksum.
std::optional<std::uint64_t> checked_weights(const run::ModelOptions& model, const WeightsShare& verified) {
  check_weights(model);
  check_sums_of_weights(model, verified);
  return sum_of_weights(model);
}

// For a resumed run that has kept nothing.
void check_weights_together(Prepared& prepared, comm::Communicator& world) {
  const run::ModelOptions& model = prepared.run.options.model;
  if (model.weights.empty()) return;
  Refusal refusal = agree_on_weights(
      world, [&](const WeightsShare& verified) { prepared.weights = checked_weights(model, verified); });
  if (!refusal) refusal = agree(refusal_of([&] { require_same(agreement_of(prepared), world); }), world);
  if (refusal) throw InputError(refusal.text);
}

// Does not remove it: it may be meant for an attempt that failed before it could stop.
void tell_stop_request(const train::RunDirectory& directory) {
  const std::string stop = directory.stop_request();
  std::error_code error;
  if (std::filesystem::exists(stop, error))
    tell_remark(stop + " exists: the run stops after its first step; remove the file to continue");
}

void take_state(Prepared& prepared, comm::Communicator& world) {
  prepared.resumption = choose_state(prepared.run, *prepared.data, world);
  if (!prepared.resumption.from) check_weights_together(prepared, world);
  if (!prepared.directory) return;
  const auto& chosen = prepared.resumption.from;
  if (!chosen) return;
  const train::CheckpointDirectory checkpoints = train::checkpoints_of(prepared.run);
  checkpoints.set_aside_after(chosen->checkpoint);
  checkpoints.keep_newest(prepared.run.options.train.keep_checkpoints);
}

}  // namespace

RanksHere threads_here(const TrainFlags& flags, const run::Options& options, int ranks) {
  const std::optional<backend::Gpu> gpu = backend::gpu();
  return {.host = ranks,
          .gpu = gpu ? ceil_div(ranks, gpu->gpus) : 0,
          .threads = true,
          .given_back = copies_given_back(options, flags.source.resumes, *comm::make_single())};
}

Prepared prepare(const TrainFlags& flags, run::Run run, int ranks, const RanksHere& here,
                 const WeightsShare& verified) {
  train::require_trainable(run);
  train::require_device(run);
  check_offload(run);
  check_buddy_directory(run.options.train);
  run::check_ranks(run, ranks);
  check_sample(flags, run.options.data);
  run::require_fit(run);
  check_memory(run, here);
  Prepared prepared{.run = std::move(run)};
  const run::Options& options = prepared.run.options;
  if (!flags.source.resumes) {
    prepared.weights = checked_weights(options.model, verified);
  } else if (std::filesystem::exists(options.model.weights)) {
    check_weights(options.model);
  }
  const model::Shape& shape = options.model.shape;
  prepared.data =
      std::make_unique<train::TokenData>(options.data, options.train, shape.vocab,
                                         train::TokenData::Use{.work = run::token_work(options),
                                                               .replicas = options.numerics.replicas,
                                                               .trims = options.schedule.slice_tokens > 0});
  return prepared;
}

std::string agreement_of(const Prepared& prepared) {
  const auto line = [](const std::string& what, std::uint64_t checksum) {
    return what + " of checksum " + files::checksum_text(checksum) + "\n";
  };
  const run::Options& options = prepared.run.options;
  const std::string text =
      configuration_of(options) +
      line(run::name_of_schedule(options), files::checksum(schedule::to_csv(prepared.run.schedule)));
  if (!prepared.data) return text;
  const std::string key = options.data.text.empty() ? "data.megatron" : "data.text";
  const train::Content content = prepared.data->content();
  return text + key + " of " + counted(prepared.data->samples(), "sample") + "\n" +
         line(key + " with tokens", content.tokens) +
         line(key + " with documents and targets", content.marks) +
         line(key + " with held-out data", content.held_out) +
         (prepared.weights ? line("model.weights", *prepared.weights) : "");
}

void open_directory(const TrainFlags& flags, Prepared& prepared) {
  const std::string& path = prepared.run.options.output.dir;
  prepared.directory =
      std::make_unique<train::RunDirectory>(path, start_of(flags), prepared.run.options.schedule.file);
  if (flags.source.resumes) train::checkpoints_of(prepared.run).clear_partial();
  if (prepared.directory->taken_over())
    tell_remark("taking over " + path + ": the run in it completed no step");
}

void check_directory(const TrainFlags& flags, const Prepared& prepared) {
  const run::Options& options = prepared.run.options;
  train::RunDirectory::check(options.output.dir, start_of(flags), options.schedule.file);
}

void take_up(const TrainFlags& flags, Prepared& prepared, comm::Communicator& world) {
  if (flags.source.resumes) {
    take_state(prepared, world);
  } else if (!flags.dry_run) {
    forget_older_copies(prepared.run.options, world);
  }
  if (prepared.directory && !prepared.resumption.finished) tell_stop_request(*prepared.directory);
}

}  // namespace penstock::cli
