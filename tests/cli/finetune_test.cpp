// SPDX-License-Identifier: Apache-2.0
// The five commands of docs/data.md, from conversations to a fine-tuned folder in Hugging Face's form.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

class Finetune : public ::testing::Test {
 protected:
  Ending succeed(const Arguments& arguments) {
    const Ending ending = program(arguments);
    EXPECT_EQ(ending.exit_code, 0) << arguments[0] << ": " << ending.err;
    return ending;
  }
  Arguments tuning(const std::string& directory) const {
    return {"train",           kSource + "/runs/finetune.toml",
            "--model.config",  scratch_ / "base",
            "--model.weights", scratch_ / "base",
            "--data.megatron", scratch_ / "sums",
            "--train.steps",   "20",
            "--train.threads", "1",
            "--output.dir",    scratch_ / directory};
  }
  double loss(const std::string& directory, std::size_t step) const {
    return nlohmann::json::parse(lines_of(scratch_.read(directory + "/metrics.jsonl")).at(step))["loss"];
  }

  Scratch scratch_;
};

TEST_F(Finetune, GoesFromConversationsToAFolderInFiveCommands) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "line " + std::to_string(i) + "\n";
  scratch_.write("text", text);
  succeed({"train", kSource + "/runs/demo.toml", "--data.text", scratch_ / "text", "--train.steps", "3",
           "--parallel.pp", "1", "--train.threads", "1", "--output.dir", scratch_ / "run"});
  succeed({"convert", scratch_ / "run", "-o", scratch_ / "base"});
  const Ending converted = succeed({"convert", kSource + "/examples/sums.jsonl", "-o", scratch_ / "sums"});
  EXPECT_NE(converted.out.find("of them targets"), std::string::npos) << converted.out;
  succeed(tuning("tuned"));
  EXPECT_LT(loss("tuned", 19), 0.9 * loss("tuned", 0));
  succeed({"convert", scratch_ / "tuned", "-o", scratch_ / "folder"});
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "folder/config.json"));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "folder/model.safetensors"));

  Arguments all = tuning("all");
  all.insert(all.end(), {"--data.loss", "all"});
  succeed(all);
  EXPECT_NE(loss("all", 0), loss("tuned", 0)) << "the mask chooses the targets";
}

}  // namespace
}  // namespace penstock::testing
