#define _GNU_SOURCE
#include "transport.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *socket_path;

enum TransportKind transport_kind(const char *address) {
  if (!strcmp(address, "-")) return OVER_STDIO;
  return strncmp(address, "tcp:", 4) ? OVER_SOCKET : OVER_TCP;
}

static int dial(int *in, int *out) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    log_failure("socket");
    return 0;
  }
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
    // These errors are expected: without a worker there is no file or no listener, and a busy one has a full backlog.
    if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN) log_failure("dialing the worker's socket");
    close(fd);
    return 0;
  }
  *in = *out = fd;
  return 1;
}

const Transport *transport_socket(const char *path) {
  static const Transport transport = {.connect = dial, .read = read, .write = write, .close = close, .is_renewable = 1};
  socket_path = path;
  return &transport;
}

static int inherit(int *in, int *out) {
  for (int fd = 0; fd < 2; fd++) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK)) continue;
    log_failure("fcntl of stdin or stdout");
    return 0;
  }
  *in = 0;
  *out = 1;
  return 1;
}

const Transport *transport_stdio(void) {
  static const Transport transport = {.connect = inherit, .read = read, .write = write};
  return &transport;
}
