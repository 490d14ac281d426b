// SPDX-License-Identifier: Apache-2.0
#include "backend/copy_lane.h"

#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>
#include <utility>

#include "base/error.h"

namespace penstock::backend {

// post() issues the job at once, so a job's exception is thrown there.
struct CopyLane::State {
  struct Job {
    Times times;
    c10::cuda::CUDAEvent done;
  };
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
  std::deque<Job> jobs;  // not yet waited for
  std::uint64_t posted = 0;
};

CopyLane::CopyLane() : state_(std::make_unique<State>()) {}

// The owner of the copied memory may free it next.
CopyLane::~CopyLane() { cudaStreamSynchronize(state_->stream); }

std::uint64_t CopyLane::post(std::function<void()> job) {
  c10::cuda::CUDAEvent issued;
  issued.record();
  issued.block(state_->stream);
  const c10::cuda::CUDAStreamGuard guard(state_->stream);
  State::Job here;
  here.times.start = moment_now();
  job();
  here.times.end = moment_now();
  here.done.record();
  state_->jobs.push_back(std::move(here));
  return state_->posted++;
}

CopyLane::Times CopyLane::wait(std::uint64_t number) {
  PENSTOCK_CHECK(number + state_->jobs.size() == state_->posted && number < state_->posted,
                 "copies of a lane are waited for in their order");
  state_->jobs.front().done.block(c10::cuda::getCurrentCUDAStream());
  const Times times = state_->jobs.front().times;
  state_->jobs.pop_front();
  return times;
}

void CopyLane::throw_failure() {}

}  // namespace penstock::backend
