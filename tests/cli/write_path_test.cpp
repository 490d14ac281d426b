// SPDX-License-Identifier: Apache-2.0
// Whole commands on disks that fail at any call, in this process.
#include "write_path.h"

#include <ATen/Parallel.h>

#include <filesystem>

#include "base/option_text.h"
#include "cli/program.h"
#include "cli/run_program.h"
#include "cli/train/resume.h"
#include "cli/train/run_outputs.h"
#include "cli/train/same_hosts.h"
#include "comm/single.h"
#include "files/atomic_file.h"
#include "run/resolve/resolve.h"
#include "train/machine_probe.h"
#include "train/run.h"

namespace penstock::testing {
namespace {

// Throws what the command complains of; when it `succeeds` too, if it complains of something.
void command(Arguments arguments, bool succeeds = false) {
  arguments.insert(arguments.begin(), "penstock");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int exit_code = cli::run(static_cast<int>(words.size()), words.data());
  ::testing::internal::GetCapturedStdout();
  const Ending ending{.exit_code = exit_code, .err = ::testing::internal::GetCapturedStderr()};
  const auto complaints = ending.complaints();
  EXPECT_TRUE(exit_code == 0 || !succeeds) << exit_code;
  if (exit_code == 0 && !(succeeds && !complaints.empty())) return;
  EXPECT_EQ(complaints.size(), 1u) << ending.err;
  throw RunError(complaints.empty() ? "no complaint" : complaints.front());
}

std::string text() {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "line " + std::to_string(i * i) + " of a text\n";
  return lines;
}

void write_run_file(const Scratch& scratch) {
  scratch.write("corpus.txt", text());
  scratch.write("run.toml",
                "[model]\nlayers = 1\nhidden = 4\nffn = 4\nheads = 1\nkv_heads = 1\n[data]\ntext = \"" +
                    scratch / "corpus.txt" +
                    "\"\nseq_len = 8\nvalidation_fraction = 0\n[train]\nsteps = 2\nbatch = 1\nprecision = "
                    "\"f32\"\nthreads = 1\ncheckpoint_every = 1\n");
}

// Two steps with a checkpoint each, as the command does them on one rank; again from where it stopped.
void train(const Scratch& scratch, const std::string& directory) {
  const std::string run_directory = directory + "/run";
  const Words words{"--output.dir=" + run_directory};
  at::set_num_threads(1);
  const run::Run run = run::resolve(run::read_options(scratch / "run.toml", words), train::probe_machine(1));
  const train::TokenData data(run.options.data, run.options.train, run.shape().vocab);
  const bool again = !contents_of(run_directory + "/metrics.jsonl").empty();
  const train::RunDirectory files(run_directory, again ? train::RunStart::Resume : train::RunStart::New);
  const auto alone = comm::make_single();
  if (again) train::checkpoints_of(run).clear_partial();
  const auto refusal = cli::refuse_other_directories(run_directory, *alone);
  ASSERT_FALSE(refusal) << refusal.text;
  cli::Resumption resumption;
  if (again) resumption = cli::choose_state(run, data, *alone);
  if (resumption.finished) return;
  run::Options options = run.options;
  files::write_atomically(files.config(), print_toml(run::describe(options)));
  const train::RunObserver silent{.progress = [](const train::ProgressState&) {},
                                  .say = [](const std::string&) {}};
  const train::RunControl control{.resumed = resumption.from, .machine_flops = 1e9};
  train::run(run, data, *alone, &files, silent, control);
  cli::write_pages(files);
}

bool grows(const std::string& file) {
  return file.find("metrics.jsonl") != file.npos || file.find("events.out") != file.npos;
}

// Times differ from run to run, and the directory's name stands in run.toml.
FilesBelow weights_and_checkpoints(FilesBelow files) {
  std::erase_if(files, [](const auto& file) {
    return file.first.find("checkpoints/") == file.first.npos && !file.first.ends_with("weights.safetensors");
  });
  return files;
}

// They name the folder that they are in.
FilesBelow without_run_files(FilesBelow files) {
  std::erase_if(files, [](const auto& file) { return file.first.ends_with("run.toml"); });
  return files;
}

TEST(WritePaths, OfARunLoseNothingWhicheverCallFails) {
  const Scratch scratch;
  write_run_file(scratch);
  expect_the_law({.name = "train",
                  .before = {},
                  .write =
                      [&](const std::string& directory) {
                        try {
                          train(scratch, directory);
                        } catch (const InputError& refused) {  // what the directory is asked for at first
                          throw RunError(refused.what());
                        }
                      },
                  .grows = grows,
                  .same = weights_and_checkpoints,
                  .in_turn = true});
}

// Pages and traces are drawn of the same program, so that all bytes are the same.
TEST(WritePaths, OfCommandsLoseNothingWhicheverCallFails) {
  const Scratch scratch;
  write_run_file(scratch);
  command({"train", scratch / "run.toml", "--output.dir", scratch / "run"});
  command({"convert", scratch / "run", "-o", scratch / "folder"});
  scratch.write("chat.jsonl",
                "{\"messages\": [{\"role\": \"user\", \"content\": \"2 + 2?\"}, {\"role\": \"assistant\", "
                "\"content\": \"4\"}]}\n");
  const auto path = [](std::string name, std::function<Arguments(const std::string&)> arguments,
                       bool in_turn) {
    return WritePath{.name = std::move(name),
                     .before = {},
                     .write = [=](const std::string& directory) { command(arguments(directory)); },
                     .same = without_run_files,
                     .in_turn = in_turn};
  };
  const auto simulate = [&](const std::string& d) {
    return Arguments{"simulate", "--schedule", "1f1b",        "-p",      "2",          "-m",
                     "2",        "--report",   d + "/x.html", "--trace", d + "/x.json"};
  };
  for (const WritePath& each :
       {path(
            "convert to Hugging Face's form",
            [&](const std::string& d) {
              return Arguments{"convert", scratch / "run", "-o", d + "/x", "--shard", "1 KB"};
            },
            false),
        path(
            "convert to our form",
            [&](const std::string& d) {
              return Arguments{"convert", scratch / "folder", "-o", d + "/x"};
            },
            false),
        path(
            "convert texts",
            [&](const std::string& d) {
              return Arguments{"convert", scratch / "corpus.txt", "-o", d + "/x"};
            },
            false),
        path(
            "convert conversations",
            [&](const std::string& d) {
              return Arguments{"convert", scratch / "chat.jsonl", "-o", d + "/x"};
            },
            false),
        path("simulate", simulate, true),
        path(
            "report",
            [&](const std::string& d) {
              return Arguments{"report", scratch / "run", "-o", d + "/x.html", "--trace", d + "/x.json"};
            },
            true)}) {
    // A conversion that is killed between two renames leaves a .bin, which the next one does not overwrite.
    const bool several = each.name == "convert texts" || each.name == "convert conversations";
    expect_the_law(each, std::span(kInjectedFaults).first(several ? 3 : std::size(kInjectedFaults)));
    if (HasFailure()) return;
  }
}

// A run that could be started again must not end with its supervisor.
TEST(WritePaths, OfASupervisedRunsAttemptsMayFail) {
  const Scratch scratch;
  write_run_file(scratch);
  std::filesystem::create_directory(scratch / "run");
  const Arguments supervise{"supervise",          "--",           "true",         "train",
                            scratch / "run.toml", "--output.dir", scratch / "run"};
  const auto attempt = [&] { return failure<RunError>([&] { command(supervise, true); }); };
  int calls = 0;
  {
    const FaultyFiles counting;
    EXPECT_EQ(attempt(), "");
    calls = counting.calls();
  }
  for (const InjectedFault& fault : kInjectedFaults) {
    int failures = 0;
    for (int at = 0; at < calls; ++at) {
      SCOPED_TRACE(std::string(fault.text) + " at call " + std::to_string(at));
      scratch.write("run/attempts.json", "old");
      const FaultyFiles faulty(at, fault.error, fault.fault);
      const std::string complaint = attempt();
      failures += !complaint.empty();
      if (complaint.empty()) continue;
      EXPECT_TRUE(complaint.starts_with(scratch / "run/attempts.json")) << complaint;
      EXPECT_TRUE(complaint.ends_with(std::string(fault.text) + "; the attempts are not recorded"))
          << complaint;
      FilesBelow left = files_below(scratch / "run");
      if (fault.fault == FaultyFiles::Fault::ForGood)  // as if killed: a file under another name stays
        std::erase_if(left, [](const auto& file) { return file.first != "attempts.json"; });
      EXPECT_EQ(left, (FilesBelow{{"attempts.json", "old"}}));
    }
    EXPECT_GT(failures, 0) << fault.text;
  }
  command(supervise);
  EXPECT_NE(scratch.read("run/attempts.json"), "old");
}

}  // namespace
}  // namespace penstock::testing
