#define _GNU_SOURCE
#include "forwarder.h"
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS = 128, PIECE_BYTES = 16 << 10, RETRY_MS = 50, AWAY_WITHIN_MS = 5000, LISTENING = 3 };

#define AWAY_TEXT "The proxy is not there at the moment: the session's worker may be restarting.\n"
static const char AWAY[] = "HTTP/1.1 503 The proxy of this session is away\r\nContent-Type: text/plain\r\n"
                           "Connection: close\r\nContent-Length: 78\r\n\r\n" AWAY_TEXT;
_Static_assert(sizeof AWAY_TEXT - 1 == 78, "the length that the reply names");

typedef struct {
  uint8_t bytes[PIECE_BYTES];
  size_t from, to;
  int has_ended, is_shut; // the source has no more bytes, and the other end was shut down for writing
} Way;

typedef struct {
  int inside, outside; // inside -1: the slot is free; outside -1: the proxy is not reached yet
  uint64_t since, tried_at;
  Way out, in;
} Connection;

static Connection connections[CONNECTIONS];
static struct sockaddr_un proxy = {.sun_family = AF_UNIX};

static void release(Connection *connection) {
  close(connection->inside);
  if (connection->outside >= 0) close(connection->outside);
  connection->inside = connection->outside = -1;
}

static Connection *find_free(void) {
  for (int i = 0; i < CONNECTIONS; i++)
    if (connections[i].inside < 0) return &connections[i];
  return 0;
}

// Replies that the proxy is away. Reads the input first, because unread input would make the kernel drop the reply.
static void reply_away(Connection *connection) {
  if (read(connection->inside, connection->out.bytes, sizeof connection->out.bytes) < 0) errno = 0;
  if (send(connection->inside, AWAY, sizeof AWAY - 1, MSG_NOSIGNAL) < 0) errno = 0; // its client has gone
  release(connection);
}

// Connects to the proxy. A busy proxy has a full backlog. A proxy that is away has no socket, or one without a
// listener.
static void reach_proxy(Connection *connection) {
  connection->tried_at = now_ms();
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && !connect(fd, (struct sockaddr *)&proxy, sizeof proxy)) {
    connection->outside = fd;
    return;
  }
  if (fd >= 0) close(fd);
  if (connection->tried_at - connection->since < AWAY_WITHIN_MS) return;
  reply_away(connection);
}

static void accept_one(void) {
  Connection *connection = find_free();
  const int fd = connection ? accept4(LISTENING, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
  if (fd < 0) return; // its client has gone
  connection->inside = fd;
  connection->since = now_ms();
  connection->out.from = connection->out.to = connection->in.from = connection->in.to = 0;
  connection->out.has_ended = connection->out.is_shut = connection->in.has_ended = connection->in.is_shut = 0;
  reach_proxy(connection);
}

static int is_temporary(void) { return errno == EAGAIN || errno == EINTR; }

// Reads from the source into an empty buffer. Returns 0 when the connection is broken, as `give` does.
static int take(Way *way, int source) {
  if (way->has_ended || way->from < way->to) return 1;
  const ssize_t n = read(source, way->bytes, sizeof way->bytes);
  if (n < 0) return is_temporary();
  way->has_ended = n == 0;
  way->from = 0;
  way->to = n;
  return 1;
}

static int give(Way *way, int target) {
  if (way->from < way->to) {
    const ssize_t n = send(target, way->bytes + way->from, way->to - way->from, MSG_NOSIGNAL);
    if (n < 0) return is_temporary();
    way->from += n;
  }
  if (way->from < way->to || !way->has_ended || way->is_shut) return 1;
  way->is_shut = 1;
  return !shutdown(target, SHUT_WR);
}

static int is_drained(const Way *way) { return way->has_ended && way->from == way->to; }

static void relay(Connection *c, short inside, short outside) {
  const short gone = POLLHUP | POLLERR;
  int is_whole = !(inside & gone && is_drained(&c->out)) && !(outside & gone && is_drained(&c->in));
  if (is_whole && inside) is_whole = take(&c->out, c->inside);
  if (is_whole && outside) is_whole = take(&c->in, c->outside);
  is_whole = is_whole && give(&c->out, c->outside) && give(&c->in, c->inside);
  if (!is_whole || (c->out.is_shut && c->in.is_shut)) release(c);
}

// Polls a source while its buffer is empty, else the target. Does not poll an end whose bytes wait for the other end,
// because poll() always reports a closed end.
static void want(struct pollfd *fd, int descriptor, const Way *from_it, const Way *to_it) {
  fd->events = 0;
  if (!from_it->has_ended && from_it->from == from_it->to) fd->events |= POLLIN;
  if (to_it->from < to_it->to) fd->events |= POLLOUT;
  fd->fd = fd->events || is_drained(from_it) ? descriptor : -1;
}

static void loop(void) {
  static struct pollfd fds[1 + 2 * CONNECTIONS];
  for (;;) {
    int wait_ms = -1;
    fds[0] = (struct pollfd){.fd = find_free() ? LISTENING : -1, .events = POLLIN};
    for (int i = 0; i < CONNECTIONS; i++) {
      Connection *c = &connections[i];
      struct pollfd *pair = &fds[1 + 2 * i];
      pair[0].fd = pair[1].fd = -1;
      pair[0].revents = pair[1].revents = 0;
      if (c->inside < 0) continue;
      if (c->outside < 0) {
        wait_ms = RETRY_MS;
        continue;
      }
      want(&pair[0], c->inside, &c->out, &c->in);
      want(&pair[1], c->outside, &c->in, &c->out);
    }
    if (poll(fds, sizeof fds / sizeof *fds, wait_ms) < 0 && errno != EINTR) _exit(1); // the keeper starts another
    const uint64_t now = now_ms();
    for (int i = 0; i < CONNECTIONS; i++) {
      Connection *c = &connections[i];
      const short inside = fds[1 + 2 * i].revents, outside = fds[2 + 2 * i].revents;
      if (c->inside < 0) continue;
      if (c->outside < 0 && now - c->tried_at >= RETRY_MS) reach_proxy(c);
      else if (inside || outside) relay(c, inside, outside);
    }
    if (fds[0].revents & POLLIN) accept_one();
  }
}

// Closes the keeper's descriptors: while this process held them, the other ends would not see the keeper close them.
static void close_others(int listening) {
  dup2(listening, LISTENING);
#ifdef SYS_close_range
  if (!syscall(SYS_close_range, LISTENING + 1, ~0u, 0)) return;
#endif
  struct rlimit most;
  if (getrlimit(RLIMIT_NOFILE, &most)) _exit(1);
  for (int fd = LISTENING + 1; fd < (int)most.rlim_cur; fd++) close(fd);
}

_Noreturn void forwarder_run(int listening, const char *path) {
  strncpy(proxy.sun_path, path, sizeof proxy.sun_path - 1);
  close_others(listening);
  for (int i = 0; i < CONNECTIONS; i++) connections[i].inside = connections[i].outside = -1;
  loop();
  _exit(1);
}
