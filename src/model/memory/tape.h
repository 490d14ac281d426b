// SPDX-License-Identifier: Apache-2.0
// A running byte count within one action, and its peaks: of temporaries, and of everything allocated since
// the start of the action.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace penstock::model {

class Tape {
 public:
  void take(Bytes bytes) { change(bytes, bytes); }    // allocates a temporary
  void give(Bytes bytes) { change(-bytes, -bytes); }  // frees it
  void keep(Bytes bytes) { change(-bytes, 0); }       // a temporary outlives the action
  void add(Bytes bytes) { change(0, bytes); }         // allocates in another category
  void release(Bytes bytes) { change(0, -bytes); }    // frees it

  // A temporary that lives only within a larger step.
  void touch(Bytes bytes) {
    take(bytes);
    give(bytes);
  }

  // A step with peaks of its own that leaves nothing.
  void peak(Bytes temporary, Bytes growth) {
    change(temporary, growth);
    change(-temporary, -growth);
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
