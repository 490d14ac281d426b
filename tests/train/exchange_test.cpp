// SPDX-License-Identifier: Apache-2.0
// Context exchange against the same run without it.
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/message_notes.h"
#include "nn/tensor_checks.h"
#include "train/near_runs.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

run::Options exchange_options(int devices, int slices, int chunks, const std::string& precision) {
  run::Options options = small_options("slimpipe", devices, slices, precision);
  options.model.shape.layers = devices * chunks;
  options.schedule.chunks = chunks;
  options.data.seq_len = 35;  // slices of unequal length
  options.train.batch = 3;
  tell_gradients(options.train);
  return options;
}

Trained trained_with(run::Options options, const std::string& exchange, std::int64_t steps = 2) {
  options.schedule.exchange = exchange;
  const run::Run run = planned(options);
  EXPECT_EQ(run.program.exchanges.empty(), exchange == "off");
  return train_steps(run, steps);
}

void expect_same_as_unexchanged(const run::Options& options, double tolerance) {
  SCOPED_TRACE(::testing::Message() << options.parallel.pp << " devices, " << options.schedule.slices
                                    << " slices, " << options.schedule.chunks << " chunks, "
                                    << options.model.shape.kv_heads << " kv heads, "
                                    << options.memory.policy);
  const Trained without = trained_with(options, "off"), initial = trained_with(options, "off", 0);
  for (const char* exchange : {"paired", "levelled"})
    expect_near_run(trained_with(options, exchange), without, initial, tolerance);
}

TEST(ContextExchange, ChangesNothingInF64) {
  for (const int devices : {2, 3, 4}) {
    for (const int slices : {4, 7, 16})
      expect_same_as_unexchanged(exchange_options(devices, slices, 1, "f64"), 1e-10);
  }
}

TEST(ContextExchange, ChangesNothingWithSeveralChunks) {
  for (const int devices : {2, 3, 4}) {
    for (const int chunks : {2, 3})
      expect_same_as_unexchanged(exchange_options(devices, 8, chunks, "f64"), 1e-10);
  }
}

TEST(ContextExchange, ChangesNothingWithoutGroupedQueriesAndWithSeveralSequences) {
  run::Options options = exchange_options(3, 6, 1, "f64");
  options.train.micro_batch = 2;
  options.train.batch = 6;
  for (const int kv_heads : {1, 4}) {
    options.model.shape.kv_heads = kv_heads;
    expect_same_as_unexchanged(options, 1e-10);
  }
}

TEST(ContextExchange, ChangesNothingUnderAnyPolicyOfRecomputation) {
  for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
    run::Options options = exchange_options(3, 6, 1, "f64");
    options.memory.policy = policy;
    expect_same_as_unexchanged(options, 1e-10);
  }
  run::Options options = exchange_options(2, 6, 2, "f64");
  options.memory.stages = {"1-2: full"};  // partners with different policies
  expect_same_as_unexchanged(options, 1e-10);
}

TEST(ContextExchange, ChangesNothingWithOffloading) {
  run::Options options = exchange_options(3, 8, 1, "f64");
  options.memory.offload = {.number = 1.0};
  expect_same_as_unexchanged(options, 1e-10);
}

TEST(ContextExchange, ChangesNothingWithASharedVocabulary) {
  run::Options options = exchange_options(4, 8, 1, "f64");
  options.schedule.vocabulary_parallel = true;
  options.train.loss_tile_tokens = 2;
  expect_same_as_unexchanged(options, 1e-10);
}

TEST(ContextExchange, OfSlicesOfSingleTokensWorks) {
  run::Options options = exchange_options(3, 16, 1, "f64");
  options.data.seq_len = 16;
  expect_same_as_unexchanged(options, 1e-10);
}

// Stated tolerances: partial sums of attention and of its gradients in another order, and in bf16 one more
// rounding of what partners send back.
TEST(ContextExchange, ChangesF32AndBf16ByRounding) {
  for (const int devices : {2, 4}) {
    expect_same_as_unexchanged(exchange_options(devices, 8, 1, "f32"), 2e-5);
    expect_same_as_unexchanged(exchange_options(devices, 8, 1, "bf16"), 2e-2);
  }
}

