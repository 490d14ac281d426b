// SPDX-License-Identifier: Apache-2.0
// The README's commands are carried out as they stand there, in a folder that has the files they name.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

// Lines of a document that begin with a program's name.
std::vector<std::string> commands_in(const std::string& document) {
  std::ifstream file(fs::path(PENSTOCK_SOURCE_DIR) / document);
  std::vector<std::string> commands;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("penstock ") || line.starts_with("mpirun ") || line.starts_with("cmp ")) {
      commands.push_back(line.substr(0, line.find('#')));
    }
  }
  return commands;
}

// A shell in a folder like this repository's, with a shorter demo; run.toml is any run of the reader's own.
class Reader {
 public:
  Reader() {
    for (const char* folder : {"plans", "hardware", "examples"})
      fs::copy(fs::path(PENSTOCK_SOURCE_DIR) / folder, scratch_ / folder);
    for (const char* folder : {"runs", "build", "build/demo", "build/release"})
      fs::create_directory(scratch_ / folder);
    fs::create_symlink(PENSTOCK_PROGRAM, scratch_ / "build/release/penstock");
    write_run("run.toml", "runs/mine");
    write_run("runs/demo.toml", "build/demo/run");
  }

  Ending run_command(std::string command) {
    if (command.starts_with("penstock profile")) command += " --budget 0";  // else it takes a minute
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    return run_program(
        {"sh", "-c", "cd " + scratch_.path() + " && export PATH=$PWD/build/release:$PATH && " + command});
  }

 private:
  void write_run(const std::string& file, const std::string& directory) {
    std::string run = small_run_file(scratch_);
    const std::string folder = scratch_ / "run";
    run.replace(run.find(folder), folder.size(), directory);
    scratch_.write(file, run);
  }

  Scratch scratch_;
};

void expect_commands_work(const std::string& document, std::size_t least) {
  const auto commands = commands_in(document);
  ASSERT_GE(commands.size(), least);
  Reader reader;
  for (const std::string& command : commands) {
    const Ending ending = reader.run_command(command);
    EXPECT_EQ(ending.exit_code, 0) << command << "\n" << ending.out << ending.err;
  }
}

TEST(Readme, HasNoCommandThatFails) { expect_commands_work("README.md", 8); }

// Among them comparisons of weights that other meshes have trained.
TEST(MeshDocument, HasNoCommandThatFails) { expect_commands_work("docs/mesh.md", 6); }

// The documents have below each picture the command that drew it; ./dev bench pictures carries them out.
void expect_drawn(const std::string& document, int least) {
  const fs::path docs = fs::path(PENSTOCK_SOURCE_DIR) / "docs";
  std::ifstream file(docs / document);
  std::string picture;
  int drawn = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find("(pictures/");
    if (line.starts_with("![") && begin != std::string::npos)
      picture = line.substr(begin + 1, line.find(')', begin) - begin - 1);
    if (!line.starts_with("`penstock show") || picture.empty()) continue;
    const Ending ending = Reader().run_command(line.substr(1, line.find('`', 1) - 1));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    std::ifstream stored(docs / picture);
    const std::string wanted{std::istreambuf_iterator<char>(stored), {}};
    EXPECT_TRUE(ending.out == wanted) << picture << " is another picture; ./dev bench pictures draws it anew";
    picture.clear();
    ++drawn;
  }
  EXPECT_GE(drawn, least);
  EXPECT_EQ(picture, "") << "has no command";
}

TEST(SlimpipeDocument, HasPicturesThatItsCommandsDraw) { expect_drawn("slimpipe.md", 3); }

TEST(MeshDocument, HasAPictureThatItsCommandDraws) { expect_drawn("mesh.md", 1); }

}  // namespace
}  // namespace penstock::testing
