// SPDX-License-Identifier: Apache-2.0
#include "comm/thread_communicator.h"

#include "comm/collectives.h"
#include "comm/device_messages.h"

namespace penstock::comm {
namespace {

class ThreadRequest : public Request::State {
 public:
  ThreadRequest(std::shared_ptr<ThreadWorld> world, int receiver, Queue queue, Message message,
                Seconds timeout, Side side)
      : world_(std::move(world)),
        mailbox_(world_->mailbox(receiver)),
        queue_(queue),
        message_(message),
        timeout_(timeout),
        to_itself_(receiver == queue.source),
        side_(std::move(side)) {
    if (is_on_device(side_.sending ? side_.source : side_.room))
      side_.ready = backend::device_memory()->point();
    mailbox_.post(queue_, side_);
  }
  ~ThreadRequest() override { mailbox_.withdraw(queue_, side_); }

  bool test() override {
    world_->throw_if_failed();
    if (!mailbox_.done(side_)) return false;
    if (!message_.sending && side_.arrived != side_.bytes) throw wrong_length(message_, side_.arrived);
    if (side_.copied) backend::device_memory()->come_behind(side_.copied);
    return true;
  }

  void wait() override {
    if (test()) return;
    if (to_itself_) throw RunError(describe(message_) + " can never arrive: this rank waits for itself");
    mailbox_.wait(side_, Deadline(timeout_), world_->failed());
    if (!test()) throw timed_out(message_, timeout_);
  }

 private:
  std::shared_ptr<ThreadWorld> world_;
  Mailbox& mailbox_;
  Queue queue_;
  Message message_;
  Seconds timeout_;
  bool to_itself_;
  Side side_;
};

class ThreadCommunicator : public Collectives {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int number, Group group)
      : Collectives(std::move(group)), world_(std::move(world)), number_(number) {}

  void abort(const std::string& reason) override { world_->fail(world_rank(rank()), reason); }
  void throw_if_failed() override { world_->throw_if_failed(); }

 protected:
  Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    return post(to, world_rank(to), {number_, world_rank(rank()), channel},
                {.sending = true, .source = bytes.data(), .bytes = bytes.size()});
  }

  Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    return post(from, world_rank(rank()), {number_, world_rank(from), channel},
                {.room = bytes.data(), .bytes = bytes.size()});
  }

  std::unique_ptr<Communicator> subgroup(Group part, int leader) override {
    const int number = world_->group_number(number_, splits_++, leader);
    return std::make_unique<ThreadCommunicator>(world_, number, std::move(part));
  }

 private:
  Request post(int peer, int receiver, Queue queue, Side side) {
    world_->throw_if_failed();
    const Message message{side.sending, world_rank(peer), queue.channel, static_cast<Bytes>(side.bytes)};
    return Request(
        std::make_unique<ThreadRequest>(world_, receiver, queue, message, group().timeout, std::move(side)),
        message);
  }

  std::shared_ptr<ThreadWorld> world_;
  int number_;      // of this group
  int splits_ = 0;  // same count on every rank of the group
};

}  // namespace

std::unique_ptr<Communicator> make_thread_rank(std::shared_ptr<ThreadWorld> world, int rank) {
  Group everyone = group_of_all(rank, world->size());
  return std::make_unique<ThreadCommunicator>(std::move(world), 0, std::move(everyone));
}

}  // namespace penstock::comm