// Replies are merged in the program's order, whenever they come.
TEST(ContextExchange, GivesTheSameBitsInEveryRun) {
  const run::Options options = exchange_options(4, 8, 1, "f32");
  const Trained first = trained_with(options, "levelled"), second = trained_with(options, "levelled");
  EXPECT_EQ(first.losses, second.losses);
  for (const auto& [name, weight] : first.weights) expect_same_bits(second.weights.at(name), weight, name);
}

TEST(ContextExchange, KeepsToItsLimit) {
  run::Options options = exchange_options(2, 16, 1, "f64");
  options.schedule.exchange_limit = 1;
  expect_same_as_unexchanged(options, 1e-10);
  options.schedule.exchange_limit = 0;
  options.schedule.exchange = "levelled";
  EXPECT_TRUE(planned(options).program.exchanges.empty());
}

// A rank's communicator that passes everything on.
class Passing : public comm::Collectives {
 public:
  explicit Passing(comm::Communicator& inner)
      : Collectives(comm::group_of_all(inner.rank(), inner.size())), inner_(inner) {}
  void abort(const std::string& reason) override { inner_.abort(reason); }
  void throw_if_failed() override { inner_.throw_if_failed(); }

 protected:
  comm::Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    return inner_.send(bytes, to, inner_channel(channel));
  }
  comm::Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    return inner_.receive(bytes, from, inner_channel(channel));
  }
  std::unique_ptr<comm::Communicator> subgroup(comm::Group, int) override { return nullptr; }

 private:
  static int inner_channel(int channel) { return channel < 0 ? 200 : channel; }
  comm::Communicator& inner_;
};

// One that takes hidden states and their gradients out of the sender's memory at once: how many of them wait
// is a matter of how the machine schedules its threads.
class Buffering final : public Passing {
 public:
  using Passing::Passing;

 protected:
  comm::Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    if (channel != static_cast<int>(schedule::Channel::Forward) &&
        channel != static_cast<int>(schedule::Channel::Backward))
      return Passing::post_send(bytes, to, channel);
    const std::vector<std::byte>& copy = copies_.emplace_back(bytes.begin(), bytes.end());
    sends_.push_back(Passing::post_send(copy, to, channel));
    return {};
  }

 private:
  std::list<std::vector<std::byte>> copies_;
  std::vector<comm::Request> sends_;  // received by the end of the step, which is common to all
};

void expect_within_predicted_buffers(run::Options options) {
  const run::Run run = planned(options);
  SCOPED_TRACE(::testing::Message() << run.program.device_count() << " devices, " << options.schedule.exchange
                                    << ", " << options.train.micro_batch << " sequences, "
                                    << options.model.shape.kv_heads << " kv heads, "
                                    << options.train.precision << ", " << options.memory.policy);
  EXPECT_FALSE(run.program.exchanges.empty());
  on_ranks(run, [&](comm::Communicator& world) {
    Buffering buffering(world);
    train::Trainer trainer(run, buffering);
    trainer.step(1, tokens_of(drawn_batches(run, 1)));
    const backend::Ledger& ledger = trainer.ledger();
    for (const auto category :
         {model::Category::Transfers, model::Category::KvGradients, model::Category::Activations})
      EXPECT_EQ(ledger.live(category), 0) << model::name_of(category);
    const auto& predicted = run.predicted[world.rank()];
    EXPECT_LE(ledger.peak(model::Category::Transfers), predicted.transfers) << world.rank();
    EXPECT_LE(ledger.peak(model::Category::Transient), predicted.transient) << world.rank();
    EXPECT_LE(ledger.peak_total(), predicted.total()) << world.rank();
  });
}

// One device gives and never exchanges, slices are sent in halves of several heads and sequences, devices are
// in different slots, and attention comes again in the backward.
TEST(ContextExchange, KeepsNothingBetweenStepsAndPredictsItsBuffers) {
  for (const char* exchange : {"paired", "levelled"}) {
    for (const int devices : {2, 3, 4}) {
      for (const int sequences : {1, 2}) {
        for (const int kv_heads : {1, 2, 4}) {
          run::Options options = exchange_options(devices, 8, 1, kv_heads == 2 ? "bf16" : "f32");
          options.schedule.exchange = exchange;
          options.model.shape.kv_heads = kv_heads;
          options.train.micro_batch = sequences;
          options.train.batch = sequences * (devices == 2 && exchange == std::string("levelled") ? 1 : 2);
          options.memory.policy = kv_heads == 4 ? "full" : "none";
          expect_within_predicted_buffers(options);
        }
      }
    }
  }
}

