// SPDX-License-Identifier: Apache-2.0
// Ops that ranks carry out together: while one has not come yet, the others wait, and the event of the op has
// no part of that. On a busy machine any event may take long, so it is compared with what was left of the
// step when the late rank came.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "comm/collectives.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

constexpr Seconds kLateness = 0.3;

// Late for one of the messages that it receives through a channel.
class LateRank final : public comm::Collectives {
 public:
  // `came`: set to steady_seconds() when it stops being late.
  LateRank(comm::Communicator& inner, std::atomic<Seconds>& came)
      : Collectives(comm::group_of_all(inner.rank(), inner.size())), inner_(inner), came_(came) {}
  void abort(const std::string& reason) override { inner_.abort(reason); }
  void throw_if_failed() override { inner_.throw_if_failed(); }

  // For the message number `next`, from 0, of those to come.
  void be_late(int channel, int next) {
    channel_ = channel;
    next_ = next;
  }

 protected:
  comm::Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    return inner_.send(bytes, to, inner_channel(channel));
  }
  comm::Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    if (channel == channel_ && next_-- == 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kLateness));
      came_ = steady_seconds();
    }
    return inner_.receive(bytes, from, inner_channel(channel));
  }
  std::unique_ptr<comm::Communicator> subgroup(comm::Group, int) override { return nullptr; }

 private:
  static int inner_channel(int channel) { return channel < 0 ? 200 : channel; }

  comm::Communicator& inner_;
  std::atomic<Seconds>& came_;
  int channel_ = -2, next_ = -1;
};

// In the second step of rank 1, where rank 0 is late.
struct Waited {
  Seconds of_ops = 0;         // the time of the ops of one kind
  Seconds since_it_came = 0;  // of the step, after the late rank had come
};

Waited beside_a_late_rank(const run::Run& run, schedule::OpKind kind, int channel, int next) {
  Waited waited;
  std::atomic<Seconds> came = 0;
  on_ranks(run, [&](comm::Communicator& world) {
    LateRank rank(world, came);
    train::Trainer trainer(run, rank);
    for (std::int64_t step = 1; step <= 2; ++step) {
      if (step == 2 && world.rank() == 0) rank.be_late(channel, next);
      trainer.step(step, tokens_of(run, world.rank(), drawn_batches(run, static_cast<std::uint64_t>(step))));
    }
    if (world.rank() != 1) return;
    waited.since_it_came = steady_seconds() - came.load();
    const auto& ops = run.program.devices[1].ops;
    for (std::size_t op = 0; op < ops.size(); ++op)
      if (ops[op].kind == kind) waited.of_ops += trainer.events()[op].end - trainer.events()[op].start;
  });
  EXPECT_GT(came.load(), 0) << "rank 0 was not late";
  return waited;
}

void expect_no_part_of_the_wait(const Waited& waited) {
  EXPECT_GT(waited.of_ops, 0);
  EXPECT_LE(waited.of_ops, waited.since_it_came);
}

// The step begins with a barrier; the sum of losses is the next that all ranks carry out.
TEST(MeasuredWaits, ForTheLastRankAreNoPartOfTheOptimizersStep) {
  const run::Run run = planned(small_options("1f1b", 2, 1, "f32"));
  expect_no_part_of_the_wait(
      beside_a_late_rank(run, schedule::OpKind::OptimizerStep, comm::kCollectiveChannel, 1));
}

TEST(MeasuredWaits, ForTheOtherSideAreNoPartOfTheSumOfTiedGradients) {
  auto options = small_options("1f1b", 2, 1, "f32");
  options.model.shape.tied_embeddings = true;
  const int channel = static_cast<int>(schedule::Channel::Gradients);
  expect_no_part_of_the_wait(
      beside_a_late_rank(planned(options), schedule::OpKind::ReduceGradients, channel, 0));
}

}  // namespace
}  // namespace penstock::testing
