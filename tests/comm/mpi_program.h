// SPDX-License-Identifier: Apache-2.0
// The main of a program of tests that every rank of mpirun runs.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <iostream>

#include "comm/mpi.h"

namespace penstock::comm {

// Ranks other than the first print what fails, and nothing else.
class FailuresOnly : public ::testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (part.failed()) std::cerr << "rank " << rank_ << ": " << part << std::endl;
  }
  int rank_;
};

inline int run_all_tests(const Communicator& world) {
  if (world.rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(world.rank()));
  }
  return RUN_ALL_TESTS();
}

// The program's exit code is that of `run`, which prepares the tests and calls run_all_tests.
inline int run_on_ranks(int argc, char** argv, const std::function<int(Communicator&)>& run) {
  ::testing::InitGoogleTest(&argc, argv);
  int result = 0;
  run_mpi([&](Communicator& world) { result = run(world); },
          [](int rank, const std::exception& failure) {
            std::cerr << "rank " << rank << ": " << failure.what() << std::endl;
          });
  return result;
}

}  // namespace penstock::comm
