// SPDX-License-Identifier: Apache-2.0
// penstock data, and runs whose steps are planned for their documents, as a shell sees them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "cli/run_program.h"
#include "files/mapped_file.h"
#include "files/megatron_files.h"

namespace penstock::cli {
namespace {

using penstock::testing::Arguments;
using penstock::testing::Ending;
using penstock::testing::lines_of;
using Json = nlohmann::json;

struct Folder {
  Scratch scratch;

  // Documents of log-normal lengths, and a list of these.
  Folder() {
    std::vector<std::int32_t> lengths;
    std::string listed;
    for (std::uint64_t i = 0; i < 400; ++i) {
      lengths.push_back(1 + static_cast<std::int32_t>(std::exp(3.0 + 1.2 * normal(1, i))));
      listed += std::to_string(lengths.back()) + "\n";
    }
    add("a", lengths);
    scratch.write("lengths.txt", listed);
  }
  void add(const std::string& prefix, const std::vector<std::int32_t>& lengths) const {
    std::vector<std::uint16_t> tokens;
    for (const std::int32_t length : lengths) {
      for (std::int32_t k = 0; k < length; ++k)
        tokens.push_back(static_cast<std::uint16_t>(random_bits(2, tokens.size()) % 250));
    }
    scratch.write(prefix + ".bin", testing::bin_of(tokens));
    scratch.write(prefix + ".idx", testing::idx_of(lengths).bytes());
  }
  std::string file(const std::string& name) const { return scratch / name; }
};

Ending run_data(Arguments arguments) {
  arguments.insert(arguments.begin(), PENSTOCK_PROGRAM);
  return testing::run_program(arguments);
}

std::string run_file(const Folder& folder) {
  const std::string path = folder.file("run.toml");
  folder.scratch.write(
      "run.toml",
      "[model]\nlayers = 4\nhidden = 32\nffn = 48\nheads = 4\nvocab = 259\n[data]\nmegatron = \"" +
          folder.file("a") +
          "\"\nseq_len = 256\nvalidation_fraction = 0\n[parallel]\npp = 2\n[train]\nbatch = 4\nsteps = 2\n"
          "precision = \"f32\"\nthreads = 1\n[output]\ndir = \"" +
          folder.file("out") + "\"\n");
  return path;
}

TEST(DataCommand, ComparesPackingsAndCutsOfTheRunsDataOrOfAList) {
  const Folder folder;
  const std::string file = run_file(folder);
  // As some editors save texts.
  folder.scratch.write("marked.txt", "\xef\xbb\xbf" + folder.scratch.read("lengths.txt"));
  for (const Arguments& source :
       {Arguments{file}, {folder.file("lengths.txt"), file}, {folder.file("marked.txt"), file}}) {
    Arguments command{"data"};
    command.insert(command.end(), source.begin(), source.end());
    command.insert(command.end(), {"--hardware", "assumed", "--steps", "3", "--json"});
    const Ending ending = run_data(command);
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    const Json rows = Json::parse(ending.out);
    std::set<std::string> packings;
    for (const Json& row : rows) {
      packings.insert(row["packing"].get<std::string>());
      EXPECT_GE(row["work_of_slots"].get<double>(), 1);
      EXPECT_GE(row["work_of_micro_batches"].get<double>(), 1);
      EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
      EXPECT_LT(row["attended"].get<double>(), 0.9);
      if (row["slice_tokens"] != 0) {
        EXPECT_EQ(row["padding"], 0);
      }
    }
    EXPECT_EQ(packings.size(), 3);
    EXPECT_EQ(rows.size(), 10);
  }
  const Ending text = run_data({"data", file, "--hardware", "assumed"});
  EXPECT_NE(text.out.find("best  data.packing"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("documents 400"), std::string::npos) << text.out;
}

// Held-out tokens that are enough for one packed sample, but not for one of a stream.
TEST(DataCommand, ReadsNothingThatIsHeldOut) {
  const Folder folder;
  const Ending ending =
      run_data({"data", run_file(folder), "--hardware", "assumed", "--data.mask", "documents",
                "--data.packing", "best_fit", "--data.validation_fraction", "0.005"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("concat"), std::string::npos) << ending.out;
}

TEST(DataCommand, HoldsNoDocumentOfAListOut) {
  const Folder folder;
  const std::string file = run_file(folder);
  folder.scratch.write("few.txt", "300\n200\n600\n");
  for (const Arguments& key : {Arguments{"--data.split", "1,1,0"}, {"--data.validation_fraction", "0.001"}}) {
    const Ending ending = run_data(
        testing::with({"data", folder.file("few.txt"), file, "--hardware", "assumed", "--steps", "1"}, key));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_NE(ending.out.find("documents 3 of 1.10 K tokens"), std::string::npos) << ending.out;
  }
}

TEST(DataCommand, TellsLengthsThatTheirShareOfDocumentsDoesNotExceed) {
  const Folder folder;
  std::string lengths;
  for (int i = 1; i <= 10; ++i) lengths += std::to_string(100 * i) + "\n";
  folder.scratch.write("ten.txt", lengths);
  const Ending ending =
      run_data({"data", folder.file("ten.txt"), run_file(folder), "--hardware", "assumed", "--steps", "1"});
  EXPECT_NE(ending.out.find("median 500, 90 % up to 900, 99 % up to 1000, longest 1000"), std::string::npos)
      << ending.out << ending.err;
}

TEST(DataCommand, ReadsAListOfAnyName) {
  const Folder folder;
  const Ending ending = run_data({"data", "stats", run_file(folder)});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("stats: cannot be opened"), std::string::npos) << ending.err;
}

// A run file that packs and slices of its own accord.
std::string packed_run_file(const Folder& folder) {
  const std::string path = run_file(folder);
  std::string text = files::read_text(path, 1 << 20);
  text.insert(text.find("seq_len"), "packing = \"balanced\"\nwindow = 8\n");
  folder.scratch.write("run.toml", text + "[schedule]\nslice_tokens = 16\n");
  return path;
}

TEST(DataCommand, SaysEveryKeyOfTheBestAndSlicesOthersAsTheRunFileDoes) {
  const Folder folder;
  const std::string file = packed_run_file(folder);
  const Arguments command{"data", file, "--hardware", "assumed", "--steps", "1"};
  const Ending table = run_data(testing::with(command, {"--json"}));
  ASSERT_EQ(table.exit_code, 0) << table.err;
  const auto step_s = [&](const Arguments& keys) {
    const Ending ending =
        run_data(testing::with({"simulate", file, "--hardware", "assumed", "--json", "--step", "1"}, keys));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["makespan_s"].get<double>();
  };
  const Json rows = Json::parse(table.out), first = rows[0];
  EXPECT_EQ(first["slices"], 16);
  EXPECT_DOUBLE_EQ(first["step_s"].get<double>(),
                   step_s({"--data.packing", "concat", "--data.window", "0", "--schedule.slice_tokens", "0",
                           "--schedule.slices", "16"}));

  const auto work = [](const Json& row) { return row["work_per_second"].get<double>(); };
  Json best = first;
  for (const Json& row : rows) {
    if (work(row) > work(best)) best = row;
  }
  const std::string last = lines_of(run_data(command).out).back();
  ASSERT_TRUE(last.starts_with("best  ")) << last;
  Arguments keys;
  for (const std::string_view key : split(std::string_view(last).substr(6), ',')) {
    const std::string text(trim(key));
    const auto equals = text.find(" = ");
    const bool left_out = text.starts_with("without ");  // data.window, of which 0 is the default
    keys.push_back("--" + (left_out ? text.substr(8) : text.substr(0, equals)));
    keys.push_back(left_out ? "0" : text.substr(equals + 3));
    if (keys.back().front() == '"') keys.back() = keys.back().substr(1, keys.back().size() - 2);
  }
  EXPECT_DOUBLE_EQ(best["step_s"].get<double>(), step_s(keys)) << last;
}

TEST(DataCommand, WithoutAMaskEverySequenceIsAttendedWhole) {
  const Folder folder;
  const std::string file = run_file(folder);
  const Ending ending =
      run_data({"data", file, "--data.mask", "none", "--hardware", "assumed", "--steps", "1", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Ending simulated =
      run_data({"simulate", file, "--data.mask", "none", "--hardware", "assumed", "--json"});
  const Json rows = Json::parse(ending.out), run = Json::parse(simulated.out);
  EXPECT_EQ(rows.size(), 2) << "concat, cut by tokens and by work";
  for (const Json& row : rows) EXPECT_NEAR(row["attended"].get<double>(), 1, 1e-9);
  const double makespan = run["makespan_s"].get<double>();
  EXPECT_NEAR(rows[0]["step_s"].get<double>(), makespan, 1e-9 * makespan);
}

TEST(DataCommand, RefusesWhatIsNoListOfLengths) {
  const Folder folder;
  const std::string file = run_file(folder);
  for (const char* text : {"12\n0\n", "12\nx\n", "12\n-3\n", "12\n1.5\n", "12\n1099511627775\n"}) {
    folder.scratch.write("bad.txt", text);
    const Ending ending = run_data({"data", folder.file("bad.txt"), file, "--hardware", "assumed"});
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_NE(ending.err.find("bad.txt, line 2"), std::string::npos) << ending.err;
  }
  folder.scratch.write("bad.txt", "\n\n");
  EXPECT_EQ(run_data({"data", folder.file("bad.txt"), file, "--hardware", "assumed"}).exit_code, 2);
  EXPECT_EQ(run_data({"data", file, "--steps", "0"}).exit_code, 2);
  EXPECT_NE(run_data({"data", file, "bad.txt"}).err.find("comes before the run file"), std::string::npos);
  const Ending alone = run_data({"data", folder.file("lengths.txt")});
  EXPECT_NE(alone.err.find("lengths.txt: is a list of lengths; the run file comes after it"),
            std::string::npos)
      << alone.err;
}

// As penstock data simulates it: each choice's own step.
TEST(SimulateCommand, TakesTheDocumentsOfAStep) {
  const Folder folder;
  const std::string file = run_file(folder);
  const auto makespan = [&](Arguments more) {
    more.insert(more.begin(), {"simulate", file, "--hardware", "assumed", "--json"});
    const Ending ending = run_data(more);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["makespan_s"].get<double>();
  };
  const Ending rows = run_data({"data", file, "--hardware", "assumed", "--steps", "1", "--json"});
  for (const Json& row : Json::parse(rows.out)) {
    Arguments keys{"--data.packing", row["packing"], "--schedule.cut", row["cut"]};
    if (row["slice_tokens"] != 0)
      keys.insert(keys.end(), {"--schedule.slice_tokens", row["slice_tokens"].dump()});
    const double whole = makespan(keys);
    keys.insert(keys.begin(), {"--step", "1"});
    const double first = makespan(keys);
    EXPECT_DOUBLE_EQ(first, row["step_s"].get<double>()) << row;
    EXPECT_LT(first, whole) << row;
    keys[1] = "2";
    EXPECT_NE(makespan(keys), first) << row;
  }
  const std::string report = folder.file("report.html");
  const Ending told =
      run_data({"simulate", file, "--hardware", "assumed", "--step", "1", "--report", report});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(files::read_text(report, 1 << 26).find("tokens 0 to"), std::string::npos);
  EXPECT_NE(run_data({"simulate", file, "--hardware", "assumed"}).out.find("--step 1 takes"),
            std::string::npos);
  const Ending alike = run_data({"simulate", file, "--step", "1", "--data.mask", "none"});
  EXPECT_EQ(alike.exit_code, 2);
  EXPECT_EQ(lines_of(alike.err).size(), 1u) << "refused before the machine is measured\n" << alike.err;
  EXPECT_EQ(run_data({"simulate", file, "--step", "0"}).exit_code, 2);
  EXPECT_EQ(run_data({"simulate", "--schedule", "gpipe", "-p", "2", "-m", "2", "--step", "1"}).exit_code, 2);
}

TEST(PlannedSteps, AreToldByMetricsReportAndTrace) {
  const Folder folder;
  const std::string file = run_file(folder);
  const Ending trained =
      run_data({"train", file, "--ranks", "2", "--data.packing", "balanced", "--schedule.cut", "work",
                "--schedule.slice_tokens", "40", "--schedule.exchange", "levelled"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  for (const std::string& line : lines_of(files::read_text(folder.file("out/metrics.jsonl"), 1 << 20))) {
    const Json step = Json::parse(line);
    EXPECT_EQ(step["padding_tokens"], 0);
    EXPECT_GT(step["attended"].get<double>(), 0);
    EXPECT_GE(step["work_of_slots"].get<double>(), 1);
    EXPECT_LT(step["work_of_slots"].get<double>(), 1.5);
    EXPECT_EQ(step["work_of_replicas"], 1);
  }
  const Json documents = Json::parse(files::read_text(folder.file("out/documents.json"), 1 << 20));
  EXPECT_EQ(documents["step"], 2);
  EXPECT_EQ(documents["micro_batches"].size(), 4);
  EXPECT_NE(files::read_text(folder.file("out/trace.json"), 1 << 26).find("\"holds\":\"tokens 0 to"),
            std::string::npos);
  EXPECT_NE(files::read_text(folder.file("out/report.html"), 1 << 26).find("tokens 0 to"), std::string::npos);
  EXPECT_EQ(run_data({"simulate", folder.file("out")}).exit_code, 0);

  // Damaged, of another step or missing, it is named.
  const auto expect_refused = [&](const char* fault) {
    const Ending refused = run_data({"simulate", folder.file("out")});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find(fault), std::string::npos) << refused.err;
  };
  folder.scratch.write("out/documents.json", "{\"step\":2,\"micro_batches\":[[[3]]]}");
  expect_refused("documents.json: does not have the documents of 4 micro-batches");
  Json of_another_step = documents;
  of_another_step["step"] = 1;
  folder.scratch.write("out/documents.json", of_another_step.dump());
  expect_refused("documents.json: has the documents of step 1; timeline.json next to it ends with step 2");
  std::filesystem::remove(folder.file("out/documents.json"));
  expect_refused("documents.json: cannot be opened");
}

// The first replica's documents reach over slices, the second's do not.
TEST(PlannedSteps, OfWhichOneReplicaExchangesNothingComeToAnEnd) {
  const Folder folder;
  folder.add("b", {256, 256, 64, 64, 64, 64, 64, 64, 64, 64});
  const Ending trained = run_data({"train",
                                   run_file(folder),
                                   "--ranks",
                                   "4",
                                   "--data.megatron",
                                   folder.file("b"),
                                   "--data.packing",
                                   "best_fit",
                                   "--parallel.dp",
                                   "2",
                                   "--schedule.slices",
                                   "4",
                                   "--schedule.exchange",
                                   "levelled",
                                   "--train.shuffle",
                                   "false",
                                   "--train.steps",
                                   "1",
                                   "--train.timeout",
                                   "20"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST(PlannedSteps, GoOnFromACheckpointWithTheSameBits) {
  const Folder folder;
  const std::string file = run_file(folder);
  const Arguments settings{"--ranks", "2", "--data.packing", "balanced", "--schedule.slice_tokens", "40"};
  const auto train = [&](const Arguments& more) {
    Arguments command{"train", file};
    command.insert(command.end(), settings.begin(), settings.end());
    command.insert(command.end(), more.begin(), more.end());
    const Ending ending = run_data(command);
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
  };
  const auto last_line = [&](const std::string& directory) {
    Json line =
        Json::parse(lines_of(files::read_text(folder.file(directory + "/metrics.jsonl"), 1 << 20)).back());
    return std::pair(line["loss"], line["tokens"]);
  };
  train({"--train.steps", "4", "--output.dir", folder.file("whole"), "--train.lr_schedule", "constant"});
  train({"--train.steps", "2", "--output.dir", folder.file("parts"), "--train.lr_schedule", "constant"});
  train({"--train.steps", "4", "--output.dir", folder.file("parts"), "--train.lr_schedule", "constant",
         "--resume"});
  EXPECT_EQ(last_line("parts"), last_line("whole"));
}

TEST(PlannedSteps, RefuseWhatNeedsSequencesOfOneLength) {
  const Folder folder;
  const std::string file = run_file(folder);
  const auto refused = [&](const Arguments& keys, const std::string& part) {
    Arguments command{"train", file, "--ranks", "2"};
    command.insert(command.end(), keys.begin(), keys.end());
    const Ending ending = run_data(command);
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_NE(ending.err.find(part), std::string::npos) << ending.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("out")));
  };
  const Arguments packed{"--data.packing", "best_fit", "--schedule.slice_tokens", "40"};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), packed.begin(), packed.end());
    return more;
  };
  refused({"--schedule.slice_tokens", "40"}, "use \"best_fit\" or \"balanced\"");
  refused(with({"--schedule.slices", "4"}), "are both given; keep one");
  refused(with({"--train.micro_batch", "2"}), "train.micro_batch = 2: use 1");
  refused(with({"--schedule.chunks", "2"}), "use chunks = 1");
  refused({"--data.packing", "best_fit", "--data.mask", "none"}, "data.mask = \"none\" does not");
  refused({"--data.window", "8"}, "belongs to data.packing = \"balanced\"");
  refused({"--data.long_documents", "refuse"}, "use data.packing = \"best_fit\" or \"balanced\"");
  refused({"--data.packing", "best_fit", "--data.long_documents", "refuse", "--data.seq_len", "64"},
          "more than data.seq_len = 64, and data.long_documents = \"refuse\"");
}

}  // namespace
}  // namespace penstock::cli
