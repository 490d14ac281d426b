// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

namespace penstock::comm {

bool Request::test() {
  if (state_ && !state_->test()) return false;
  state_.reset();
  return true;
}

void Request::wait() {
  if (state_) state_->wait();
  state_.reset();
}

}  // namespace penstock::comm
