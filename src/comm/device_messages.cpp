// SPDX-License-Identifier: Apache-2.0
#include "comm/device_messages.h"

#include <cstring>
#include <exception>
#include <utility>

namespace penstock::comm {
namespace {

using Room = std::shared_ptr<std::byte>;

class Sending final : public Request::State {
 public:
  Sending(Room room, Request request) : room_(std::move(room)), request_(std::move(request)) {}
  bool test() override { return request_.test(); }
  void wait() override { request_.wait(); }
  std::int64_t progress() const override { return request_.progress(); }

 private:
  Room room_;
  Request request_;  // destroyed before its buffer
};

class Receiving final : public Request::State {
 public:
  Receiving(std::span<std::byte> bytes, Room room, Request request)
      : bytes_(bytes), room_(std::move(room)), request_(std::move(request)) {}
  ~Receiving() override {
    try {
      if (copied_) backend::device_memory()->wait_for(copied_);  // before the room is reused
    } catch (const std::exception&) {                            // the GPU is lost; its next use reports that
    }
  }

  bool test() override {
    if (!request_.test()) return false;
    bring();
    return true;
  }
  void wait() override {
    request_.wait();
    bring();
  }
  std::int64_t progress() const override { return request_.progress(); }

 private:
  void bring() {
    backend::device_memory()->copy(bytes_.data(), room_.get(), bytes_.size());
    copied_ = backend::device_memory()->point();
  }

  std::span<std::byte> bytes_;
  Room room_;
  Request request_;
  backend::DeviceMemory::Point copied_;
};

}  // namespace

void copy_anywhere(std::byte* to, std::span<const std::byte> from) {
  if (from.empty() || from.data() == to) return;
  if (is_on_device(to) || is_on_device(from.data())) {
    backend::device_memory()->copy(to, from.data(), from.size());
  } else {
    std::memmove(to, from.data(), from.size());
  }
}

Request send_by_host(std::span<const std::byte> bytes,
                     const std::function<Request(std::span<const std::byte>)>& post) {
  if (!is_on_device(bytes.data())) return post(bytes);
  backend::DeviceMemory& device = *backend::device_memory();
  Room room = device.host_room(bytes.size());
  device.copy(room.get(), bytes.data(), bytes.size());
  device.wait_for(device.point());
  Request request = post({room.get(), bytes.size()});
  return Request(std::make_unique<Sending>(std::move(room), std::move(request)));
}

Request receive_by_host(std::span<std::byte> bytes,
                        const std::function<Request(std::span<std::byte>)>& post) {
  if (!is_on_device(bytes.data())) return post(bytes);
  Room room = backend::device_memory()->host_room(bytes.size());
  Request request = post({room.get(), bytes.size()});
  return Request(std::make_unique<Receiving>(bytes, std::move(room), std::move(request)));
}

}  // namespace penstock::comm
