// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/launcher.h"
#include "comm/texts.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/host_copies.h"
#include "train/checkpoint/state_copy.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

// A copy in this host's memory.
struct Copy {
  std::string path;
  files::MappedFile file;
  StateCopy facts;
  std::span<const std::byte> bytes;
  std::string text;
};

// Identifies the copies of one state, one per rank that wrote it.
struct State {
  std::int64_t step = 0;
  std::string start;
  int ranks = 1;
  friend auto operator<=>(const State&, const State&) = default;
};
// By state and writing rank; a host to which copies were brought may have one twice.
using CopiesByState = std::multimap<std::pair<State, int>, Copy>;

State state_of(const StateCopy& facts) { return {facts.step, facts.start, facts.ranks}; }

// Skips files that cannot be read, and other runs' copies.
CopiesByState copies_in(const std::string& directory, const std::string& run) {
  CopiesByState copies;
  for (const fs::path& entry : files::entries_of(directory)) {
    try {
      files::MappedFile file(entry.string());
      const auto contents = contents_of_slot(file.bytes());
      if (!contents) continue;
      StateCopy facts = parse_state_copy(contents->text, entry.string());
      if (facts.run != run || facts.bytes() != contents->bytes.size()) continue;
      if (facts.rank == 0) parse_checkpoint_facts(facts.checkpoint, entry.string());
      const std::pair key{state_of(facts), facts.rank};
      std::string text(contents->text);
      const std::span<const std::byte> bytes = contents->bytes;
      copies.emplace(key, Copy{entry.string(), std::move(file), std::move(facts), bytes, std::move(text)});
    } catch (const InputError&) {
      continue;
    }
  }
  return copies;
}

std::string list_of(const CopiesByState& copies) {
  std::ostringstream list;
  for (const auto& [key, copy] : copies)
    list << key.first.step << " " << key.first.start << " " << key.first.ranks << " " << key.second << "\n";
  return list.str();
}

// For each state, the rank that has each rank's copy.
using Holders = std::map<State, std::map<int, int>>;

Holders holders_in(const std::vector<std::string>& lists) {
  Holders holders;
  for (std::size_t holder = 0; holder < lists.size(); ++holder) {
    std::istringstream list(lists[holder]);
    State state;
    int rank = 0;
    while (list >> state.step >> state.start >> state.ranks >> rank)
      holders[state].emplace(rank, static_cast<int>(holder));
  }
  std::erase_if(holders, [](const auto& entry) { return std::ssize(entry.second) != entry.first.ranks; });
  return holders;
}

class StateInMemory : public SavedState {
 public:
  // `copies` must include the copies that this rank holds.
  StateInMemory(std::string directory, std::shared_ptr<const CopiesByState> copies, State state,
                std::map<int, int> holders, comm::World world)
      : directory_(std::move(directory)),
        copies_(std::move(copies)),
        state_(std::move(state)),
        holders_(std::move(holders)),
        world_(world) {
    for (const auto& [rank, holder] : holders_) {
      const std::string text = holder == world_->rank() ? copy_of(rank).text : std::string();
      const StateCopy facts = parse_state_copy(comm::broadcast_text(text, holder, *world_), name());
      if (rank == 0) facts_ = parse_checkpoint_facts(facts.checkpoint, name());
      std::uint64_t offset = 0;
      for (const CopiedTensor& tensor : facts.tensors) {
        parts_.emplace(tensor.name, Part{rank, tensor, offset});
        offset += tensor.bytes();
      }
    }
  }

  const CheckpointFacts& facts() const { return facts_; }

  void let_go() override {
    const std::lock_guard lock(letting_go_);
    copies_.reset();
  }

  std::string name() const override {
    return "memory of " + counted(std::ssize(hosts()), "rank") + ", step " + std::to_string(state_.step) +
           " (rm -r " + printable(directory_, 500) + " on every host forgets it)";
  }

