// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include "comm/message_notes.h"

namespace penstock::comm {

Request::Request(std::unique_ptr<State> state, const Message& message)
    : state_(std::move(state)), message_(as_noted(message)) {
  note_posted(*message_);
}

bool Request::test() {
  if (state_ && !state_->test()) return false;
  finish();
  return true;
}

void Request::wait() {
  if (state_ && message_) {
    const WaitScope waiting(*message_);
    state_->wait();
  } else if (state_) {
    state_->wait();
  }
  finish();
}

void Request::finish() {
  if (state_ && message_) note_done(*message_);
  state_.reset();
}

void wait_all(std::span<Request> requests) {
  for (Request& request : requests) request.wait();
}

}  // namespace penstock::comm
