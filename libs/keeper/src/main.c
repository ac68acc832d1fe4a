// The keeper: the main process of a session's container. It owns the user's shell, its output, its process tree and one
// connection to the worker; it outlives the worker, so that a session does. docs/keeper-protocol.md describes what it speaks.
//
//   keeper <socket path | -> [shell [argument ...]]        SF_TOKEN, SF_SYNC (hex; for -), SF_FOLDER in the environment
//
// One thread, one loop. Every file here is one part of it:
//   wire     frames as bytes           link       the connection            identity  the token
//   entry    the entry that runs       clocks     its deadlines             ladder    how it is stopped
//   begun    which ids have begun      shell      the user's shell          report    what it says of a turn
//   folder   what is handed to it      lanes      its output, with rings    input     its stdin, as it comes
//   child    forks of the keeper       processes  the process tree          reaper    their ends
//   files    file operations           terminal  interactive shells
//   pty      a shell at a pseudo-terminal
//   cgroup   limits and kills          text       small files
#define _GNU_SOURCE
#include "begun.h"
#include "cgroup.h"
#include "clocks.h"
#include "entry.h"
#include "folder.h"
#include "identity.h"
#include "input.h"
#include "lanes.h"
#include "link.h"
#include "processes.h"
#include "reaper.h"
#include "shell.h"
#include "terminal.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum Tag { SIGNALS, REPORT_PIPE, LINK_IN, LINK_OUT, INPUT_PIPE, FIRST_LANE, FIRST_LATE = FIRST_LANE + LANES, FIRST_TERMINAL = FIRST_LATE + MAX_LATE };
enum { EVENTS = 32, STOP_MS = 5000 };

static int epoll_fd, signals;

static void watch(int fd, uint64_t tag) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void pong(const Header *ping) {
  static uint8_t processes[MAX_OUTBOUND_PAYLOAD];
  const size_t n = ping->flags ? processes_describe(processes, sizeof processes, entry_since(), shell_pid()) : 0;
  link_put(PONG, 0, ping->flags, 0, ping->offset, processes, n);
}

static void on_frame(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  if (header->type == CLAIM) clocks_forget();
  else clocks_confirm();
  switch (header->type) {
    case CLAIM: terminals_claimed(); entry_claimed(); break;
    case START: entry_start(header, payload); break;
    case ACK: entry_ack(header); terminal_ack(header); break;
    case RESUME: entry_resume(header, payload); break;
    case STOP: entry_stop(header, payload); break;
    case STORAGE: clocks_storage(header->flags); break;
    case CLOSE: terminals_hang_up(); entry_close(take_u32(&cursor)); break;
    case PING: pong(header); break;
    case INPUT: input_on_frame(header, payload); break;
    case TERMINAL_OPEN: terminal_start(header, payload); break;
    case TERMINAL_INPUT: terminal_input(header, payload); break;
    case TERMINAL_RESIZE: terminal_resize(header, payload); break;
    case TERMINAL_CLOSE: terminal_close(header); break;
    default: link_malformed();
  }
}

static void on_signals(void) {
  struct signalfd_siginfo signal;
  while (read(signals, &signal, sizeof signal) > 0) {
    // Only one from outside this pid namespace (docker stop) comes without a sender.
    if (signal.ssi_signo == SIGTERM && signal.ssi_pid == 0) entry_close(STOP_MS);
  }
  reap_children();
}

static void on_event(const struct epoll_event *event) {
  const uint64_t tag = event->data.u64;
  if (tag == SIGNALS) on_signals();
  else if (tag == REPORT_PIPE) entry_on_report();
  else if (tag == LINK_IN) link_read(on_frame);
  else if (tag == LINK_OUT && event->events & (EPOLLERR | EPOLLHUP)) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, 1, 0);
  else if (tag == INPUT_PIPE) input_on_writable();
  else if (tag >= FIRST_TERMINAL) terminal_on_ready(tag - FIRST_TERMINAL);
  else if (tag >= FIRST_LATE) late_on_readable(tag - FIRST_LATE);
  else if (tag >= FIRST_LANE) lane_on_readable(tag - FIRST_LANE);
}

static int sooner(int a, int b) { return a < 0 ? b : b < 0 || a < b ? a : b; }

static void loop(void) {
  for (;;) {
    int wake = sooner(sooner(entry_tick(), input_tick()), shell_wake_ms());
    shell_tick();
    wake = sooner(wake, terminals_tick());
    if (link_is_up()) wake = sooner(wake, late_send());
    int more;
    do {
      more = terminals_send();
      more |= entry_send();
      link_flush();
    } while (more && link_is_flushed());
    wake = sooner(wake, link_tick());
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(epoll_fd, events, EVENTS, wake);
    for (int i = 0; i < n; i++) on_event(&events[i]);
  }
}

static void fail(const char *words) {
  fprintf(stderr, "keeper: %s\n", words);
  exit(1);
}

int main(int argc, char **argv) {
  // Without a pid namespace of our own the sweeps would reach processes that are not the session's.
  if (getpid() != 1) fail("must be the first process of its own pid namespace");
  if (argc < 2) fail("usage: keeper <socket path | -> [shell [argument ...]]");
  const char *socket_path = strcmp(argv[1], "-") ? argv[1] : 0;
  if (!identity_open(!socket_path)) fail("SF_TOKEN (and SF_SYNC for -) must be set");
  prctl(PR_SET_DUMPABLE, 0);
  const char *folder = getenv("SF_FOLDER");
  folder = folder ? strdup(folder) : "/run/shellfleet";
  unsetenv("SF_FOLDER");
  if (strlen(folder) > 90) fail("SF_FOLDER is too long");
  mkdir(folder, 0700);
  if (access(folder, W_OK)) fail("SF_FOLDER (default /run/shellfleet) must be a folder that the user can write to");

  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, 0);
  signal(SIGPIPE, SIG_IGN);
  signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  watch(signals, SIGNALS);

  begun_open();
  cgroup_open("/sys/fs/cgroup");
  processes_open();
  link_open(socket_path, identity_sync(), epoll_fd, LINK_IN, LINK_OUT, entry_hello);
  folder_open(folder);
  lanes_open(epoll_fd, FIRST_LANE, FIRST_LATE);
  input_open(epoll_fd, INPUT_PIPE);
  terminals_open(epoll_fd, FIRST_TERMINAL);
  shell_open(argv + 2, epoll_fd, REPORT_PIPE);
  loop();
}