TEST(ContextExchange, EvaluatesWithoutHelp) {
  run::Options options = exchange_options(3, 8, 1, "f64");
  std::map<std::string, double> losses;
  for (const char* exchange : {"off", "levelled"}) {
    options.schedule.exchange = exchange;
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      const double loss = trainer.evaluate(tokens_of(drawn_batches(run, 5)));
      if (world.rank() == 0) losses[exchange] = loss;
    });
  }
  EXPECT_EQ(losses["levelled"], losses["off"]);
}

// A rank's communicator that breaks at its n-th reply to others.
class Breaking final : public Passing {
 public:
  Breaking(comm::Communicator& inner, int replies) : Passing(inner), left_(replies) {}

 protected:
  comm::Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    if (channel == static_cast<int>(schedule::Channel::ExchangeReply) && --left_ == 0)
      throw RunError("the power went out");
    return Passing::post_send(bytes, to, channel);
  }

 private:
  int left_;
};

TEST(ContextExchange, EndsEverybodyWhenAPartnerDiesInTheMiddleOfIt) {
  run::Options options = exchange_options(4, 8, 1, "f32");
  options.schedule.exchange = "levelled";
  const run::Run run = planned(options);
  for (const int replies : {1, 2, 7, 20}) {
    std::map<int, std::string> reports;
    std::mutex mutex;
    const auto body = [&](comm::Communicator& world) {
      at::set_num_threads(1);
      Breaking breaking(world, world.rank() == 1 ? replies : 0);
      train::Trainer trainer(run, breaking);
      trainer.step(1, tokens_of(drawn_batches(run, 1)));
    };
    const auto report = [&](int rank, const std::exception& failure) {
      const std::lock_guard lock(mutex);
      reports[rank] = failure.what();
    };
    EXPECT_THROW(comm::run_ranks(4, body, report), RunError);
    EXPECT_EQ(reports[1], "the power went out");
    for (const int rank : {0, 2, 3}) EXPECT_EQ(reports[rank], "rank 1 failed: the power went out");
  }
}

// One that neither answers nor fails is named by its rank of the world, also to the flight recorder. The
// pipeline is the last two of three ranks.
TEST(ContextExchange, NamesAPartnerThatNeverAnswers) {
  run::Options options = exchange_options(2, 8, 1, "f32");
  options.schedule.exchange = "paired";
  options.train.timeout = 1;
  const run::Run run = planned(options);
  const schedule::Exchange& exchange = run.program.exchanges.front();
  std::map<int, std::string> reports;
  std::optional<comm::MessageNotes::Wait> noted;
  std::mutex mutex;
  const auto body = [&](comm::Communicator& world) {
    const auto pipeline = world.split(world.rank() > 0 ? 1 : 0, world.rank());
    if (world.rank() == 0) return;
    if (pipeline->rank() == exchange.partner) {  // alive, and deaf
      std::byte byte;
      pipeline->receive({&byte, 1}, exchange.owner, 100).wait();
    }
    comm::MessageNotes notes;
    const comm::NotesScope noting(notes);
    backend::SideStream side;
    train::ExchangeServer server(run, comm::Pipeline(*pipeline), side);
    server.begin({});
    try {
      server.drain();
    } catch (const RunError&) {
      noted = notes.wait();
      throw;
    }
  };
  const auto report = [&](int rank, const std::exception& failure) {
    const std::lock_guard lock(mutex);
    reports[rank] = failure.what();
  };
  EXPECT_THROW(comm::run_ranks(3, body, report), RunError);
  const std::string& told = reports[exchange.owner + 1];
  EXPECT_NE(told.find("is rank " + std::to_string(exchange.partner + 1) + " stuck?"), std::string::npos)
      << told;
  ASSERT_TRUE(noted);
  EXPECT_EQ(noted->message.peer, exchange.partner + 1);
  EXPECT_EQ(noted->message.channel, static_cast<int>(schedule::Channel::Exchange));
}

}  // namespace
}  // namespace penstock::testing
