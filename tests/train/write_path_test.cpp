// SPDX-License-Identifier: Apache-2.0
// What a run writes while it lasts, on disks that fail at any call.
#include "write_path.h"

#include "files/atomic_file.h"
#include "train/checkpoint/weights_file.h"
#include "train/record/metrics.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

run::Run tiny_plan_of(int devices) {
  auto options = small_options("slimpipe", devices, 2, "bf16");
  options.model.shape = {.layers = 2, .hidden = 4, .ffn = 4, .heads = 1, .kv_heads = 1};
  return planned(options);
}

// Does something on every rank of a run, which is made once: its state is the same each time.
class Ranks {
 public:
  explicit Ranks(int devices, bool gather = false) : run_(tiny_plan_of(devices)), gather_(gather) {}

  template <class Work>
  void work(Work&& each) const {
    on_ranks(run_, [&](comm::Communicator& world) {
      train::Trainer trainer(run_, world);
      each(trainer, world);
    });
  }
  void save(const std::string& directory, std::int64_t step) const {
    work([&](train::Trainer& trainer, comm::Communicator& world) {
      auto saver = saver_of(run_, directory, trainer, world, 2,
                            gather_ ? train::Sharing::FirstRank : train::Sharing::AllRanks);
      saver.begin(facts_of(run_, step, trainer));
      saver.settle();
    });
  }
  void write_weights(const std::string& path) const {
    work([&](train::Trainer& trainer, comm::Communicator& world) {
      train::write_weights(path, run_.shape(), trainer.parameters(), world, gather_);
    });
  }

 private:
  run::Run run_;
  bool gather_;  // the first rank alone writes
};

void write_metrics(const std::string& directory, std::int64_t first) {
  train::MetricsFile file(directory + "/metrics.jsonl", first - 1);
  for (std::int64_t step = first; step < first + 3; ++step) file.write({.step = step, .loss = 2.5});
  file.flush();
}

WritePath checkpoint_of(const Ranks& ranks) {
  return {"a checkpoint", [&](const std::string& d) { ranks.save(d, 1); },
          [&](const std::string& d) { ranks.save(d, 2); }};
}

TEST(WritePaths, OfACheckpointLoseNothingWhicheverCallFails) {
  const Ranks alone(1);
  expect_the_law(checkpoint_of(alone));
}

// Another rank may still be writing when the first removes what there is.
TEST(WritePaths, OfACheckpointOfTwoRanksLoseNothingWhicheverCallFails) {
  const Ranks two(2);
  WritePath path = checkpoint_of(two);
  path.grows = [](const std::string& file) { return file.find(".partial/") != file.npos; };
  expect_the_law(path);
}

TEST(WritePaths, OfACheckpointThatTheFirstRankGathersLoseNothingWhicheverCallFails) {
  const Ranks two(2, true);
  expect_the_law(checkpoint_of(two));
}

TEST(WritePaths, OfWeightsLoseNothingWhicheverCallFails) {
  for (const auto& [devices, gather] : {std::pair{1, false}, {2, false}, {2, true}}) {
    const Ranks ranks(devices, gather);
    expect_the_law({"weights", [](const std::string& d) { files::write_atomically(d + "/weights", "old"); },
                    [&](const std::string& d) { ranks.write_weights(d + "/weights"); }});
  }
}

TEST(WritePaths, OfMetricsLoseNothingWhicheverCallFails) {
  expect_the_law({.name = "metrics",
                  .before = [](const std::string& d) { write_metrics(d, 1); },
                  .write = [](const std::string& d) { write_metrics(d, 4); },
                  .grows = [](const std::string&) { return true; }});
}

}  // namespace
}  // namespace penstock::testing
