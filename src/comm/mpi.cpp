// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/device_messages.h"
#include "comm/ending/call_limit.h"
#include "comm/ending/end_signal.h"
#include "comm/ending/notice.h"
#include "comm/launcher.h"
#include "comm/message.h"
#include "comm/polled_wait.h"

namespace penstock::comm {
namespace {
constexpr std::size_t kPieceBytes = 64 * MiB;  // MPI counts in int; smaller, to make progress visible
constexpr Seconds kFarewellTime = 4;           // for busy ranks to receive a failure
constexpr Seconds kShortFarewell = 1;          // if this rank has timed out: the others have too
constexpr Seconds kLastResort = 1;             // then a rank waiting for termination aborts the job itself
constexpr Seconds kWithdrawalTime = 0.5;  // for all withdrawn messages to complete; SIGTERM cuts it short
constexpr Seconds kNoticePeriod = 2e-3;

int local_size_of_world = 0;  // set when MPI is initialised

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError("MPI: " + std::string(what) + ": " + std::string(text, length));
}

void check(int code, const Message& message) {
  if (code != MPI_SUCCESS) check(code, describe(message).c_str());
}

// The MPI environment: initialisation, finalisation, and failure notices between ranks.
class MpiWorld {
 public:
  MpiWorld(Seconds start_limit, FailureReport report);
  ~MpiWorld();

  // While the result lives, limits a call that waits for other ranks and cannot be interrupted.
  CallLimit limited(const std::string& call, Seconds limit) const {
    return {call, limit, [this](const RunError& failure) { report_(rank_, failure); }};
  }

  Seconds start_limit() const { return start_limit_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int tags_per_channel() const { return tags_per_channel_; }
  bool failed() const { return failure_.has_value(); }
  // Checks for notices every few milliseconds. Throws PeerFailure if a rank has failed, RunError if the
  // launcher ends the job for another reason.
  void poll();
  [[noreturn]] void end(const Notice& own);
  // Completes or frees the request of a withdrawn message.
  void withdraw(MPI_Request& request);

 private:
  void find_neighbours();
  void throw_failure() const {  // another rank's, if one has failed
    if (failure_) throw PeerFailure(failure_->rank, failure_->reason);
  }
  [[noreturn]] void throw_end();
  void read_notice();
  void tell_others();
  void hear_others();

  Seconds start_limit_;
  FailureReport report_;
  int rank_ = launched_rank(), size_ = 1, tags_per_channel_ = 0;
  MPI_Comm notices_ = MPI_COMM_NULL;
  EndSignal end_signal_;
  std::vector<LocalRank> neighbours_;  // all ranks of this machine
  std::vector<bool> has_ended_;        // by rank: its notice has arrived
  std::optional<Notice> failure_;
  std::optional<Deadline> withdrawal_;
  bool silent_ = false;  // a pending message's buffer may be freed: MPI must not move data any more
  Seconds polled_ = 0;
};

MpiWorld::MpiWorld(Seconds start_limit, FailureReport report)
    : start_limit_(start_limit), report_(std::move(report)) {
  prefer_shared_memory();
  const CallLimit limit = limited("the start of MPI", start_limit_);
  int initialised = 0;
  MPI_Initialized(&initialised);
  PENSTOCK_CHECK(!initialised, "MPI is initialised once in a process");
  int level = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "initialising");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "setting the error handler");
  if (level < MPI_THREAD_FUNNELED) throw RunError("this MPI cannot be used in a program with threads");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "asking for the rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "asking for the size");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &notices_), "duplicating the world");
  has_ended_.resize(size_);
  int known = 0, *largest_tag = nullptr;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &known), "asking for the largest tag");
  tags_per_channel_ = *largest_tag / (kChannelLimit + 1);
  find_neighbours();
}

void MpiWorld::find_neighbours() {
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine), "splitting");
  check(MPI_Comm_size(machine, &local_size_of_world), "asking for the machine's size");
  neighbours_.resize(static_cast<std::size_t>(local_size_of_world));
  const LocalRank own{rank_, ::getpid()};
  check(MPI_Allgather(&own, sizeof own, MPI_BYTE, neighbours_.data(), sizeof own, MPI_BYTE, machine),
        "asking for the machine's processes");
  MPI_Comm_free(&machine);
}

