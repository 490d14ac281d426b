// SPDX-License-Identifier: Apache-2.0
#include "train/flight/flight_recorder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "files/atomic_file.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "schedule/program_text.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr auto kPeriod = std::chrono::milliseconds(500);    // between polls for a request
constexpr auto kOwnPeriod = std::chrono::milliseconds(50);  // between polls for answers
constexpr Seconds kTelling = 1;                             // for the reporting rank to finish
constexpr std::size_t kLongestAnswer = std::size_t{1} << 24;

std::atomic<bool> asked_by_signal = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use nothing else");

// Time of the request, which identifies it; 0: no request.
std::int64_t time_of(const std::string& request) {
  std::error_code error;
  const auto time = fs::last_write_time(request, error);
  return error ? 0 : time.time_since_epoch().count();
}

std::string text_of(const Positions& positions, const comm::RankNames& names, Readable readable) {
  return culprit(positions, names, readable) + "\n" + print_positions(positions, names, readable);
}

}  // namespace

FlightRecorder::FlightRecorder(Setting setting)
    : setting_(std::move(setting)),
      noted_(notes_),
      since_(steady_seconds()),
      thread_(
          start_thread("reports of ranks that wait", [this] { return std::jthread([this] { watch(); }); })) {}

FlightRecorder::~FlightRecorder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void FlightRecorder::ask() { asked_by_signal = true; }

void FlightRecorder::begin_step(std::int64_t step) {
  enter("the start of the step");
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void FlightRecorder::enter(const schedule::Op& op, bool sliced) {
  const Seconds now = steady_seconds();
  const std::lock_guard lock(mutex_);
  op_ = op;
  sliced_ = sliced;
  since_ = now;
}

void FlightRecorder::enter(const char* work) {
  const Seconds now = steady_seconds();
  const std::lock_guard lock(mutex_);
  op_.reset();
  work_ = work;
  since_ = now;
}

Position FlightRecorder::position() const {
  const Seconds now = steady_seconds();
  Position position{.rank = setting_.rank, .passed = notes_.passed()};
  if (const auto wait = notes_.wait()) {
    const comm::Message& message = wait->message;
    position.wait = {message.sending, message.peer, message.channel, now - wait->since};
  }
  const std::lock_guard lock(mutex_);
  position.step = step_;
  position.work = op_ ? schedule::to_token(*op_, sliced_) : work_;
  position.working = now - since_;
  return position;
}

// File system errors do not end the run: the requester sees that there is no answer.
void FlightRecorder::watch() {
  std::int64_t answered = 0;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock, kPeriod, [&] { return ends_ || asked_; });
    const bool asks = std::exchange(asked_, false) || asked_by_signal.exchange(false);
    lock.unlock();
    try {
      if (asks && !request()) answer_alone();
      const std::int64_t request = time_of(path(files::kWhereRequest));
      if (request != 0 && request != answered) {
        answer(request);
        collect(request);
        answered = request;
      }
    } catch (const std::exception&) {
    }
    lock.lock();
  }
}

// Creates the request file unless it exists. Returns whether it exists now, perhaps from a faster rank.
bool FlightRecorder::request() const {
  const std::string where = path(files::kWhereRequest);
  try {
    if (time_of(where) == 0) files::write_atomically(where, "");
  } catch (const RunError&) {
  }
  return time_of(where) != 0;
}

// The failure that this explains ends the run, so it waits: ranks elsewhere take that long to report theirs.
void FlightRecorder::answer_alone() {
  Positions positions(setting_.names.size());
  positions[static_cast<std::size_t>(setting_.rank)] = position();
  const std::string text = text_of(positions, setting_.names, Readable::OwnRank);
  if (setting_.tell) setting_.tell(text);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(setting_.patience), [&] { return ends_; });
  }
  explain_by(text);
}

std::string FlightRecorder::answer_of(std::int64_t request, int rank) const {
  return path(files::kPositions) + "/" + std::to_string(request) + "-" + std::to_string(rank) + ".json";
}

void FlightRecorder::answer(std::int64_t request) {
  files::make_directory(path(files::kPositions));
  files::write_atomically(answer_of(request, setting_.rank), json_of(position()));
}

Positions FlightRecorder::answers_to(std::int64_t request) const {
  Positions positions(setting_.names.size());
  const int ranks = static_cast<int>(positions.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string file = answer_of(request, rank);
    if (!fs::exists(file)) continue;
    positions[static_cast<std::size_t>(rank)] =
        parse_position(files::read_text(file, kLongestAnswer), file, rank, ranks);
  }
  return positions;
}

// Answers of all ranks, or of those in time. Empty if the request has ended meanwhile.
Positions FlightRecorder::wait_for_answers(std::int64_t request) const {
  const Seconds until = steady_seconds() + setting_.patience;
  while (time_of(path(files::kWhereRequest)) == request) {
    const Positions positions = answers_to(request);
    if (!silent_rank(positions) || steady_seconds() > until) return positions;
    std::this_thread::sleep_for(kOwnPeriod);
  }
  return {};
}

// The lowest rank that has answered reports and so ends the request; the others wait for that.
void FlightRecorder::collect(std::int64_t request) {
  const Positions positions = wait_for_answers(request);
  const Readable readable = setting_.gathers ? Readable::OwnHost : Readable::AllRanks;
  const std::string text = positions.empty() ? files::read_text(path(files::kPositionsText), kLongestAnswer)
                                             : text_of(positions, setting_.names, readable);
  const auto lowest = std::ranges::find_if(positions, [](const auto& answer) { return answer.has_value(); });
  if (lowest != positions.end() && (*lowest)->rank == setting_.rank) {
    files::write_atomically(path(files::kPositionsText), text);
    if (setting_.tell) setting_.tell(text);
    files::remove_all(path(files::kWhereRequest));
    files::remove_all(path(files::kPositions));
  } else {
    const Seconds until = steady_seconds() + kTelling;
    while (time_of(path(files::kWhereRequest)) == request && steady_seconds() < until)
      std::this_thread::sleep_for(kOwnPeriod);
  }
  explain_by(text);
}

void FlightRecorder::explain_by(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    explanation_ = text.substr(0, text.find('\n'));
    explained_at_ = steady_seconds();
    ++explained_;
  }
  changed_.notify_all();
}

std::string FlightRecorder::explain() {
  const auto wait = notes_.wait();
  if (!wait) return {};
  const Seconds patience = 2 * setting_.patience + 1;
  std::unique_lock lock(mutex_);
  // A rank that gave up first had this wait explained; it has ended since, and would seem to be the culprit.
  if (explained_at_ >= wait->since && steady_seconds() - explained_at_ < patience) return explanation_;
  const std::int64_t before = explained_;
  asked_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::duration<double>(patience), [&] { return explained_ > before; });
  return explained_ > before ? explanation_ : std::string();
}

}  // namespace penstock::train
