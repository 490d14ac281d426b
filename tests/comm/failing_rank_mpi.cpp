// SPDX-License-Identifier: Apache-2.0
// Ranks that pass messages in a ring until one of them, the second, ends in the way named by the argument;
// without argument they stop after a while and all is well. Each rank first prints its process number. See
// mpirun_test.cpp.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/message_laws.h"
#include "comm/mpi.h"

namespace penstock::comm {
namespace {

constexpr int culprit = 1;

void sleep_for(Seconds time) { std::this_thread::sleep_for(std::chrono::duration<double>(time)); }

// One clock for all processes of a machine.
Seconds now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A large exchange of which the culprit does its half before it fails.
void exchange(Communicator& world, const std::function<void()>& in_the_middle) {
  std::vector<std::byte> mine(5'000'000), theirs(mine.size());
  Request receive = world.receive(theirs, previous_of(world), 0);
  Request send = world.send(mine, next_of(world), 0);
  if (world.rank() == culprit) in_the_middle();
  receive.wait();
  send.wait();
}

// The culprit's buffer is gone when the next rank comes to fetch the message.
void fail_with_a_send_under_way(Communicator& world) {
  std::vector<std::byte> text(100'000'000);
  if (world.rank() == culprit) {
    Request send = world.send(text, next_of(world), 0);
    throw RunError("the disk is full");
  }
  sleep_for(1.5);
  if (previous_of(world) == culprit) world.receive(text, culprit, 0).wait();
}

// One byte more than the next rank has room for, and long enough for Open MPI to fetch it from the sender's
// memory.
void send_too_much(Communicator& world) {
  const std::vector<std::byte> written(world.rank() == culprit ? 5'000'001 : 5'000'000, std::byte{1});
  std::vector<std::byte> text(5'000'001);
  Request receive = world.receive(std::span(text).first(5'000'000), previous_of(world), 0);
  Request send = world.send(written, next_of(world), 0);
  try {
    receive.wait();
  } catch (const PeerFailure&) {
    throw;
  } catch (const RunError& failure) {
    throw RunError(text.back() == std::byte{0} ? failure.what() : "written past the end");
  }
  send.wait();
}

void pass_messages(Communicator& world, const std::string& ending) {
  for (int round = 0; round < 10; ++round) exchange(world, [] {});
  if (world.rank() == culprit) std::cout << "failing at " + std::to_string(now()) + "\n" << std::flush;
  exchange(world, [&] {
    if (ending == "throw") throw RunError("the disk is full");
    if (ending == "input") throw InputError("no such file");
    if (ending == "kill") std::raise(SIGKILL);
    if (ending == "abort") world.abort("this cannot go on");
    if (ending == "hang") sleep_for(1000);
  });
  if (ending == "throw while others compute" && world.rank() == culprit) throw RunError("the disk is full");
  if (ending == "throw while others compute") sleep_for(2);
  if (ending == "throw at the end" && world.rank() == culprit) throw RunError("the disk is full");
  if (ending == "throw with a send under way") fail_with_a_send_under_way(world);
  if (ending == "send too much") send_too_much(world);
  if (ending == "all throw") throw InputError("the run file is empty");
}

void report(int rank, const std::exception& failure) {
  std::cerr << "ranks: " + ("rank " + std::to_string(rank) + ": ") + failure.what() + "\n" << std::flush;
}

void run(const std::string& ending) {
  run_mpi(
      [&](Communicator& world) {
        std::cout << "process " + std::to_string(getpid()) + "\n" << std::flush;
        world.set_timeout(ending == "hang" ? 2 : 120);
        pass_messages(world, ending);
      },
      report);
}

// What a main that handles no exceptions does: the world ends the job by itself.
void run_without_handler() {
  const auto world = make_mpi();
  try {
    pass_messages(*world->split(0, 0), "throw");
    world->barrier();
  } catch (const PeerFailure& failure) {
    report(world->rank(), failure);
    throw;
  }
}

}  // namespace
}  // namespace penstock::comm

int main(int argc, char** argv) {
  const std::string ending = argc > 1 ? argv[1] : "well";
  try {
    ending == "uncaught" ? penstock::comm::run_without_handler() : penstock::comm::run(ending);
  } catch (const std::exception&) {
    return 77;  // never: the world has ended the process before
  }
}
