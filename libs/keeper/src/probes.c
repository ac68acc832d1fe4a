#define _GNU_SOURCE
#include "probes.h"
#include "clock.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WITHIN_MS = 1000, LOOK_MS = 10, ADDRESS_CHARS = INET6_ADDRSTRLEN + sizeof "[]:65535" };

typedef struct {
  char address[ADDRESS_CHARS]; // as it was given
  int fd;                      // -1: the attempt is over
  const char *result;
} Probe;

static Probe probes[MOST_PROBES];
static int count;
static uint64_t began_at;

// Returns the length of the socket's address, or 0 for a text that is not `host:port`.
static socklen_t parse(const char *text, struct sockaddr_storage *parsed) {
  char host[ADDRESS_CHARS];
  snprintf(host, sizeof host, "%s", text);
  char *colon = strrchr(host, ':');
  if (!colon) return 0;
  char *end;
  const unsigned long port = strtoul(colon + 1, &end, 10);
  if (colon[1] < '0' || colon[1] > '9' || *end || !port || port > 65535) return 0;
  *colon = 0;
  *parsed = (struct sockaddr_storage){0};
  struct sockaddr_in *v4 = (struct sockaddr_in *)parsed;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)parsed;
  if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return sizeof *v4;
  }
  if (host[0] != '[' || colon[-1] != ']') return 0;
  colon[-1] = 0;
  if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1) return 0;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  return sizeof *v6;
}

static void finish(Probe *probe, const char *result) {
  if (probe->fd >= 0) close(probe->fd);
  probe->fd = -1;
  probe->result = result;
}

static const char *describe(int error) {
  if (!error) return "connected";
  if (error == ECONNREFUSED || error == ECONNRESET) return "refused";
  return error == ETIMEDOUT ? "timeout" : "unreachable";
}

static void begin(Probe *probe) {
  struct sockaddr_storage address;
  const socklen_t n = parse(probe->address, &address);
  probe->fd = n ? socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
  if (!n || (probe->fd < 0 && errno != EAFNOSUPPORT)) finish(probe, "failed");
  else if (probe->fd < 0) finish(probe, describe(errno));
  else if (!connect(probe->fd, (struct sockaddr *)&address, n)) finish(probe, describe(0));
  else if (errno != EINPROGRESS) finish(probe, describe(errno));
}

void probes_begin(const uint8_t *bytes, size_t n) {
  static const char word[] = "probe ";
  probes_end();
  began_at = now_ms();
  const uint8_t *const end = bytes + n;
  while (bytes < end && count < MOST_PROBES) {
    const uint8_t *newline = memchr(bytes, '\n', end - bytes);
    const size_t length = (newline ? newline : end) - bytes, skipped = sizeof word - 1;
    if (length > skipped && length - skipped < ADDRESS_CHARS && !memcmp(bytes, word, skipped)) {
      Probe *probe = &probes[count++];
      *probe = (Probe){.fd = -1};
      memcpy(probe->address, bytes + skipped, length - skipped);
      begin(probe);
    }
    bytes += length + 1;
  }
}

void probes_end(void) {
  for (int i = 0; i < count; i++) finish(&probes[i], "timeout");
  count = 0;
}

int probes_look(void) {
  int running = 0;
  const int is_late = now_ms() - began_at >= WITHIN_MS;
  for (int i = 0; i < count; i++) {
    struct pollfd one = {.fd = probes[i].fd, .events = POLLOUT};
    if (one.fd < 0) continue;
    int error = 0;
    socklen_t n = sizeof error;
    if (poll(&one, 1, 0) > 0) {
      getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &error, &n); // of a socket it cannot fail
      finish(&probes[i], describe(error));
    } else if (is_late) {
      finish(&probes[i], "timeout");
    } else {
      running = 1;
    }
  }
  return running ? LOOK_MS : -1;
}

size_t probes_describe(char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    const int n = snprintf(text + used, size - used, "probe %s %s\n", probes[i].address, probes[i].result);
    if (n < 0 || used + n >= size) break; // a cut line is left out
    used += n;
  }
  return used;
}
