// The keeper: the main process of a session's container. It owns the user's shell, its output, its process tree and one
// connection to the worker. It outlives the worker, and so does the session. docs/keeper-protocol.md describes its
// protocol.
//
//   keeper <socket path | - | tcp:[address:]port> [shell [argument ...]]
//   environment: SF_TOKEN, SF_SYNC (hex; for -), SF_DIRECTORY, SF_WORKSPACE, SF_EGRESS, SF_UNCLAIMED_MS,
//     SF_LOOP; for - without SF_TOKEN both are the first line of stdin; for tcp only SF_LINK_KEY and SF_LINK_PSK (hex)
//     instead, and SF_UNCLAIMED_MS
//   keeper --install <path>: copies itself there
//   keeper hold: what the keeper starts when its shell has closed descriptors
//
// One thread, one loop. Every file is one part of it; a file includes only files that are listed below it.
//   orphan, closing             the end of the keeper       hello       the HELLO message
//   file_calls                  file operations             examine     the EXAMINED message
//   enforced                    what the kernel enforces    probes      what is in reach
//   entry                       the entry that runs
//   ladder, process_limit       stopping a command          terminal    interactive shells
//   ending                      the END message             pty         a shell at a pseudo-terminal
//   shell                       the user's shell            clocks      deadlines
//   output, late, input         a command's streams         report      the reports of the shell's loop
//   directory                   where the shell is
//   run_directory               files for the shell         start       the START message
//   usage                       processor time and memory
//   files                       one file operation          egress      the way to the proxy
//   forwarder                   the process of egress       child       forks of the keeper
//   tree, bundle, remove        listings, many files        file_steps  steps that they share
//   link                        the connection              begun       ids of earlier entries
//   listener, transport         ways to the worker          records     encrypted messages over TCP
//   noise                       their handshake             addresses   of this network namespace
//   processes, reaper, cgroup   the process tree            events      epoll
//   ring_buffer, text, memory, identity, workspace, wire, log, clock, sealed, off_limits, install
#define _GNU_SOURCE
#include "begun.h"
#include "cgroup.h"
#include "clocks.h"
#include "closing.h"
#include "directory.h"
#include "egress.h"
#include "entry.h"
#include "events.h"
#include "examine.h"
#include "file_calls.h"
#include "run_directory.h"
#include "hello.h"
#include "identity.h"
#include "input.h"
#include "install.h"
#include "late.h"
#include "link.h"
#include "listener.h"
#include "log.h"
#include "orphan.h"
#include "output.h"
#include "processes.h"
#include "reaper.h"
#include "records.h"
#include "sealed.h"
#include "shell.h"
#include "terminal.h"
#include "transport.h"
#include "workspace.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS = 32, STOP_MS = 5000, LAST_MESSAGES_MS = 1000, HOLD_SECONDS = 5 };

static int signals = -1;
static int is_giving_up; // the keeper could not start
static int is_in_pod; // the keeper listens for its worker

static void send_log(void) {
  uint32_t number;
  for (const char *text; (text = log_unsent(&number));) {
    if (!link_put(LOG, 0, 0, 0, number, text, strlen(text))) return;
    log_sent();
  }
}

// A keeper that gives up sends its log with the HELLO, so that a worker that reads after its end still finds the log.
static void greet(void) {
  hello_put();
  if (is_giving_up) send_log();
}

static void pong(const Header *ping, const uint8_t *payload) {
  static uint8_t text[MAX_OUTBOUND_PAYLOAD];
  size_t n = 0;
  if (ping->flags == WITH_PROCESSES) n = processes_describe(text, sizeof text, entry_since(), shell_pid());
  if (ping->flags == WITH_DIRECTORY) n = directory_describe(text, sizeof text, payload, ping->length);
  link_put(PONG, 0, ping->flags, 0, ping->offset, text, n); // without room the worker asks again
}

// The log goes before the HELLO, so that a worker that gives up at the HELLO has already received it.
static void on_claim(void) {
  terminals_claimed();
  file_calls_claimed();
  examine_end();
  entry_on_claim();
  send_log();
  hello_put();
}

