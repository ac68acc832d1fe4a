#define _GNU_SOURCE
#include "egress.h"
#include "child.h"
#include "clock.h"
#include "forwarder.h"
#include "log.h"
#include "processes.h"
#include "reaper.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, AGAIN_MS = 100 };

static struct {
  char *path; // of the proxy's socket; null: the sandbox's network is not limited
  int listening;
  pid_t forwarder; // 0: none
  uint64_t started_at;
} own = {.listening = -1};

static int listen_on_loopback(void) {
  const struct sockaddr_in address = {
    .sin_family = AF_INET, .sin_port = htons(EGRESS_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
      !bind(fd, (const struct sockaddr *)&address, sizeof address) && !listen(fd, BACKLOG))
    return fd;
  log_failure("listening for the proxy on the loopback");
  if (fd >= 0) close(fd);
  return -1;
}

static void start(void) {
  own.started_at = now_ms();
  own.forwarder = fork();
  if (!own.forwarder) {
    child_setup_program();
    forwarder_run(own.listening, own.path);
  }
  if (own.forwarder < 0) { // at the limit of processes; the next tick tries again
    own.forwarder = 0;
    return;
  }
  reaper_watch(own.forwarder);
  processes_spare(own.forwarder);
}

int egress_open(void) {
  const char *path = getenv("SF_EGRESS");
  if (!path) return 1;
  own.path = strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path ? strdup(path) : 0;
  unsetenv("SF_EGRESS");
  if (!own.path) {
    log_message("SF_EGRESS must be the path of a unix socket");
    return 0;
  }
  own.listening = listen_on_loopback();
  if (own.listening < 0) return 0;
  start();
  return 1;
}

// A forwarder that was killed counts until it is reaped, and no longer: another process must not take its place.
int egress_processes(void) { return own.forwarder > 0 && !kill(own.forwarder, 0); }

int egress_tick(void) {
  int status;
  if (!own.path) return -1;
  if (own.forwarder && reaper_take(own.forwarder, &status)) {
    processes_unspare(own.forwarder);
    own.forwarder = 0;
  }
  if (own.forwarder) return -1;
  const uint64_t now = now_ms();
  if (now - own.started_at < AGAIN_MS) return AGAIN_MS - (int)(now - own.started_at);
  start();
  return own.forwarder ? -1 : AGAIN_MS;
}
