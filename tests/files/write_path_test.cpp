// SPDX-License-Identifier: Apache-2.0
// Every kind of file that is written, on disks that fail at any call.
#include "write_path.h"

#include <vector>

#include "files/atomic_file.h"
#include "files/directory.h"
#include "files/event_file.h"
#include "files/megatron/loss_mask.h"
#include "files/megatron/writer.h"
#include "files/parted_file.h"
#include "files/safetensors.h"
#include "files/spill_file.h"
#include "files/text_bytes.h"

namespace penstock::testing {
namespace {

using Directory = const std::string&;

bool is_event_file(const std::string& file) { return file.starts_with("events."); }

// Their names tell when they were made.
FilesBelow without_event_files(FilesBelow files) {
  std::erase_if(files, [](const auto& file) { return is_event_file(file.first); });
  return files;
}

void write_pair(Directory directory) {
  files::MegatronWriter pair(directory + "/x", files::TokenType::U8, 3);
  files::LossMaskWriter mask(directory + "/x");
  for (const std::string_view document : {"abcde", "f", "ghijklm"}) {
    pair.add(files::text_bytes(document));
    pair.end_document();
    mask.add(std::string(document.size(), document.size() > 1));
  }
  pair.commit(mask.file());
}

void write_tensors(Directory directory, float value) {
  const std::vector<float> numbers(6, value);
  const files::StoredTensor tensors[] = {
      {"a", files::ElementType::F32, {2, 3}, std::as_bytes(std::span(numbers))},
      {"b", files::ElementType::F32, {1}, std::as_bytes(std::span(numbers)).first(4)}};
  files::write_safetensors(directory + "/weights", tensors, {{"format", "pt"}});
}

// Both parts, under another name until they are there.
void write_parts(Directory directory, std::string_view text) {
  try {
    constexpr std::uint64_t kWindow = 4;  // bytes
    files::PartedFile file(directory + "/parts.new", text.size(), kWindow);
    file.write(0, text.substr(0, 3));
    file.write(3, text.substr(3));
    file.flush();
    if (files::file_system().rename(directory + "/parts.new", directory + "/parts") != 0)
      files::fail_to("cannot be renamed", directory + "/parts");
  } catch (...) {
    files::file_system().remove(directory + "/parts.new");
    throw;
  }
}

void write_folder(Directory directory) {
  const std::string temporary = directory + "/folder.part";
  try {
    files::remove_all(temporary);
    files::make_directory(temporary);
    files::write_atomically(temporary + "/a", "one");
    files::write_atomically(temporary + "/b", "two");
    files::publish_directory(temporary, directory + "/folder");
  } catch (...) {
    files::remove_all(temporary);
    throw;
  }
}

void spill(Directory directory) {
  const files::SpillFile file(directory, directory + "/records", 4096);
  file.write(100, files::text_bytes("some records"));
  file.write(9, files::text_bytes("more"));
  std::string back(12, ' ');
  file.read(100, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, "some records");
}

void write_curves(Directory directory, std::int64_t resumed) {
  files::EventFile file(directory, resumed);
  const files::NamedNumber numbers[] = {{"train/loss", 5.5}};
  file.write(resumed + 1, numbers);
  file.write(resumed + 2, numbers);
}

const std::vector<WritePath>& paths() {
  static const std::vector<WritePath> all{
      {"a text", [](Directory d) { files::write_atomically(d + "/x", "old"); },
       [](Directory d) { files::write_atomically(d + "/x", "a newer text"); }},
      {"a text in parts",
       {},
       [](Directory d) {
         files::AtomicFile file(d + "/x");
         for (const char* part : {"one", "two", "three"}) file.write(part);
         file.commit();
       }},
      {"tensors", [](Directory d) { write_tensors(d, 1); }, [](Directory d) { write_tensors(d, 2); }},
      {"a file of several writers", [](Directory d) { write_parts(d, "something older"); },
       [](Directory d) { write_parts(d, "newer"); }},
      {"a folder", {}, write_folder},
      {"a pair of tokens with its mask", {}, write_pair},
      {"records away from memory", {}, spill},
      {"curves", [](Directory d) { write_curves(d, 0); }, [](Directory d) { write_curves(d, 2); },
       is_event_file, without_event_files}};
  return all;
}

class WritePaths : public ::testing::TestWithParam<WritePath> {};

TEST_P(WritePaths, LoseNothingWhicheverCallFails) { expect_the_law(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Files, WritePaths, ::testing::ValuesIn(paths()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

}  // namespace
}  // namespace penstock::testing
