// SPDX-License-Identifier: Apache-2.0
// Copies of a run's state in the memory of its hosts, so that a failure of a process or of one host costs few
// steps and no disk read. (In the spirit of Gemini, Wang et al. 2023, with files in memory, which outlive the
// processes.)
//
// Every `every` steps each rank copies the weights and moments that it alone writes to its host's memory, and
// sends the copy to a rank on another host. The step waits only for the local copy; the messages travel
// during the next step, whose end waits for them. With `every` = 1 the step itself waits for them, so that no
// completed step can be lost. Two copies alternate, so one is complete at any moment. Of the copies from
// earlier starts, only those that the run resumes from stay, until one new copy exists and the second begins.
// The second takes their memory, so a resumed start needs no more than the first one.
//
// Call from the rank's own thread only. All calls but touched() are collective.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "schedule/program.h"
#include "train/checkpoint/copy_slot.h"
#include "train/checkpoint/facts.h"
#include "train/checkpoint/file_share.h"
#include "train/checkpoint/layout.h"
#include "train/checkpoint/saved_state.h"

namespace penstock::train {

// Of messages between owners and keepers of copies: the first channel that no schedule uses. Copies are
// brought before a run begins, and sent while it runs.
inline constexpr int kCopiesChannel = schedule::kChannels;

class HostCopies {
 public:
  struct Setting {
    std::string directory;  // of this run, in each host's memory
    std::int64_t every = 1;
    std::string run;  // number of the run (run_number.h)
  };

  // `shares` (of `files`) refer to live memory, which must outlive this. `facts`: of the step that the run
  // resumes from, whose copies nobody reads any more; step 0 for a new run. Takes memory for two copies of
  // the rank's own share and two of each that it keeps for others: at once, or in two halves after a resume.
  // Throws RunError naming the path and the bytes requested.
  HostCopies(Setting setting, const std::vector<CheckpointFile>& files, std::vector<FileShare> shares,
             const CheckpointFacts& facts, comm::World world);
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Call after every step that a run may resume from; makes a copy when one is due. `facts` returns the
  // step's facts without files; called on rank 0. Throws like the constructor.
  void after_step(std::int64_t step, const std::function<CheckpointFacts()>& facts);

  // Waits for the messages of the current round. Call it also after steps that a run may not resume from: a
  // round replaces older copies, so all ranks must have exchanged messages since they settled the previous
  // round.
  void settle();

  // Removes the copies and those of earlier starts. Call when the run needs no copies any more.
  void remove();

  // Bytes of the slots written so far, which are in this process's resident set: half of all after the first
  // round.
  Bytes touched() const;

 private:
  struct Slots {  // the alternating copies of one rank
    int owner = 0;
    Bytes text_room = 0, bytes = 0;  // of each slot
    std::vector<CopySlot> slots;
  };

  void add_slot(Slots& slots) const;
  void add_slots();  // one more per rank that has copies here
  void replace_older();
  void pair_up(std::int64_t from, Bytes text_room, Bytes bytes);
  std::string text_of(std::int64_t step, const std::function<CheckpointFacts()>& facts, std::uint64_t sum);
  void begin(std::int64_t step, const std::function<CheckpointFacts()>& facts);
  void post(CopySlot& own);

  const Setting setting_;
  std::vector<FileSums> files_;  // names only
  const std::vector<FileShare> shares_;
  comm::World world_;
  std::string start_;
  bool first_on_host_ = false;
  std::optional<int> keeper_;  // of this rank's copies
  Slots own_;
  std::vector<Slots> kept_;  // copies of other ranks
  Bytes bytes_ = 0;          // of one copy per rank
  std::int64_t rounds_ = 0;
  std::vector<comm::Request> requests_;  // of the current round
};

// Returns for each rank the rank on another host that keeps its copy; nullopt if there is only one host.
// `hosts`: the ranks of each host. With the ranks in host order, a rank's keeper is as many places further as
// the largest host has ranks: so it is on another host, and every rank keeps one copy. If that host has more
// than half of all ranks, the others split its copies.
std::vector<std::optional<int>> keepers_of(const std::vector<std::vector<int>>& hosts);

// Returns the directory for copies of the run in `output_directory` (path as rank 0 sees it), under `memory`,
// an in-memory file system on each host. Collective.
std::string copies_directory(const std::string& memory, const std::string& output_directory,
                             comm::World world);

// Ranks from `working` on will have no work. Sends the copies of the run with this number from hosts that
// have only such ranks to the memory of other hosts, however long it takes. `host`: this rank's. Returns why
// this rank could not write some of them, for want of room for example. Collective.
std::vector<std::string> bring_copies(const std::string& directory, const std::string& run,
                                      const std::string& host, int working, comm::World world);

// Whether bring_copies() would send any. Changes nothing. Collective over all ranks.
bool has_copies_to_bring(const std::string& directory, const std::string& run, const std::string& host,
                         int working, comm::World world);

// Creates the directory of copies, private to the user. Throws RunError naming it.
void make_private_directory(const std::string& directory);

// Removes all copies, so that a new run does not resume from an older one's. Call on every host.
void clear_copies(const std::string& directory);

// Bytes that earlier starts have left in this host's memory.
Bytes bytes_of_copies(const std::string& directory);

// A state of which these ranks' hosts have every part, complete and undamaged.
struct FoundCopies {
  CheckpointFacts facts;
  std::shared_ptr<SavedState> state;
};
// Returns the newest such state after `step` of the run with this number, if there is one. Calls `damaged`
// with the path of each copy that this rank's host has damaged. Collective.
std::optional<FoundCopies> find_copies(
    const std::string& directory, const std::string& run, std::int64_t step, comm::World world,
    const std::function<void(const std::string& path)>& damaged = [](const std::string&) {});

}  // namespace penstock::train
