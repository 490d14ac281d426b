// SPDX-License-Identifier: Apache-2.0
#include "comm/cards/card_ranks.h"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/cards/card_link.h"
#include "comm/collectives.h"
#include "comm/device_messages.h"
#include "comm/message_notes.h"
#include "comm/polled_wait.h"

namespace penstock::comm {
namespace {

// Links that do not go on by themselves yet, of a communicator and its sub-groups.
class Beginning {
 public:
  void add(CardLink& link) { links_.push_back(&link); }
  void remove(const CardLink& link) { std::erase(links_, &link); }
  void advance() {
    std::erase_if(links_, [](CardLink* link) { return link->begin(); });
  }

 private:
  std::vector<CardLink*> links_;
};

// Waits during which links begin, whatever they are for.
class CardRequest : public Request::State {
 public:
  CardRequest(Communicator& control, std::shared_ptr<Beginning> beginning, const Message& message,
              Seconds timeout)
      : control_(control), beginning_(std::move(beginning)), message_(message), timeout_(timeout) {}

  bool test() override {
    beginning_->advance();
    return done();
  }

  void wait() override {
    const WaitScope waiting(message_);
    wait_by_polling(*this, message_, timeout_);
  }

 protected:
  virtual bool done() = 0;
  Communicator& control_;

 private:
  std::shared_ptr<Beginning> beginning_;
  Message message_;
  Seconds timeout_;
};

class HostMessage final : public CardRequest {
 public:
  template <class... Arguments>
  explicit HostMessage(Request request, Arguments&&... arguments)
      : CardRequest(std::forward<Arguments>(arguments)...), request_(std::move(request)) {}

 private:
  bool done() override { return request_.test(); }
  std::int64_t progress() const override { return request_.progress(); }
  Request request_;
};

class CardMessage final : public CardRequest {
 public:
  template <class... Arguments>
  CardMessage(CardLink& link, std::shared_ptr<CardLink::Transfer> transfer, Arguments&&... arguments)
      : CardRequest(std::forward<Arguments>(arguments)...), link_(link), transfer_(std::move(transfer)) {}
  ~CardMessage() override {
    if (!done_) link_.abandon();  // the buffer may be freed next
  }

 private:
  bool done() override {
    control_.throw_if_failed();
    return done_ = done_ || link_.done(*transfer_);
  }

  CardLink& link_;
  std::shared_ptr<CardLink::Transfer> transfer_;
  bool done_ = false;
};

class CardRanks final : public Collectives {
 public:
  CardRanks(Communicator& control, const Nccl& nccl, std::shared_ptr<Beginning> beginning, Group group,
            std::unique_ptr<Communicator> owned = nullptr)
      : Collectives(std::move(group)),
        owned_(std::move(owned)),
        control_(control),
        collectives_(control.split(0, control.rank())),
        ids_(control.split(0, control.rank())),
        nccl_(nccl),
        beginning_(std::move(beginning)) {}

  // All links end at once: each waits for the other rank, which has them in another order.
  ~CardRanks() override {
    std::vector<std::jthread> ends;
    for (auto& [key, link] : links_) {
      beginning_->remove(*link);
      if (std::uncaught_exceptions() > 0) {
        link->abandon();
      } else {
        ends.emplace_back([&ended = *link] { ended.end(); });
      }
    }
  }

  void abort(const std::string& reason) override {
    for (auto& [key, link] : links_) link->abandon();
    control_.abort(reason);
  }
  void throw_if_failed() override { control_.throw_if_failed(); }
  void set_timeout(Seconds timeout) override {
    Collectives::set_timeout(timeout);
    for (Communicator* inner : {&control_, collectives_.get(), ids_.get()}) inner->set_timeout(timeout);
  }

 protected:
  Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    if (is_on_device(bytes.data()))
      return post(true, const_cast<std::byte*>(bytes.data()), bytes.size(), to, channel);
    const NotedOn noted(channel);
    return host_message(true, inner(channel).send(bytes, to, std::max(channel, 0)), bytes.size(), to,
                        channel);
  }

  Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    if (is_on_device(bytes.data())) return post(false, bytes.data(), bytes.size(), from, channel);
    const NotedOn noted(channel);
    return host_message(false, inner(channel).receive(bytes, from, std::max(channel, 0)), bytes.size(), from,
                        channel);
  }

  std::unique_ptr<Communicator> subgroup(Group part, int leader) override {
    auto control = control_.split(leader, part.rank);
    Communicator& reference = *control;
    return std::make_unique<CardRanks>(reference, nccl_, beginning_, std::move(part), std::move(control));
  }

 private:
  Communicator& inner(int channel) { return channel == collective_channel ? *collectives_ : control_; }

  Message message_of(bool sending, std::size_t bytes, int peer, int channel) const {
    return {sending, world_rank(peer), channel, static_cast<Bytes>(bytes)};
  }

  Request host_message(bool sending, Request request, std::size_t bytes, int peer, int channel) {
    return Request(std::make_unique<HostMessage>(std::move(request), control_, beginning_,
                                                 message_of(sending, bytes, peer, channel), group().timeout));
  }

  // Collectives' messages have a link of their own, the last.
  CardLink& link_of(bool sending, int peer, int channel) {
    const std::tuple key(sending, peer, channel);
    auto found = links_.find(key);
    if (found == links_.end()) {
      const int number = channel == collective_channel ? channel_limit - 1 : channel;
      auto made = std::make_unique<CardLink>(*ids_, nccl_, peer, number, sending);
      found = links_.emplace(key, std::move(made)).first;
      beginning_->add(*found->second);
    }
    return *found->second;
  }

  Request post(bool sending, void* data, std::size_t bytes, int peer, int channel) {
    control_.throw_if_failed();
    CardLink& link = link_of(sending, peer, channel);
    const Message message = message_of(sending, bytes, peer, channel);
    auto state = std::make_unique<CardMessage>(link, link.post(data, bytes), control_, beginning_, message,
                                               group().timeout);
    return Request(std::move(state), message);
  }

  std::unique_ptr<Communicator> owned_;
  Communicator& control_;
  std::unique_ptr<Communicator> collectives_, ids_;
  const Nccl nccl_;
  std::shared_ptr<Beginning> beginning_;
  std::map<std::tuple<bool, int, int>, std::unique_ptr<CardLink>> links_;  // by direction, peer and channel
};

}  // namespace

std::unique_ptr<Communicator> make_card_ranks(Communicator& control, const Nccl& nccl) {
  Group everyone = group_of_all(control.rank(), control.size());
  for (int& member : everyone.members) member = control.world_rank(member);
  return std::make_unique<CardRanks>(control, nccl, std::make_shared<Beginning>(), std::move(everyone));
}

}  // namespace penstock::comm
