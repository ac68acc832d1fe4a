#define _GNU_SOURCE
#include "relay.h"
#include "fail.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OURS = 0, PROGRAMS = 1, BUFFER_BYTES = 64 << 10 };

// Bytes on their way in one direction.
typedef struct {
  char bytes[BUFFER_BYTES];
  size_t from, to;
} Buffer;

static int listener = -1, peer = -1, had_peer, ends[2];
static Buffer outward, inward;

// Uses a socket instead of a pipe: a pipe could be opened again through /proc inside the sandbox.
void relay_open(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) fail("the path %s is too long for a socket", path);
  strcpy(address.sun_path, path);
  unlink(path); // fails if there is no file
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || chmod(path, 0600) ||
      listen(listener, 4))
    fail("listening at %s", path);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) fail("making a pair of sockets");
}

void relay_enter(void) {
  unsetenv("SF_TOKEN");
  unsetenv("SF_SYNC");
  // Kills the program when the launcher dies, because the launcher relays its bytes. If the launcher is dead already,
  // its end of the connection is closed.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL)) fail("tying the program to its relay");
  if (dup2(ends[PROGRAMS], 0) < 0 || dup2(ends[PROGRAMS], 1) < 0) fail("connecting stdin and stdout");
}

void relay_begin(void) {
  const char *token = getenv("SF_TOKEN"), *sync = getenv("SF_SYNC");
  close(ends[PROGRAMS]);
  inward.to = snprintf(inward.bytes, sizeof inward.bytes, "%s %s\n", token ? token : "", sync ? sync : "");
  fcntl(ends[OURS], F_SETFL, O_NONBLOCK);
}

static int is_empty(const Buffer *buffer) { return buffer->from == buffer->to; }

// Reads into the empty buffer. Returns 0 at the end of the stream.
static int fill(Buffer *buffer, int fd) {
  const ssize_t n = read(fd, buffer->bytes, sizeof buffer->bytes);
  if (n > 0) buffer->from = 0, buffer->to = n;
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// Sends what is in the buffer. Returns 0 when the other end no longer reads.
static int drain(Buffer *buffer, int fd) {
  const ssize_t n = send(fd, buffer->bytes + buffer->from, buffer->to - buffer->from, MSG_NOSIGNAL);
  if (n > 0) buffer->from += n;
  return n > 0 || errno == EAGAIN || errno == EINTR;
}

static void leave_peer(void) {
  if (peer >= 0) close(peer);
  peer = -1;
  outward.from = outward.to;
}

static void take_peer(void) {
  const int next = accept4(listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (next < 0) return;
  leave_peer();
  peer = next;
  had_peer = 1;
}

void relay_until_end(void) {
  for (;;) {
    const int out = had_peer && is_empty(&outward), in = is_empty(&inward);
    struct pollfd ready[] = {
      {.fd = listener, .events = POLLIN},
      {.fd = out || !in || !had_peer ? ends[OURS] : -1, .events = (out ? POLLIN : 0) | (in ? 0 : POLLOUT)},
      {.fd = in || !is_empty(&outward) ? peer : -1, .events = (in ? POLLIN : 0) | (is_empty(&outward) ? 0 : POLLOUT)},
    };
    if (poll(ready, 3, -1) < 0 && errno != EINTR) return;
    if (!had_peer && ready[1].revents & (POLLHUP | POLLERR)) return;
    const int can_read = POLLIN | POLLHUP | POLLERR;
    if (out && ready[1].revents & can_read && !fill(&outward, ends[OURS])) return;
    if (peer < 0) outward.from = outward.to;
    else if (!is_empty(&outward) && !drain(&outward, peer)) leave_peer();
    if (peer >= 0 && is_empty(&inward) && ready[2].revents & can_read && !fill(&inward, peer)) leave_peer();
    if (!is_empty(&inward) && !drain(&inward, ends[OURS])) return;
    if (ready[0].revents & POLLIN) take_peer();
  }
}
