#define _GNU_SOURCE
#include "shell.h"
#include "child.h"
#include "clock.h"
#include "folder.h"
#include "processes.h"
#include "reaper.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_WITHIN_MS = 10000, MAX_FAILED_STARTS = 3, MAX_ARGUMENTS = 32, SYNTAX_STATUS = 2 };

// The loop reports this before its first turn; NO_TURN is never reported.
static const char FIRST_TURN[] = "ready", NO_TURN[] = "-none-";
static const char *const CANDIDATES[] = {"/bin/bash", "/usr/bin/bash", "/bin/sh"};

static char *arguments[MAX_ARGUMENTS + 5]; // of the shell; the last ones run the loop
static int own_arguments; // without those
static char source_loop[160], problem[256], turn[16];
static pid_t pid;
static int epoll_fd, go = -1, report = -1, ready, leaving, failed_starts;
static uint32_t generation;
static uint64_t tag, spawned_at;

static void make_fifos(void) {
  const int before = report;
  go = folder_fifo("go", go);
  report = folder_fifo("report", report);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
  if (report != before) epoll_ctl(epoll_fd, EPOLL_CTL_ADD, report, &event);
}

static void find_shell(char *const *argv) {
  int n = 0;
  if (argv && argv[0]) {
    while (argv[n] && n < MAX_ARGUMENTS) arguments[n] = argv[n], n++;
    if (strchr(argv[0], '/') && access(argv[0], X_OK))
      snprintf(problem, sizeof problem, "the shell %s cannot be executed: %s", argv[0], strerror(errno));
  } else {
    for (size_t i = 0; i < sizeof CANDIDATES / sizeof *CANDIDATES && !n; i++)
      if (!access(CANDIDATES[i], X_OK)) arguments[n++] = (char *)CANDIDATES[i];
    if (!n) snprintf(problem, sizeof problem, "the image has neither /bin/bash, /usr/bin/bash nor /bin/sh");
  }
  if (problem[0]) return;
  snprintf(source_loop, sizeof source_loop, ". %s/loop", folder_path());
  const char *slash = strrchr(arguments[0], '/');
  own_arguments = n;
  arguments[n++] = "-c";
  arguments[n++] = source_loop;
  arguments[n] = (char *)(slash ? slash + 1 : arguments[0]); // $0
}

static pid_t fork_or_make_room(void) {
  for (int attempt = 0; attempt < 100; attempt++) {
    const pid_t child = fork();
    if (child >= 0) return child;
    sweep_kill(BEGINNING, pid); // at the pids limit room is made without forking
    reap_children();
    usleep(10000);
  }
  return -1;
}

static void drain(int fd) {
  char bytes[512];
  while (read(fd, bytes, sizeof bytes) > 0) continue;
}

static void shell_spawn(void) {
  make_fifos();
  drain(go);
  drain(report);
  report_forget();
  folder_write_loop(arguments);
  ready = leaving = 0;
  spawned_at = now_ms();
  strcpy(turn, FIRST_TURN);
  pid = 0;
  pid = fork_or_make_room();
  if (pid > 0) generation++;
  if (pid) return;
  child_setup();
  setsid();
  execvp(arguments[0], arguments);
  _exit(errno == ENOENT ? 127 : 126);
}

void shell_open(char *const *argv, int epoll, uint64_t report_tag) {
  epoll_fd = epoll;
  tag = report_tag;
  make_fifos();
  find_shell(argv);
  if (!problem[0]) shell_spawn();
}

pid_t shell_pid(void) { return pid; }
const char *shell_program(void) { return arguments[0]; }
int shell_is_ready(void) { return ready; }
const char *shell_problem(void) { return problem[0] ? problem : 0; }
uint32_t shell_generation(void) { return generation; }
int shell_wake_ms(void) { return ready || problem[0] ? -1 : READY_WITHIN_MS / 4; }

void shell_tick(void) {
  if (pid < 0) shell_spawn(); // there was no room for a process
  if (!ready && pid > 0 && !problem[0] && now_ms() - spawned_at > READY_WITHIN_MS) kill(pid, SIGKILL);
}

void shell_died(int status) {
  pid = 0;
  if (!ready && ++failed_starts >= MAX_FAILED_STARTS) {
    if (WIFSIGNALED(status))
      snprintf(problem, sizeof problem, "the shell %s ended with signal %d before it was ready", arguments[0], WTERMSIG(status));
    else
      snprintf(problem, sizeof problem, "the shell %s ended with status %d before it was ready", arguments[0], WEXITSTATUS(status));
    return;
  }
  shell_spawn();
}

// A number that the processes of earlier commands cannot know, so that none of them reports the end of this one by chance.
static void new_turn(void) {
  static int random = -1;
  uint32_t number = 0;
  if (random < 0) random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (random < 0 || read(random, &number, sizeof number) != sizeof number) number = now_ms();
  snprintf(turn, sizeof turn, "%08x", number); // short: a shell reads it byte by byte
}

// The full stop at the end: what the user's IFS may cut off there is not a word that means something.
static void give_turn(const char *how, const char *extra) {
  char line[256];
  new_turn();
  const int n = snprintf(line, sizeof line, "%s %s %s.\n", turn, how, extra);
  leaving = 0;
  make_fifos();
  if (write(go, line, n) != n) shell_kill();
}

void shell_run(const Turn *with) {
  char extra[32];
  snprintf(extra, sizeof extra, "%s%s", with->surroundings ? "surroundings " : "", with->traps ? "traps " : "");
  give_turn(with->input ? "input" : "-", extra);
}

void shell_leave(void) { give_turn("leave", report_has_exit_trap() ? "trap " : ""); }

void shell_kill(void) {
  if (pid > 0) kill(pid, SIGKILL);
}

int shell_read_report(Report *result) {
  int ended = 0;
  for (enum Reported what; (what = report_read(report, turn, result)) != NOTHING_SAID;) {
    if (what == SAID_LEAVING) {
      leaving = 1;
      continue;
    }
    strcpy(turn, NO_TURN);
    if (ready) ended = 1;
    ready = 1;
    failed_starts = 0;
  }
  return ended;
}

void shell_interrupt(void) {
  if (pid > 0 && !leaving) kill(pid, SIGURG);
  if (pid > 0) kill(pid, SIGCONT);
}

pid_t shell_check(enum Check what, int error) {
  if (what == CHECK_END && !folder_write_check()) return -1;
  const pid_t child = fork();
  if (child) return child;
  const int words = dup(error);
  child_setup();
  if (what == CHECK_PARSES) dup2(words, 2);
  close(words);
  arguments[own_arguments] = "-n";
  arguments[own_arguments + 1] = (char *)path_of(what == CHECK_PARSES ? "command" : "check");
  arguments[own_arguments + 2] = 0;
  execvp(arguments[0], arguments);
  _exit(127);
}

int shell_check_failed(enum Check what, int status) {
  if (!WIFEXITED(status)) return 0;
  // With a `)` after its end every script is a syntax error, unless an open here-document swallows that too.
  return what == CHECK_END ? WEXITSTATUS(status) == 0 : WEXITSTATUS(status) == SYNTAX_STATUS;
}