static void on_frame(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  if (header->type == CLAIM) clocks_forget();
  else clocks_confirm();
  switch (header->type) {
    case CLAIM: on_claim(); break;
    case START: entry_start(header, payload); break;
    case ACK:
      entry_ack(header);
      terminal_ack(header);
      break;
    case RESUME: entry_resume(header, payload); break;
    case STOP:
      entry_stop(header, payload);
      file_call_stop(header);
      break;
    case STORAGE: clocks_storage(header->flags); break;
    case CLOSE:
      terminals_hang_up();
      closing_begin(take_u32(&cursor));
      break;
    case PING: pong(header, payload); break;
    case INPUT: input_on_frame(header, payload); break;
    case TERMINAL_OPEN: terminal_start(header, payload); break;
    case TERMINAL_INPUT: terminal_input(header, payload); break;
    case TERMINAL_RESIZE: terminal_resize(header, payload); break;
    case TERMINAL_CLOSE: terminal_close(header); break;
    case FILE_CALL: file_call_start(header, payload); break;
    case EXAMINE: examine_begin(header, payload); break;
    default: link_malformed();
  }
}

// Returns whether the signal came from outside this pid namespace: its sender has no number here. A process inside can
// send one without a number too, such as with F_SETSIG, but then the code is another one.
static int is_from_outside(const struct signalfd_siginfo *signal) {
  return signal->ssi_pid == 0 && (signal->ssi_code == SI_USER || signal->ssi_code == SI_KERNEL);
}

static void on_signals(void) {
  struct signalfd_siginfo signal;
  while (read(signals, &signal, sizeof signal) > 0) {
    // A kubelet kills the Pod when its grace is over, so the entry may run until then; `docker stop` leaves less time.
    if (signal.ssi_signo != SIGTERM || !is_from_outside(&signal)) continue;
    if (is_in_pod) closing_begin_after_entry(STOP_MS);
    else closing_begin(STOP_MS);
  }
  reap_children();
}

static void on_event(const struct epoll_event *event) {
  const uint64_t tag = event->data.u64;
  if (tag == SIGNALS) on_signals();
  else if (tag == REPORT_PIPE) entry_on_report();
  else if (tag == LINK_IN) link_read(on_frame);
  else if (tag == LINK_PEERS) link_accept(on_frame);
  else if (tag == LINK_OUT && event->events & (EPOLLERR | EPOLLHUP)) events_remove(1);
  else if (tag == INPUT_PIPE) input_on_writable();
  else if (tag >= FIRST_TERMINAL) terminal_on_ready(tag - FIRST_TERMINAL);
  else if (tag >= FIRST_LATE) late_on_readable(tag - FIRST_LATE);
  else if (tag >= FIRST_OUTPUT) output_on_readable(tag - FIRST_OUTPUT);
}

static int sooner(int a, int b) { return a < 0 ? b : b < 0 || a < b ? a : b; }

static int tick(void) {
  int wake = sooner(orphan_tick(), closing_tick());
  wake = sooner(wake, entry_tick());
  wake = sooner(wake, input_tick());
  wake = sooner(wake, shell_tick());
  wake = sooner(wake, file_calls_tick());
  wake = sooner(wake, egress_tick());
  wake = sooner(wake, examine_tick());
  return sooner(wake, terminals_tick());
}

static void send_all(void) {
  int more;
  do {
    more = terminals_send();
    more |= entry_send();
    more |= file_calls_send();
    if (link_is_up()) send_log();
    link_flush();
  } while (more && link_is_flushed());
}

static void loop(void) {
  for (;;) {
    // Handles ended children before other events, because the last report of an ended shell is read here.
    entry_on_children();
    terminals_on_children();
    file_calls_on_children();
    int wake = tick();
    if (link_is_up()) wake = sooner(wake, late_send());
    send_all();
    wake = sooner(wake, link_tick());
    struct epoll_event events[EVENTS];
    const int output_ms = late_is_open() ? 0 : entry_output_after();
    if (output_ms > 0) wake = sooner(wake, output_ms);
    const int n = events_wait(events, EVENTS, wake, output_ms == 0);
    for (int i = 0; i < n; i++) on_event(&events[i]);
  }
}

static void ignore(const Header *header, const uint8_t *payload) {
  (void)header;
  (void)payload;
}

// Ends a keeper that cannot start. Its messages go to stderr, and to the worker if that can be reached.
static void give_up(enum ExitCode code) {
  is_giving_up = 1;
  for (int ms = 0; ms < LAST_MESSAGES_MS && !link_is_connected(); ms++) {
    link_tick();
    link_accept(ignore);
    usleep(1000);
  }
  send_log();
  link_flush();
  exit(code);
}

static void open_signals(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, 0); // with a valid operation it cannot fail, and neither can signal()
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); // a write that is too large fails instead
  signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals >= 0 && events_add(signals, EPOLLIN, SIGNALS)) return;
  log_failure("signalfd");
  give_up(EXIT_NO_RESOURCES);
}

