// SPDX-License-Identifier: Apache-2.0
#include "files/option_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/option_text.h"
#include "base/random.h"
#include "failure.h"
#include "files/run_files.h"
#include "run/changed.h"
#include "run/description_file.h"
#include "run/options.h"
#include "scratch.h"

namespace penstock::run {
namespace {

Options read(std::string_view text) {
  Options options;
  files::read_toml(text, "run.toml", describe(options));
  return options;
}

std::string refusal_of(std::string_view text) {
  return failure<InputError>([&] { read(text); });
}

TEST(RunFile, ReadsEveryKeyOfTheDocumentedFile) {
  const Options options = read(R"(
[model]
layers = 12
kv_heads = 4
rope_theta = 500000
tied_embeddings = true
[data]
text = "corpus.txt"
seq_len = 2048
[parallel]
pp = 2
layers = [7, 5]
[schedule]
name = "slimpipe"
slices = 4
[memory]
offload = "auto"
[train]
lr = 1e-3
betas = [0.8, 0.99]
shuffle = false
[output]
dir = "runs/x"
)");
  EXPECT_EQ(options.model.shape.layers, 12);
  EXPECT_EQ(options.model.shape.rope_theta, 500000.0);
  EXPECT_TRUE(options.model.shape.tied_embeddings);
  EXPECT_EQ(options.data.text, "corpus.txt");
  EXPECT_EQ(options.parallel.layers.list, (Integers{7, 5}));
  EXPECT_EQ(options.schedule.slices, 4);
  EXPECT_EQ(options.memory.offload.word, "auto");
  EXPECT_EQ(options.train.betas, (Numbers{0.8, 0.99}));
  EXPECT_EQ(options.output.dir, "runs/x");
}

TEST(RunFile, LeavesTheDefaultsOfTheDesign) {
  const Options options = read("[data]\ntext = \"a\"\n");
  EXPECT_EQ(options.train.steps, 100);
  EXPECT_EQ(options.train.batch, 8);
  EXPECT_EQ(options.train.lr, 3e-4);
  EXPECT_EQ(options.train.timeout, 120);
  EXPECT_EQ(options.train.precision, "bf16");
  EXPECT_EQ(options.data.seq_len, 1024);
  EXPECT_EQ(options.output.dir, "runs/demo");
}

TEST(RunFile, PrintsWhatItReadsBackToTheSame) {
  Options options = read("[data]\ntext = \"\\u00e9 \\\"x\\\"\\\\\\u007f\\t\"\n[train]\nlr = 1e-22\n");
  options.parallel.layers.list = {3, 2, 1};
  options.memory.keep = {"q", "k"};
  options.memory.offload = {.number = 0.5};
  const std::string text = printed(options);
  EXPECT_EQ(printed(read(text)), text);
  EXPECT_EQ(read(text).data.text, "\xC3\xA9 \"x\"\\\x7F\t");
}

TEST(RunFile, NamesFileAndLineOfAnUnknownKey) {
  EXPECT_EQ(refusal_of("[train]\nsteps = 3\nstep = 4\n"),
            "run.toml:3: unknown key train.step; did you mean train.steps?");
  EXPECT_EQ(refusal_of("[train]\nseq_len = 3\n"),
            "run.toml:2: unknown key train.seq_len; did you mean data.seq_len?");
  EXPECT_EQ(refusal_of("[modle]\nlayers = 3\n"),
            "run.toml:1: unknown section [modle]; did you mean [model]?");
  EXPECT_EQ(refusal_of("steps = 3\n"), "run.toml:1: unknown key steps; did you mean train.steps?");
  EXPECT_EQ(refusal_of("train = 3\n"), "run.toml:1: train is a section; write [train]");
}

TEST(RunFile, NamesTheValueOfTheWrongType) {
  EXPECT_EQ(refusal_of("[train]\nsteps = \"3\"\n"),
            "run.toml:2: train.steps = \"3\" is not an integer; it must be from 1 to 1000000000000");
  EXPECT_EQ(refusal_of("[train]\nshuffle = 1\n"),
            "run.toml:2: train.shuffle = 1 is not a truth value (true or false)");
  EXPECT_EQ(refusal_of("[train]\nsteps = 2024-01-01\n"),
            "run.toml:2: train.steps is a date or time; it must be an integer");
  EXPECT_EQ(refusal_of("[train.steps]\nx = 1\n"),
            "run.toml:1: train.steps is a section; it must be an integer");
  EXPECT_EQ(refusal_of("[parallel]\nlayers = [[1], 2]\n"),
            "run.toml:2: parallel.layers is a list; it must be a list of integers or word");
  EXPECT_EQ(
      refusal_of("[parallel]\nlayers = [1, \"2\"]\n"),
      "run.toml:2: parallel.layers = [1, \"2\"] is not a list of integers or word; it must be from 1 to "
      "65536 or \"even\"");
  EXPECT_NE(refusal_of("[[train]]\nsteps = 1\n"), "");
}

TEST(RunFile, RefusesNumbersThatAreNone) {
  EXPECT_EQ(refusal_of("[train]\nlr = nan\n"), "run.toml:2: train.lr = nan is not a finite number");
  EXPECT_EQ(refusal_of("[train]\nlr = -inf\n"), "run.toml:2: train.lr = -inf is not a finite number");
  EXPECT_EQ(refusal_of("[train]\nlr = 0.0\n"), "run.toml:2: train.lr = 0.0 must be positive");
  EXPECT_EQ(refusal_of("[parallel]\npp = 0\n"), "run.toml:2: parallel.pp = 0 must be from 1 to 65536");
  EXPECT_EQ(refusal_of("[model]\nhidden = -256\n"),
            "run.toml:2: model.hidden = -256 must be from 1 to 1048576");
  EXPECT_NE(refusal_of("[train]\nsteps = 99999999999999999999\n"), "");
}

TEST(RunFile, RefusesHalfWrittenAndBinaryTextInOneLine) {
  const std::string whole = printed(read("[data]\ntext = \"a\"\n"));
  EXPECT_TRUE(refusal_of("[data]\ntext = \"corp").starts_with("run.toml:2: "))
      << refusal_of("[data]\ntext = \"corp");
  EXPECT_NE(refusal_of(std::string_view("[data]\0\n", 8)), "");
  EXPECT_NE(refusal_of("\x7F"
                       "ELF\x02\x01\x01"),
            "");
  EXPECT_EQ(refusal_of(""),
            "run.toml: has no settings; write sections and keys, as in [model] config = \"\"");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(refusal_of(std::string_view(whole).substr(0, length)).find('\n'), std::string::npos);
  }
}

// The parser takes some of them for code that is never reached.
TEST(RunFile, RefusesLettersOfOtherAlphabetsOutsideOfStrings) {
  for (const char* key : {"modél", "Модель", "μοντέλο", "模型", "\u00A0model"}) {
    EXPECT_NE(refusal_of("[" + std::string(key) + "]\nlayers = 1\n").find("run.toml:1"), std::string::npos)
        << key;
    EXPECT_NE(refusal_of("[model]\n" + std::string(key) + " = 1\n").find("run.toml:2"), std::string::npos)
        << key;
  }
}

TEST(RunFile, SurvivesNoise) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::string noise = "[train]\nsteps = 1\n";
    for (std::uint64_t i = 0; i < 40; ++i) noise += static_cast<char>(random_bits(seed, i));
    failure<InputError>([&] { read(noise); });  // anything else ends the test
  }
}