  void for_tensors(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const override {
    std::vector<std::byte> whole;
    for (const FileSums& file : facts.files) {
      for (const auto& [tensor, sum] : file.tensors) {
        const bool wanted = wants(tensor);
        assemble(tensor, wanted, whole);
        const auto [first, last] = parts_.equal_range(tensor);
        if (first == last) throw InputError(name() + ": has no tensor \"" + tensor + "\"");
        const CopiedTensor& part = first->second.tensor;
        const files::StoredTensor stored{
            .name = tensor, .type = part.type, .shape = part.shape, .bytes = whole};
        visit({file, tensor, sum}, wanted ? &stored : nullptr);
      }
    }
  }

 private:
  struct Part {
    int rank = 0;  // the rank that wrote it
    CopiedTensor tensor;
    std::uint64_t offset = 0;  // in its copy's bytes
  };

  const Copy& copy_of(int rank) const { return copies_->find({state_, rank})->second; }

  std::vector<int> hosts() const {
    std::vector<int> distinct;
    for (const auto& [rank, holder] : holders_) distinct.push_back(holder);
    std::ranges::sort(distinct);
    distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
    return distinct;
  }

  // Broadcasts every part of the tensor from the rank that holds it.
  void assemble(const std::string& tensor, bool wanted, std::vector<std::byte>& whole) const {
    const auto [first, last] = parts_.equal_range(tensor);
    std::vector<std::byte> bytes;
    for (auto part = first; part != last; ++part) {
      const auto& [rank, copied, offset] = part->second;
      const int holder = holders_.at(rank);
      bytes.resize(copied.bytes());
      if (holder == world_->rank())
        std::ranges::copy(copy_of(rank).bytes.subspan(offset, bytes.size()), bytes.begin());
      world_->broadcast(bytes, holder);
      if (wanted) place(copied, bytes, whole);
    }
  }

  static void place(const CopiedTensor& tensor, const std::vector<std::byte>& bytes,
                    std::vector<std::byte>& whole) {
    whole.resize(tensor.whole_bytes());
    const std::size_t element = size_of(tensor.type);
    const std::byte* next = bytes.data();
    for (const RangeRun& run : tensor.runs) {
      const std::size_t count = static_cast<std::size_t>(run.count) * element;
      for (std::int64_t i = 0; i < run.times; ++i, next += count) {
        const auto element_of_whole = static_cast<std::size_t>(run.first + i * run.stride);
        std::copy_n(next, count, whole.data() + element_of_whole * element);
      }
    }
  }

  std::string directory_;
  std::mutex letting_go_;                        // ranks that are threads share this
  std::shared_ptr<const CopiesByState> copies_;  // until let_go()
  State state_;
  std::map<int, int> holders_;
  comm::World world_;
  CheckpointFacts facts_;
  std::multimap<std::string, Part> parts_;
};

// Drops the state's copies with damaged bytes: another host may have the same part intact. Collective,
// however long one rank's checks take.
void drop_damaged(CopiesByState& copies, const State& state, comm::World world,
                  const std::function<void(const std::string& path)>& tell) {
  AllAtWork work(world);
  std::erase_if(copies, [&](const auto& entry) {
    const auto& [key, copy] = entry;
    if (key.first != state) return false;
    const bool damaged = files::checksum(copy.bytes) != copy.facts.sum;
    work.still_working();
    if (damaged) tell(copy.path);
    return damaged;
  });
  work.end();
}

}  // namespace

std::optional<FoundCopies> find_copies(const std::string& directory, const std::string& run,
                                       std::int64_t step, comm::World world,
                                       const std::function<void(const std::string& path)>& damaged) {
  // Only the first rank of each host looks, since all would see the same.
  const std::vector<std::string> hosts = comm::all_texts(comm::host_id(), *world);
  const bool looks = std::ranges::find(hosts, hosts[world->rank()]) - hosts.begin() == world->rank();
  const auto copies = std::make_shared<CopiesByState>(looks ? copies_in(directory, run) : CopiesByState());
  const auto holders = [&] { return holders_in(comm::all_texts(list_of(*copies), *world)); };
  const Holders all = holders();
  for (auto found = all.rbegin(); found != all.rend() && found->first.step > step; ++found) {
    drop_damaged(*copies, found->first, world, damaged);
    const Holders whole = holders();
    const auto good = whole.find(found->first);
    if (good == whole.end()) continue;
    auto state = std::make_shared<StateInMemory>(directory, copies, good->first, good->second, world);
    CheckpointFacts facts = state->facts();
    return FoundCopies{std::move(facts), std::move(state)};
  }
  return {};
}

}  // namespace penstock::train
