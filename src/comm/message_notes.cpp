// SPDX-License-Identifier: Apache-2.0
#include "comm/message_notes.h"

#include <exception>

#include "base/clock.h"

namespace penstock::comm {
namespace {

thread_local MessageNotes* notes_here = nullptr;
thread_local std::optional<int> channel_here;

}  // namespace

std::optional<MessageNotes::Wait> MessageNotes::wait() const {
  const std::lock_guard lock(mutex_);
  return wait_;
}

std::vector<Passed> MessageNotes::passed() const {
  const std::lock_guard lock(mutex_);
  std::vector<Passed> all;
  for (const auto& [key, passed] : passed_) all.push_back(passed);
  return all;
}

NotesScope::NotesScope(MessageNotes& notes) : before_(std::exchange(notes_here, &notes)) {}
NotesScope::~NotesScope() { notes_here = before_; }

NotedOn::NotedOn(int channel) : outermost_(!channel_here) {
  if (outermost_) channel_here = channel;
}
NotedOn::~NotedOn() {
  if (outermost_) channel_here.reset();
}

Message as_noted(Message message) {
  message.channel = channel_here.value_or(message.channel);
  return message;
}

WaitScope::WaitScope(const Message& message) : exceptions_(std::uncaught_exceptions()) {
  if (!notes_here) return;
  const std::lock_guard lock(notes_here->mutex_);
  before_ = std::exchange(notes_here->wait_, MessageNotes::Wait{message, steady_seconds()});
}

WaitScope::~WaitScope() {
  if (!notes_here || std::uncaught_exceptions() > exceptions_) return;
  const std::lock_guard lock(notes_here->mutex_);
  notes_here->wait_ = before_;
}

void note_posted(const Message& message) {
  if (!notes_here || !message.sending) return;
  const std::lock_guard lock(notes_here->mutex_);
  Passed& passed = notes_here->passed_[{message.peer, message.channel}];
  passed.peer = message.peer;
  passed.channel = message.channel;
  ++passed.sent;
}

void note_done(const Message& message) {
  if (!notes_here || message.sending) return;
  const std::lock_guard lock(notes_here->mutex_);
  Passed& passed = notes_here->passed_[{message.peer, message.channel}];
  passed.peer = message.peer;
  passed.channel = message.channel;
  ++passed.received;
}

}  // namespace penstock::comm