MpiWorld::~MpiWorld() {
  if (failure_) end(*failure_);
  if (silent_ || std::uncaught_exceptions() > 0)
    end(make_notice(rank_, Exit::Failed, "an exception ended this rank"));
  const CallLimit limit = limited("the end of MPI", start_limit_);
  MPI_Comm_free(&notices_);
  MPI_Finalize();
}

void MpiWorld::poll() {
  throw_failure();
  if (silent_) throw RunError("this rank gave up a message that is under way, and can send no other");
  if (end_signal_.received()) throw_end();
  const Seconds now = steady_seconds();
  if (now - polled_ >= kNoticePeriod) {
    polled_ = now;
    read_notice();
  }
  throw_failure();
}

void MpiWorld::throw_end() {
  for (int look = 0; look < 2 && !failure_; ++look) read_notice();  // the first probe lets messages arrive
  throw_failure();
  if (const auto rank = gone(neighbours_)) throw PeerFailure(*rank, "its process is gone");
  throw LauncherEnd();
}

void MpiWorld::withdraw(MPI_Request& request) {
  int done = 0;
  while (!silent_ && MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
    if (!withdrawal_) withdrawal_ = Deadline(kWithdrawalTime);
    silent_ = end_signal_.received() || withdrawal_->passed();
    ::usleep(50);
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

void MpiWorld::read_notice() {
  int arrived = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, 0, notices_, &arrived, &status), "looking for notices");
  if (!arrived) return;
  Notice notice;
  check(MPI_Recv(&notice, sizeof notice, MPI_BYTE, status.MPI_SOURCE, 0, notices_, &status), "notices");
  has_ended_[status.MPI_SOURCE] = true;
  if (!failure_) failure_ = notice;
}

void MpiWorld::end(const Notice& own) {
  if (!failure_) failure_ = own;
  std::fflush(nullptr);
  if (end_signal_.received()) {  // as have the others: a rank that ends gets the rest killed
    ::usleep(static_cast<useconds_t>(kLastWords * 1e6));
    std::_Exit(failure_->exit_code);
  }
  try {
    tell_others();
    hear_others();
  } catch (const RunError&) {  // MPI itself fails: only MPI_Abort is left
  }
  if (failure_->rank != rank_) ::usleep(static_cast<useconds_t>(kLastResort * 1e6));
  MPI_Abort(MPI_COMM_WORLD, failure_->exit_code);
  std::_Exit(failure_->exit_code);
}

void MpiWorld::tell_others() {
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    MPI_Request request;  // never completed: its buffer lives until the process ends
    check(MPI_Isend(&*failure_, sizeof(Notice), MPI_BYTE, to, 0, notices_, &request), "telling of a failure");
  }
}

void MpiWorld::hear_others() {
  has_ended_[rank_] = true;
  const Deadline deadline(any_timed_out() ? kShortFarewell : kFarewellTime);
  while (!deadline.passed() && std::ranges::find(has_ended_, false) != has_ended_.end()) {
    if (!silent_) read_notice();
    ::usleep(1000);
  }
}

// A message is sent as its length, then its bytes in pieces. Open MPI (4.1) writes past the end of a receive
// matched with a longer message; so the tag of the pieces depends on the length, which makes such a match
// rare: with the fewest tags of MPI's standard, two lengths in 126 have one tag.
class MpiRequest : public Request::State {
 public:
  MpiRequest(std::shared_ptr<MpiWorld> world, Message message, Seconds timeout)
      : world_(std::move(world)), message_(message), timeout_(timeout) {}

  // Gives pending transfers a moment to complete, because the buffer may be freed after this.
  ~MpiRequest() override {
    for (MPI_Request& part : parts_) {
      if (!message_.sending && part != MPI_REQUEST_NULL) MPI_Cancel(&part);
      world_->withdraw(part);
    }
  }

  void post(std::byte* data, int peer, MPI_Comm comm) {
    const std::size_t bytes = length_ = message_.bytes;
    const int tags = world_->tags_per_channel(), tag = (message_.channel - kCollectiveChannel) * tags;
    post_part(&length_, sizeof length_, peer, tag, comm);
    for (std::size_t begin = 0; begin < bytes; begin += kPieceBytes) {
      const int piece = static_cast<int>(std::min(kPieceBytes, bytes - begin));
      post_part(data + begin, piece, peer, tag + 1 + static_cast<int>(bytes % (tags - 1)), comm);
    }
  }

