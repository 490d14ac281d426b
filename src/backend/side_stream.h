// SPDX-License-Identifier: Apache-2.0
// A second stream on a GPU, for work that must not queue behind what its thread has already issued.
#pragma once

#include <memory>

namespace penstock::backend {

// Used only by the thread that constructs it. A high-priority stream on a GPU; a no-op on the CPU.
class SideStream {
 public:
  SideStream();
  ~SideStream();  // waits for its work
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // While alive, the thread issues to this stream. Memory allocated in a scope may be used and freed only in
  // scopes of the same stream.
  class Scope {
   public:
    explicit Scope(SideStream& stream);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct Guard;
    std::unique_ptr<Guard> guard_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::backend
