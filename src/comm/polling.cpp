// SPDX-License-Identifier: Apache-2.0
#include "comm/polling.h"

#include <utility>

#include "comm/collectives.h"
#include "comm/message.h"
#include "comm/message_notes.h"
#include "comm/polled_wait.h"

namespace penstock::comm {
namespace {

using Meanwhile = std::function<bool()>;

// Channel of the inner communicator for this one's collectives.
constexpr int kChannelOfCollectives = kChannelLimit - 1;

class PollingRequest : public Request::State {
 public:
  PollingRequest(Request inner, std::shared_ptr<const Meanwhile> meanwhile, const Message& message,
                 Seconds timeout)
      : inner_(std::move(inner)), meanwhile_(std::move(meanwhile)), message_(message), timeout_(timeout) {}

  bool test() override { return inner_.test(); }
  std::int64_t progress() const override { return inner_.progress(); }

  void wait() override {
    const WaitScope waiting(message_);
    wait_by_polling(*this, message_, timeout_, *meanwhile_);
  }

 private:
  Request inner_;
  std::shared_ptr<const Meanwhile> meanwhile_;
  Message message_;
  Seconds timeout_;
};

class Polling : public Collectives {
 public:
  Polling(Communicator& inner, std::shared_ptr<const Meanwhile> meanwhile, Group group,
          std::unique_ptr<Communicator> owned = nullptr)
      : Collectives(std::move(group)),
        inner_(inner),
        meanwhile_(std::move(meanwhile)),
        owned_(std::move(owned)) {}

  void abort(const std::string& reason) override { inner_.abort(reason); }
  void throw_if_failed() override { inner_.throw_if_failed(); }
  void connect_gpus() override { inner_.connect_gpus(); }

 protected:
  Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    const NotedOn noted(channel);
    return polling(inner_.send(bytes, to, inner_channel(channel)), {true, to, channel, Bytes(bytes.size())});
  }

  Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    const NotedOn noted(channel);
    return polling(inner_.receive(bytes, from, inner_channel(channel)),
                   {false, from, channel, Bytes(bytes.size())});
  }

  std::unique_ptr<Communicator> subgroup(Group part, int leader) override {
    auto inner = inner_.split(leader, part.rank);
    Communicator& reference = *inner;
    return std::make_unique<Polling>(reference, meanwhile_, std::move(part), std::move(inner));
  }

 private:
  static int inner_channel(int channel) {
    PENSTOCK_CHECK(channel < kChannelOfCollectives, "channels are 0 to 253");
    return channel == kCollectiveChannel ? kChannelOfCollectives : channel;
  }

  Request polling(Request inner, Message message) {
    message.peer = group().members[message.peer];
    return Request(std::make_unique<PollingRequest>(std::move(inner), meanwhile_, message, group().timeout));
  }

  Communicator& inner_;
  std::shared_ptr<const Meanwhile> meanwhile_;
  std::unique_ptr<Communicator> owned_;
};

}  // namespace

std::unique_ptr<Communicator> make_polling(Communicator& inner, Meanwhile meanwhile, Seconds timeout) {
  Group everyone = group_of_all(inner.rank(), inner.size());
  for (int& member : everyone.members) member = inner.world_rank(member);
  everyone.timeout = timeout;
  return std::make_unique<Polling>(inner, std::make_shared<const Meanwhile>(std::move(meanwhile)),
                                   std::move(everyone));
}

}  // namespace penstock::comm