  bool test() override {
    world_->poll();
    for (; next_ < parts_.size(); ++next_) {
      int done = 0;
      check(MPI_Test(&parts_[next_], &done, MPI_STATUS_IGNORE), message_);
      if (!done) return false;
      if (length_ != message_.bytes) throw wrong_length(message_, length_);
    }
    return true;
  }

  void wait() override { wait_by_polling(*this, message_, timeout_); }
  std::int64_t progress() const override { return static_cast<std::int64_t>(next_); }

 private:
  void post_part(void* data, int bytes, int peer, int tag, MPI_Comm comm) {
    MPI_Request& part = parts_.emplace_back(MPI_REQUEST_NULL);
    check(message_.sending ? MPI_Isend(data, bytes, MPI_BYTE, peer, tag, comm, &part)
                           : MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, comm, &part),
          message_);
  }

  std::shared_ptr<MpiWorld> world_;
  Message message_;
  Seconds timeout_;
  Bytes length_ = 0;  // of the sender's message, once the first part is done
  std::vector<MPI_Request> parts_;
  std::size_t next_ = 0;  // the first part not yet done
};

class MpiCommunicator : public Collectives {
 public:
  MpiCommunicator(std::shared_ptr<MpiWorld> world, MPI_Comm comm, Group group)
      : Collectives(std::move(group)), world_(std::move(world)), comm_(comm) {}
  ~MpiCommunicator() override {
    if (!world_->failed() && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }

  void throw_if_failed() override { world_->poll(); }
  void abort(const std::string& why) override { world_->end(make_notice(world_->rank(), Exit::Failed, why)); }

 protected:
  Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    return send_by_host(bytes, [&](auto host) { return post(true, host, to, channel); });
  }

  Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    return receive_by_host(bytes, [&](auto host) { return post(false, host, from, channel); });
  }

  std::unique_ptr<Communicator> subgroup(Group part, int leader) override {
    MPI_Comm comm = MPI_COMM_NULL;
    const CallLimit limit = world_->limited("the forming of a group of ranks", group().timeout);
    check(MPI_Comm_split(comm_, leader, part.rank, &comm), "splitting a group");
    return std::make_unique<MpiCommunicator>(world_, comm, std::move(part));
  }

 private:
  Request post(bool sending, std::span<const std::byte> bytes, int peer, int channel) {
    world_->poll();
    const Message message{sending, group().members[peer], channel, static_cast<Bytes>(bytes.size())};
    auto state = std::make_unique<MpiRequest>(world_, message, group().timeout);
    state->post(const_cast<std::byte*>(bytes.data()), peer, comm_);
    return Request(std::move(state), message);
  }

  std::shared_ptr<MpiWorld> world_;
  MPI_Comm comm_;
};

std::unique_ptr<Communicator> make_group_of_all(const std::shared_ptr<MpiWorld>& world) {
  MPI_Comm comm = MPI_COMM_NULL;
  const CallLimit limit = world->limited("the start of MPI", world->start_limit());
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "duplicating the world");
  return std::make_unique<MpiCommunicator>(world, comm, group_of_all(world->rank(), world->size()));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi() {
  return make_group_of_all(std::make_shared<MpiWorld>(kUsualStartLimit, [](int, const std::exception&) {}));
}

void run_mpi(const std::function<void(Communicator&)>& body, const FailureReport& report,
             Seconds start_limit) {
  const auto world = std::make_shared<MpiWorld>(start_limit, report);
  std::unique_ptr<Communicator> all;  // outside the try: nothing of it is freed before a failure is told
  const auto failed = [&](const std::exception& failure, Exit exit) {
    report(world->rank(), failure);
    world->end(make_notice(world->rank(), exit, failure.what()));
  };
  try {
    all = make_group_of_all(world);
    body(*all);
    all->barrier();
  } catch (const InputError& failure) {
    failed(failure, Exit::WrongInput);
  } catch (const std::exception& failure) {
    failed(failure, Exit::Failed);
  } catch (...) {
    failed(RunError("an exception that is not a std::exception"), Exit::Failed);
  }
}

int place_on_machine(int rank) { return local_size_of_world > 0 ? launched_local_rank() : rank; }
int local_ranks() { return local_size_of_world > 0 ? local_size_of_world : launched_local_ranks(); }

}  // namespace penstock::comm
