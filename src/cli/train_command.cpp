// SPDX-License-Identifier: Apache-2.0
// penstock train: carries out a run file, as a rank of mpirun, as threads of one process, or alone.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options_table.h"
#include "cli/plan_run.h"
#include "cli/run_file.h"
#include "cli/run_outputs.h"
#include "comm/mpi.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "files/atomic_file.h"
#include "train/machine.h"
#include "train/run.h"

namespace penstock::cli {
namespace {

struct TrainFlags {
  std::string file;
  int ranks = 1;
  bool print_config = false;
  bool dry_run = false;
  std::int64_t sample = 0;
  std::vector<std::string> overrides;
};

// Cores of the affinity mask when the launcher bound this rank to some, else a fair share of the host's.
int threads_of_rank(std::int64_t wanted, int ranks_here) {
  if (wanted > 0) return static_cast<int>(wanted);
  const int usable = train::this_machine().cores;
  const bool bound = usable < static_cast<int>(std::thread::hardware_concurrency());
  return bound && comm::launched_by_mpi() ? usable : std::max(1, usable / ranks_here);
}

Seconds steady_now() {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Everything a rank needs, read and checked before the first message.
struct Prepared {
  train::RunPlan plan;
  std::unique_ptr<train::TextData> data;
  std::unique_ptr<train::RunDirectory> directory;  // rank 0
};

Prepared prepare(const TrainFlags& flags, const ResolvedRun& resolved, int rank, int ranks) {
  check_ranks(resolved.options.parallel, ranks);
  Prepared prepared{.plan = plan_run(resolved)};
  prepared.data = std::make_unique<train::TextData>(resolved.options.data, resolved.options.train);
  if (rank == 0 && !flags.dry_run) {
    prepared.directory =
        std::make_unique<train::RunDirectory>(resolved.options.output.dir, train::RunStart::New);
  }
  return prepared;
}

void write_config(const train::RunDirectory& directory, train::RunOptions options) {
  files::write_atomically(directory.config(), print_toml(train::describe(options)));
}

void show_result(const train::Summary& summary, const Prepared& prepared, const std::string& sample) {
  std::cout << "trained   " << summary.steps << " steps, " << print_count(static_cast<double>(summary.tokens))
            << " tokens in " << print_seconds(summary.wall_s) << ", "
            << print_count(summary.tokens_per_second) << " tokens/s, loss " << number(summary.loss, 4)
            << "\n";
  if (summary.evaluation_loss && summary.bigram_loss) {
    std::cout << "held out  " << number(*summary.evaluation_loss, 4)
              << " nats a byte; a table of byte pairs has " << number(*summary.bigram_loss, 4) << "\n";
  }
  std::cout << memory_comparison(summary);
  if (!sample.empty()) std::cout << "sample    after the first 64 bytes held out\n\n" << sample << "\n\n";
  std::cout << "files     " << list_outputs(*prepared.directory);
}

void train_as_rank(const TrainFlags& flags, Prepared& prepared, int threads, comm::Communicator& world) {
  at::set_num_threads(threads);
  world.set_timeout(prepared.plan.options.train.timeout);
  const bool talks = world.rank() == 0;
  train::Progress progress({.stream = std::cerr,
                            .terminal = isatty(STDERR_FILENO) == 1,
                            .width = train::terminal_width,
                            .now = steady_now});
  const train::RunObserver observer{
      .progress = [&](const train::ProgressState& state) { progress.update(state); },
      .say = [&](const std::string& line) { progress.say(line); }};
  if (talks) {
    const train::Machine machine = train::this_machine();
    std::cout << start_table(prepared.plan, machine.processor + " (" + machine.instructions + ")", threads)
              << std::flush;
    write_config(*prepared.directory, prepared.plan.options);
  }
  const train::RunOutcome outcome =
      train::run(prepared.plan, *prepared.data, world, talks ? prepared.directory.get() : nullptr, observer);
  if (!talks) return;
  progress.finish();
  write_outputs(prepared.plan, outcome, *prepared.directory);
  const std::string sample =
      flags.sample > 0 ? train::sample_of(prepared.plan, *prepared.data, outcome.weights_file, flags.sample)
                       : std::string();
  show_result(outcome.summary, prepared, sample);
}

void report_failure(int rank, const std::exception& failure) {
  std::cerr << "penstock: rank " + std::to_string(rank) + ": " + failure.what() + "\n" << std::flush;
}

// Wrong input is found by all ranks alike, and then told once, by rank 0, before any rank begins to work.
struct Refusal {
  std::string text;
  Exit exit_code = Exit::Done;
};

template <class Work>
Refusal refusal_of(Work&& work) {
  try {
    work();
    return {};
  } catch (const InputError& error) {
    return {error.what(), Exit::WrongInput};
  } catch (const NoAnswer& error) {
    return {error.what(), Exit::No};
  }
}

// The refusal of the lowest rank that has one, on all ranks.
Refusal agree(const Refusal& mine, comm::Communicator& world) {
  std::int64_t refusing = mine.text.empty() ? -1 : world.size() - world.rank();
  world.all_reduce(&refusing, 1, comm::Type::I64, comm::Reduction::Max);
  if (refusing < 0) return {};
  const int speaker = world.size() - static_cast<int>(refusing);
  std::int64_t facts[] = {static_cast<std::int64_t>(mine.text.size()),
                          static_cast<std::int64_t>(mine.exit_code)};
  world.broadcast(std::as_writable_bytes(std::span(facts)), speaker);
  std::string text =
      world.rank() == speaker ? mine.text : std::string(static_cast<std::size_t>(facts[0]), '\0');
  world.broadcast(std::as_writable_bytes(std::span(text)), speaker);
  return {text, static_cast<Exit>(facts[1])};
}

Exit train_under_mpi(const TrainFlags& flags) {
  Exit exit_code = Exit::Done;
  comm::run_mpi(
      [&](comm::Communicator& world) {
        Prepared prepared;
        Refusal refusal = refusal_of([&] {
          prepared =
              prepare(flags, resolve(read_run_file(flags.file, flags.overrides)), world.rank(), world.size());
        });
        refusal = agree(refusal, world);
        if (!refusal.text.empty()) {
          if (world.rank() == 0) std::cerr << "penstock: " << refusal.text << "\n" << std::flush;
          exit_code = refusal.exit_code;
          return;
        }
        const int threads = threads_of_rank(prepared.plan.options.train.threads, comm::local_ranks());
        train_as_rank(flags, prepared, threads, world);
      },
      report_failure);
  return exit_code;
}

void train_here(const TrainFlags& flags, const ResolvedRun& resolved) {
  const int threads = threads_of_rank(resolved.options.train.threads, flags.ranks);
  Prepared prepared = prepare(flags, resolved, 0, flags.ranks);
  if (flags.dry_run) {
    const train::Machine machine = train::this_machine();
    std::cout << start_table(prepared.plan, machine.processor + " (" + machine.instructions + ")", threads);
    return;
  }
  if (flags.ranks == 1) {
    const auto alone = comm::make_single();
    return train_as_rank(flags, prepared, threads, *alone);
  }
  comm::run_ranks(flags.ranks,
                  [&](comm::Communicator& world) { train_as_rank(flags, prepared, threads, world); });
}

Exit train(const TrainFlags& flags) {
  const bool alone = flags.print_config || flags.dry_run || !comm::launched_by_mpi();
  if (!alone) return train_under_mpi(flags);
  ResolvedRun resolved = resolve(read_run_file(flags.file, flags.overrides));
  if (flags.print_config) {
    std::cout << print_toml(train::describe(resolved.options));
    return Exit::Done;
  }
  train_here(flags, resolved);
  return Exit::Done;
}

}  // namespace

void add_train_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = program.add_subcommand("train", "Carry out a run file.");
  command->add_option("file", flags->file, "the run file (TOML)")->required();
  command
      ->add_option("--ranks", flags->ranks,
                   "start so many ranks as threads of this process; not under mpirun")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--sample", flags->sample,
                   "at the end, draw so many tokens of text from the trained weights")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--print-config", flags->print_config, "print the resolved run file and end");
  command->add_flag("--dry-run", flags->dry_run, "check everything, print the start table and end");
  command->allow_extras();
  command->footer("Each key of the run file can be given here too, as --section.key VALUE:\n\n" +
                  run_options_help());
  command->callback([command, flags, &exit_code] {
    flags->overrides = command->remaining();
    exit_code = train(*flags);
  });
}

}  // namespace penstock::cli
