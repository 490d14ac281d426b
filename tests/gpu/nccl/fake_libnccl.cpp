// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 for a fake GPU (fake_gpu.cpp): groups of two processes of one machine, whose
// messages go through a socket. As NCCL's own, joining waits for the other rank, the first message of a group
// does so in the call, and a message stays in its stream until the other side has its part.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "comm/gpus/nccl.h"
#include "comm/lagging_stream.h"

using penstock::comm::Nccl;
using penstock::testing::LaggingStream;

namespace {

constexpr int kSystemError = 2;

struct Group {
  int socket = -1;
  std::atomic<bool> failed = false;
  bool connected = false;
};

bool move_all(int socket, char* data, std::size_t bytes, bool sending) {
  while (bytes > 0) {
    const ssize_t moved =
        sending ? ::send(socket, data, bytes, MSG_NOSIGNAL) : ::recv(socket, data, bytes, 0);
    if (moved <= 0) return false;
    data += moved;
    bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

// A byte each way: both sides have come so far.
bool meet(int socket) {
  char byte = 'm';
  return move_all(socket, &byte, 1, true) && move_all(socket, &byte, 1, false);
}

sockaddr_un address_of(const Nccl::Id& id) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", id.bytes);
  return address;
}

int accepted(const Nccl::Id& id) {
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(id);
  if (::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return -1;
  ::listen(listening, 1);
  const int socket = ::accept(listening, nullptr, nullptr);
  ::close(listening);
  ::unlink(id.bytes);
  return socket;
}

int connected(const Nccl::Id& id) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(id);
  for (int tries = 0; tries < 60000; ++tries) {
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    ::usleep(1000);
  }
  return -1;
}

int give(void* handle, Group* group, char* data, std::size_t bytes, bool sending) {
  if (!std::exchange(group->connected, true) && !meet(group->socket)) return kSystemError;
  static_cast<LaggingStream*>(handle)->issue([=] {
    char arrived = 'a';
    const bool moved =
        move_all(group->socket, data, bytes, sending) && move_all(group->socket, &arrived, 1, !sending);
    if (!moved) group->failed = true;
  });
  return Nccl::kSuccess;
}

}  // namespace

extern "C" {

int ncclGetUniqueId(Nccl::Id* id) {
  static std::atomic<int> number = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, 100, "/tmp/penstock-fake-nccl-%d-%d", getpid(), number++);
  return Nccl::kSuccess;
}

int ncclCommInitRank(Group** group, int /*ranks*/, Nccl::Id id, int rank) {
  auto* const made = new Group{.socket = rank == 0 ? accepted(id) : connected(id)};
  if (made->socket < 0) return kSystemError;
  *group = made;
  return meet(made->socket) ? Nccl::kSuccess : kSystemError;
}

int ncclSend(const void* data, std::size_t bytes, int, int, Group* group, void* stream) {
  return give(stream, group, static_cast<char*>(const_cast<void*>(data)), bytes, true);
}

int ncclRecv(void* data, std::size_t bytes, int, int, Group* group, void* stream) {
  return give(stream, group, static_cast<char*>(data), bytes, false);
}

int ncclCommGetAsyncError(Group* group, int* error) {
  *error = group->failed ? kSystemError : Nccl::kSuccess;
  return Nccl::kSuccess;
}

// The group's memory stays: work that is in a stream yet meets the end of the socket.
int ncclCommAbort(Group* group) {
  ::shutdown(group->socket, SHUT_RDWR);
  return Nccl::kSuccess;
}

int ncclCommDestroy(Group* group) {
  meet(group->socket);
  return ncclCommAbort(group);
}

const char* ncclGetErrorString(int) { return "the other side of a socket is gone"; }
}