TEST(RunFile, NamesAMissingFileAndADirectory) {
  const Scratch scratch;
  EXPECT_NE(failure<InputError>([&] { run::read_options(scratch / "none.toml"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(failure<InputError>([&] { run::read_options(scratch.path()); }).find("is a directory"),
            std::string::npos);
}

TEST(RunFile, OfARunDirectoryMeansTheScheduleBesideIt) {
  const Scratch scratch;
  const std::string before = "runs/before/schedule.csv";
  const auto file_of = [&](const char* name) { return run::read_options(scratch / name).schedule.file; };
  for (const char* name : {"run.toml", "my.toml"})
    scratch.write(name, "[schedule]\nfile = \"" + before + "\"\n");
  EXPECT_EQ(file_of("run.toml"), before) << "there is none beside it";
  scratch.write("schedule.csv", "0F0,0B0\n");
  EXPECT_EQ(file_of("run.toml"), before) << "it is no run's directory";
  scratch.write(files::kLock, "");
  EXPECT_EQ(file_of("run.toml"), scratch / "schedule.csv");
  EXPECT_EQ(file_of("my.toml"), before);
  scratch.write("run.toml", "[schedule]\nfile = \"my.csv\"\n");
  EXPECT_EQ(file_of("run.toml"), "my.csv");
}

TEST(RunFile, LetsTheCommandLineOverrideTheFile) {
  const Scratch scratch;
  scratch.write("run.toml", "[train]\nsteps = 5\nlr = 0.1\n");
  const std::vector<std::string> arguments{"--train.steps", "9", "--data.text=a=b", "--parallel.layers",
                                           "[2, 1]"};
  const Options options = run::read_options(scratch / "run.toml", arguments);
  EXPECT_EQ(options.train.steps, 9);
  EXPECT_EQ(options.train.lr, 0.1);
  EXPECT_EQ(options.data.text, "a=b");
  EXPECT_EQ(options.parallel.layers.list, (Integers{2, 1}));
}

TEST(RunFile, NamesWhatIsWrongOnTheCommandLine) {
  const auto refused = [](std::vector<std::string> arguments) {
    Options options;
    return failure<InputError>([&] { files::apply_overrides(arguments, describe(options)); });
  };
  EXPECT_EQ(refused({"--train.stepz", "9"}),
            "command line: unknown key train.stepz; did you mean train.steps?");
  EXPECT_EQ(refused({"--train.steps"}), "command line: --train.steps lacks its value, an integer");
  EXPECT_EQ(refused({"--train.lr", "nan"}),
            "command line: train.lr = \"nan\" is not a number; it must be positive");
  EXPECT_EQ(refused({"--train.steps=-1"}), "command line: train.steps = -1 must be from 1 to 1000000000000");
  EXPECT_EQ(
      refused({"--stepz", "9"}),
      "command line: \"--stepz\" is not a setting; write --section.key value, as in --model.config \"\"");
  EXPECT_EQ(refused({"--steps", "9"}),
            "command line: \"--steps\" is not a setting; did you mean --train.steps?");
  const std::vector<std::string> steps{"--steps"};
  EXPECT_EQ(failure<InputError>([&] { read_options("9", steps); }),
            "command line: \"--steps\" is not a setting; did you mean --train.steps?");
  EXPECT_EQ(refused({"9"}),
            "command line: \"9\" is not a setting; write --section.key value, as in --model.config \"\"");
}

// As for a program that was copied away from its folders.
TEST(Descriptions, WithoutTheirFolderNoneIsKnownAndTheFolderIsNamed) {
  const auto refusal = [](const Words& built_in) {
    return failure<InputError>([&] { find_description("gadgets", "h100", "", built_in); });
  };
  const std::string lack =
      "gadget \"h100\" is not found: there is no folder gadgets/ here or next to the program; give a path";
  EXPECT_EQ(refusal({}), lack);
  EXPECT_EQ(refusal({"penstock"}), lack + ", or one of penstock");
}

TEST(Descriptions, OfANameThatNoFileCanHaveAreUnknown) {
  const std::string name(5000, 'h');
  EXPECT_NE(failure<InputError>([&] {
              find_description("hardware", name, PENSTOCK_SOURCE_DIR, {});
            }).find("is unknown"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::run
