// SPDX-License-Identifier: Apache-2.0
#include "comm/gpus/gpu_ranks.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/device_messages.h"
#include "comm/gpus/gpu_links.h"
#include "comm/message_notes.h"
#include "comm/polled_wait.h"

namespace penstock::comm {
namespace {

// A request whose test and wait also advance messages between GPUs.
class GpuRequest : public Request::State {
 public:
  GpuRequest(std::shared_ptr<GpuLinks> links, const Message& message, Seconds timeout)
      : links_(std::move(links)), message_(message), timeout_(timeout) {}

  bool test() override {
    links_->advance(timeout_);
    return done();
  }

  void wait() override {
    const WaitScope waiting(message_);
    wait_by_polling(*this, message_, timeout_);
  }

 protected:
  virtual bool done() = 0;
  GpuLinks& links() { return *links_; }

 private:
  std::shared_ptr<GpuLinks> links_;
  Message message_;
  Seconds timeout_;
};

class HostMessage final : public GpuRequest {
 public:
  template <class... Arguments>
  explicit HostMessage(Request request, Arguments&&... arguments)
      : GpuRequest(std::forward<Arguments>(arguments)...), request_(std::move(request)) {}

 private:
  bool done() override { return request_.test(); }
  std::int64_t progress() const override { return request_.progress(); }
  Request request_;
};

class GpuMessage final : public GpuRequest {
 public:
  template <class... Arguments>
  GpuMessage(Communicator& control, std::shared_ptr<GpuLinks::Transfer> transfer, Arguments&&... arguments)
      : GpuRequest(std::forward<Arguments>(arguments)...),
        control_(control),
        transfer_(std::move(transfer)) {}
  ~GpuMessage() override {
    if (!done_) links().abandon();  // the buffer may be freed next
  }

 private:
  bool done() override {
    control_.throw_if_failed();
    return done_ = done_ || GpuLinks::done(*transfer_);
  }

  // The host issues far ahead: minutes of this rank's own work before the message are no fault of the other
  // rank's. Grows a hundred times a second, so that a waiting host still sleeps.
  std::int64_t progress() const override {
    if (!GpuLinks::reached(*transfer_)) busy_ = steady_seconds();
    return static_cast<std::int64_t>(busy_ * 100);
  }

  Communicator& control_;
  std::shared_ptr<GpuLinks::Transfer> transfer_;
  mutable Seconds busy_ = 0;  // when the GPU was last seen at earlier work
  bool done_ = false;
};

class GpuRanks final : public Collectives {
 public:
  // `owned`: the control communicator of a sub-group. The group of all ranks closes the links.
  GpuRanks(Communicator& control, std::shared_ptr<GpuLinks> links, Group group,
           std::unique_ptr<Communicator> owned = nullptr)
      : Collectives(std::move(group)),
        owned_(std::move(owned)),
        control_(control),
        collectives_(control.split(0, control.rank())),
        links_(std::move(links)) {
    if (control.rank() == 0) id_ = links_->new_group();
    control.broadcast(writable_bytes_of(id_), 0);
  }

  ~GpuRanks() override {
    if (owned_) return;
    try {
      if (std::uncaught_exceptions() > exceptions_) {
        links_->abandon();
      } else {
        links_->close(group().timeout);
      }
    } catch (const std::exception&) {  // another rank has failed
      links_->abandon();
    }
  }

  void connect_gpus() override { links_->connect(group().members, group().timeout); }

  void abort(const std::string& reason) override {
    links_->abandon();
    control_.abort(reason);
  }
  void throw_if_failed() override { control_.throw_if_failed(); }
  void set_timeout(Seconds timeout) override {
    Collectives::set_timeout(timeout);
    for (Communicator* inner : {&control_, collectives_.get()}) inner->set_timeout(timeout);
  }

 protected:
  Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    if (is_on_device(bytes.data()))
      return post(const_cast<std::byte*>(bytes.data()), message_of(true, bytes.size(), to, channel));
    const NotedOn noted(channel);
    return host_message(inner(channel).send(bytes, to, std::max(channel, 0)),
                        message_of(true, bytes.size(), to, channel));
  }

  Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    if (is_on_device(bytes.data())) return post(bytes.data(), message_of(false, bytes.size(), from, channel));
    const NotedOn noted(channel);
    return host_message(inner(channel).receive(bytes, from, std::max(channel, 0)),
                        message_of(false, bytes.size(), from, channel));
  }

  std::unique_ptr<Communicator> subgroup(Group part, int leader) override {
    auto control = control_.split(leader, part.rank);
    Communicator& reference = *control;
    return std::make_unique<GpuRanks>(reference, links_, std::move(part), std::move(control));
  }

 private:
  Communicator& inner(int channel) { return channel == kCollectiveChannel ? *collectives_ : control_; }

  Message message_of(bool sending, std::size_t bytes, int peer, int channel) const {
    return {sending, world_rank(peer), channel, static_cast<Bytes>(bytes)};
  }

  Request host_message(Request request, const Message& message) {
    return Request(std::make_unique<HostMessage>(std::move(request), links_, message, group().timeout));
  }

  Request post(void* data, const Message& message) {
    control_.throw_if_failed();
    auto state = std::make_unique<GpuMessage>(control_, links_->post(id_, message, data), links_, message,
                                              group().timeout);
    return Request(std::move(state), message);
  }

  const int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<Communicator> owned_;
  Communicator& control_;
  std::unique_ptr<Communicator> collectives_;
  std::shared_ptr<GpuLinks> links_;
  GpuLinks::GroupId id_;
};

}  // namespace

std::unique_ptr<Communicator> make_gpu_ranks(Communicator& control, const Nccl& nccl) {
  Group everyone = group_of_all(control.rank(), control.size());
  for (int& member : everyone.members) member = control.world_rank(member);
  return std::make_unique<GpuRanks>(control, std::make_shared<GpuLinks>(control, nccl), std::move(everyone));
}

}  // namespace penstock::comm