static const char *open_directory(void) {
  const char *directory = getenv("SF_DIRECTORY");
  directory = directory ? strdup(directory) : "/run/shellfleet";
  unsetenv("SF_DIRECTORY");
  if (directory && strlen(directory) <= 90) {
    mkdir(directory, 0700); // fails if it exists; if it cannot be made, access() fails too
    if (!access(directory, W_OK)) return directory;
  }
  log_failure(
    "SF_DIRECTORY (default /run/shellfleet) must be a directory of at most 90 characters that the user can write to");
  give_up(EXIT_NO_DIRECTORY);
  return 0;
}

static void refuse_to_start(enum ExitCode code, const char *reason) {
  log_message("%s", reason);
  exit(code);
}

// Holds the inherited descriptors open until the keeper or the alarm kills this process.
static int hold(void) {
  alarm(HOLD_SECONDS);
  for (;;) pause();
}

// Over TCP nothing may be printed, not even by a library: a kubelet keeps the output of a container.
static void stay_silent(void) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) exit(EXIT_NO_RESOURCES);
  for (int fd = 0; fd < 3; fd++)
    if (dup2(null, fd) < 0) exit(EXIT_NO_RESOURCES);
  if (null > 2) close(null);
}

// Removes the variables that no Pod has: these are of its image, which does not decide what the keeper does.
static void forget_variables_of_image(void) {
  static const char *const names[] = {"SF_TOKEN", "SF_SYNC", "SF_DIRECTORY", "SF_WORKSPACE", "SF_EGRESS", "SF_LOOP"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

// A process of this policy gets as much processor time as others, but never interrupts one when it is woken: the worker
// hands commands to all its sessions in one turn, and what they run does not keep it or Redis from a processor. All
// processes of the session inherit it. gVisor refuses it.
static void never_interrupt_others(void) { sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); }

static const Transport *open_transport(enum TransportKind kind, const char *address) {
  if (kind == OVER_STDIO) return transport_stdio();
  if (kind == OVER_SOCKET) return transport_socket(address);
  if (!records_open(identity_worker_key(), identity_shared_key())) exit(EXIT_NO_RESOURCES);
  const Transport *transport = listener_open();
  if (!transport) exit(EXIT_NO_PORT);
  return transport;
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "hold")) return hold();
  if (argc == 3 && !strcmp(argv[1], "--install")) return install(argv[2]);
  const enum TransportKind kind = argc < 2 ? OVER_SOCKET : transport_kind(argv[1]);
  is_in_pod = kind == OVER_TCP;
  if (is_in_pod) {
    stay_silent();
    forget_variables_of_image();
  }
  if (argc < 2 || (kind == OVER_TCP && !listener_parse(argv[1] + strlen("tcp:"))))
    refuse_to_start(EXIT_USAGE, "usage: keeper <socket path | - | tcp:[address:]port> [shell [argument ...]]");
  // Without a separate pid namespace the sweeps would reach other processes. If Bubblewrap or Codex is the
  // first process, the keeper is the second, and still adopts orphans.
  if (getpid() > 2) refuse_to_start(EXIT_NOT_FIRST, "must be the first process of its own pid namespace");
  if (getpid() == 2) prctl(PR_SET_CHILD_SUBREAPER, 1); // with 1 it cannot fail
  if (!identity_open(kind)) refuse_to_start(EXIT_NO_IDENTITY, "SF_TOKEN (and SF_SYNC for -) must be set");
  if (!orphan_open()) refuse_to_start(EXIT_USAGE, "SF_UNCLAIMED_MS must be a number");
  prctl(PR_SET_DUMPABLE, 0); // with 0 it cannot fail
  never_interrupt_others();

  if (!events_open()) give_up(EXIT_NO_RESOURCES);
  if (!link_open(open_transport(kind, argv[1]), identity_sync(), greet)) give_up(EXIT_NO_RESOURCES);
  open_signals();
  if (!workspace_is_expected()) give_up(EXIT_OTHER_WORKSPACE);
  const char *directory = open_directory();
  if (!begun_open() || !processes_open() || !input_open() || !terminals_open() || !egress_open())
    give_up(EXIT_NO_RESOURCES);
  cgroup_open("/sys/fs/cgroup");
  run_directory_open(directory);
  if (!sealed_open()) {
    log_failure("making memory files for scripts");
    give_up(EXIT_NO_RESOURCES);
  }
  late_open();
  if (!output_open()) give_up(EXIT_NO_DIRECTORY);
  shell_open(argv + 2);
  loop();
}
