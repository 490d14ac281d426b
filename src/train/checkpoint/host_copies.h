// SPDX-License-Identifier: Apache-2.0
// Copies of a run's state in the memory of its hosts, so that a failure of a process, or of one host, costs
// few steps and no reading from disk. (In the spirit of Gemini, Wang et al. 2023, with files in memory, which
// outlive the processes.)
//
// Every `every` steps each rank copies what it alone writes of weights and moments to its host's memory, and
// sends it to a rank on another host. A step waits for the copying alone; the messages
// travel during the next step, whose end waits for them. With `every` = 1 the step itself does, so that no
// step that is done can be lost. Two copies alternate, so one is whole at any moment. Of what earlier starts
// have left, the copies that the run goes on from stay until there is one new one and the second begins, and
// nothing else. The second takes their room: a start that goes on needs no more memory than the first one.
//
// Only the rank's own thread calls. All calls are collective.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "train/checkpoint/copy_slot.h"
#include "train/checkpoint/facts.h"
#include "train/checkpoint/file_share.h"
#include "train/checkpoint/layout.h"
#include "train/checkpoint/saved_state.h"

namespace penstock::train {

class HostCopies {
 public:
  struct Setting {
    std::string directory;  // of this run, in each host's memory
    std::int64_t every = 1;
    std::string run;  // its number (run_number.h)
  };

  // `shares` (of `files`) refer to live memory, which outlives this. `facts`: of the step that the run goes
  // on from, whose copies nobody reads any more; 0 at its beginning. Takes all memory at once, or in two
  // halves where it goes on: two copies of the rank's own share, two of each that it keeps for others. Throws
  // RunError naming the path and the bytes wanted.
  HostCopies(Setting setting, const std::vector<CheckpointFile>& files, std::vector<FileShare> shares,
             const CheckpointFacts& facts, comm::World world);
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // After every step that may be gone on from; copies when it is due. `facts` of the step, without files, are
  // asked for on rank 0. Throws as the constructor.
  void after_step(std::int64_t step, const std::function<CheckpointFacts()>& facts);

  // Waits for the messages of the round under way. Also after steps that may not be gone on from: a round
  // takes the place of older copies, so all ranks need to have exchanged messages since they settled the one
  // before.
  void settle();

  // The run is over and needs them no more.
  void remove();

  // Bytes of the slots that have been written, and so are in this process's resident set: half of them after
  // the first round.
  Bytes touched() const;

 private:
  struct Slots {  // of one rank's copies, which alternate
    int owner = 0;
    Bytes text_room = 0, bytes = 0;  // of each
    std::vector<CopySlot> slots;
  };

  void add_slot(Slots& slots) const;
  void add_slots();  // one of each rank's
  void replace_older();
  void pair_up(std::int64_t from, Bytes text_room, Bytes bytes);
  std::string text_of(std::int64_t step, const std::function<CheckpointFacts()>& facts, std::uint64_t sum);
  void begin(std::int64_t step, const std::function<CheckpointFacts()>& facts);
  void post(CopySlot& own);

  const Setting setting_;
  std::vector<FileSums> files_;  // names alone
  const std::vector<FileShare> shares_;
  comm::World world_;
  std::string start_;
  bool first_on_host_ = false;
  std::optional<int> keeper_;  // of its own copies
  Slots own_;
  std::vector<Slots> kept_;  // of others
  Bytes bytes_ = 0;          // of one copy of each
  std::int64_t rounds_ = 0;
  std::vector<comm::Request> requests_;  // of the round under way
};

// The rank on another host that keeps each rank's copy; none where there is one host. In the order of hosts
// it is as many places further as the largest host has ranks, so that every rank keeps one; where that host
// has more than half of all ranks, the others share out what it has. `hosts`: their ranks.
std::vector<std::optional<int>> keepers_of(const std::vector<std::vector<int>>& hosts);

// The directory of the copies of the run in `output_directory`, as rank 0 sees that, under `memory`, a file
// system in each host's memory. Collective.
std::string copies_directory(const std::string& memory, const std::string& output_directory,
                             comm::World world);

// Ranks from `working` on will have no work: what their hosts keep of the run with this number goes to the
// memory of hosts that have, however long that takes. `host`: this rank's. Collective, over all of them.
void bring_copies(const std::string& directory, const std::string& run, const std::string& host, int working,
                  comm::World world);

// Whether that would bring any. Changes nothing. Collective, over all of them.
bool has_copies_to_bring(const std::string& directory, const std::string& run, const std::string& host,
                         int working, comm::World world);

// Makes the directory of copies, which nobody else reads. Throws RunError naming it.
void make_private_directory(const std::string& directory);

// A new run goes back to no older one's copies. On every host.
void clear_copies(const std::string& directory);

// What earlier starts have left in this host's memory.
Bytes bytes_of_copies(const std::string& directory);

// The newest state of the run with this number of which the hosts of these ranks have every part, whole.
struct FoundCopies {
  CheckpointFacts facts;
  std::shared_ptr<SavedState> state;
};
// Later than `step`; none if there is none. Collective.
std::optional<FoundCopies> find_copies(const std::string& directory, const std::string& run,
                                       std::int64_t step, comm::World world);

}  // namespace penstock::train
