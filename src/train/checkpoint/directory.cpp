// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/directory.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/file_system.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "files/safetensors.h"
#include "train/checkpoint/layout.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFacts = std::size_t{1} << 28;

// Empty if the directory does not exist; throws InputError if it exists but cannot be read.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  if (fs::symlink_status(directory, error).type() == fs::file_type::not_found) return names;
  for (const fs::path& entry : files::entries_of(directory, error)) names.push_back(entry.filename());
  if (error) throw InputError(directory + ": cannot be read: " + error.message());
  return names;
}

std::string inside(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

void require_sum(std::uint64_t found, std::uint64_t recorded, const std::string& what) {
  if (found == recorded) return;
  throw InputError(what + " is damaged: its checksum is " + files::checksum_text(found) + ", " +
                   files::checksum_text(recorded) + " was recorded");
}

void verify_file(const std::string& path, const FileSums& sums, const std::function<void()>& after_tensor) {
  files::InputFile input(path);  // reads the tensors: a mapping ends the process at a page it cannot read
  const files::Safetensors file(input);
  require_sum(files::checksum(file.head()), sums.head, path + ": the header");
  if (file.tensors().size() != sums.tensors.size()) {
    throw InputError(path + ": has " + std::to_string(file.tensors().size()) + " tensors; " +
                     std::to_string(sums.tensors.size()) + " were recorded");
  }
  for (const auto& [name, sum] : sums.tensors) {
    const files::StoredTensor* tensor = file.find(name);
    if (!tensor) throw InputError(path + ": has no tensor \"" + printable(name) + "\"");
    require_sum(files::word_sum(input, file.begin_of(*tensor), tensor->bytes.size()), sum,
                path + ": tensor \"" + name + "\"");
    if (after_tensor) after_tensor();
  }
}

// Largest file first, each goes to the share with the fewest bytes so far. A missing file has 0 bytes.
std::vector<std::size_t> files_of_share(const std::string& checkpoint, const CheckpointFacts& facts,
                                        int share, int shares) {
  std::vector<std::pair<std::uintmax_t, std::size_t>> sizes;  // with index into facts.files
  for (const FileSums& file : facts.files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(inside(checkpoint, file.file), error);
    sizes.emplace_back(error ? 0 : size, sizes.size());
  }
  std::ranges::sort(sizes, std::greater());
  std::vector<std::uintmax_t> bytes(static_cast<std::size_t>(shares));
  std::vector<std::size_t> chosen;
  for (const auto& [size, number] : sizes) {
    const auto least = std::ranges::min_element(bytes);
    *least += size;
    if (least - bytes.begin() == share) chosen.push_back(number);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace

std::string CheckpointDirectory::of_step(std::int64_t step) const {
  return inside(path_, checkpoint_name(step));
}

std::vector<std::int64_t> CheckpointDirectory::steps() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(path_)) {
    constexpr std::string_view prefix = "step-";
    const auto step =
        name.starts_with(prefix) ? parse_integer(std::string_view(name).substr(prefix.size())) : std::nullopt;
    if (step && checkpoint_name(*step) == name) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

void CheckpointDirectory::clear_partial() const {
  for (const std::string& name : names_in(path_)) {
    if (name.ends_with(files::kPartial)) files::remove_all(inside(path_, name));
  }
}

void CheckpointDirectory::set_aside_after(std::int64_t step) const {
  for (const std::int64_t later : steps()) {
    if (later <= step) continue;
    const std::string aside = of_step(later) + files::kDamaged;
    files::remove_all(aside);
    if (files::file_system().rename(of_step(later), aside) != 0) {
      files::fail_to("cannot be renamed", of_step(later));
    }
  }
}

void CheckpointDirectory::keep_newest(std::int64_t count) const {
  const std::vector<std::int64_t> all = steps();
  for (std::size_t i = 0; i + static_cast<std::size_t>(count) < all.size(); ++i) {
    // Renamed first: a checkpoint that lacks files must not look complete.
    if (files::file_system().rename(of_step(all[i]), partial(all[i])) == 0) {
      files::remove_all(partial(all[i]));
    }
  }
}

CheckpointDirectory checkpoints_in(const std::string& output_directory) {
  return CheckpointDirectory(inside(output_directory, files::kCheckpoints));
}

CheckpointDirectory checkpoints_of(const run::Run& run) { return checkpoints_in(run.options.output.dir); }

CheckpointFacts read_checkpoint_facts(const CheckpointDirectory& directory, std::int64_t step) {
  const std::string path = inside(directory.of_step(step), kCheckpointFacts);
  CheckpointFacts facts = parse_checkpoint_facts(files::read_text(path, kLongestFacts), path);
  if (facts.step != step) throw InputError(path + ": is from step " + std::to_string(facts.step));
  return facts;
}

void verify_checkpoint(const std::string& checkpoint, const CheckpointFacts& facts, int share, int shares,
                       const std::function<void()>& after_tensor) {
  if (share == 0) {
    const std::string index = inside(checkpoint, kWeightIndex);
    require_sum(files::checksum(files::read_text(index, kLongestFacts)), facts.index, index);
  }
  for (const std::size_t file : files_of_share(checkpoint, facts, share, shares))
    verify_file(inside(checkpoint, facts.files[file].file), facts.files[file], after_tensor);
}

void verify_weights(const std::string& folder, int share, int shares,
                    const std::function<void()>& after_tensor) {
  const std::string path = inside(folder, kCheckpointFacts);
  const std::optional<std::string> text = files::read_text_if_there(path, kLongestFacts);
  if (!text) return;
  CheckpointFacts facts;
  try {
    facts = parse_checkpoint_facts(*text, path);
  } catch (const InputError& unreadable) {
    throw InputError(unreadable.what() +
                     std::string("; rename that file, and the weights are read without checksums"));
  }
  std::erase_if(facts.files, [](const FileSums& sums) { return !has_weights(sums.file); });
  verify_checkpoint(folder, facts, share, shares, after_tensor);
}

}  // namespace penstock::train
