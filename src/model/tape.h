// SPDX-License-Identifier: Apache-2.0
// A running count of bytes within one action, and its greatest value: of temporaries alone, and of all that
// is alive beyond what was at the action's start.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace penstock::model {

class Tape {
 public:
  void take(Bytes bytes) { change(bytes, bytes); }    // a temporary begins
  void give(Bytes bytes) { change(-bytes, -bytes); }  // and ends
  void keep(Bytes bytes) { change(-bytes, 0); }       // and is kept beyond the action, no longer a temporary
  void add(Bytes bytes) { change(0, bytes); }         // something of another category begins
  void release(Bytes bytes) { change(0, -bytes); }    // or ends

  // For what lives only within a larger step.
  void touch(Bytes bytes) {
    take(bytes);
    give(bytes);
  }

  Bytes greatest_temporary() const { return greatest_temporary_; }
  Bytes greatest_growth() const { return greatest_growth_; }

 private:
  void change(Bytes temporary, Bytes growth) {
    greatest_temporary_ = std::max(greatest_temporary_, temporary_ += temporary);
    greatest_growth_ = std::max(greatest_growth_, growth_ += growth);
  }

  Bytes temporary_ = 0, growth_ = 0;
  Bytes greatest_temporary_ = 0, greatest_growth_ = 0;
};

}  // namespace penstock::model
