#define _GNU_SOURCE
#include "shell.h"
#include "clock.h"
#include "identity.h"
#include "link.h"
#include "processes.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shell_script.h" // generated from shell.sh: static const char SHELL_SCRIPT[]

enum { READY_WITHIN_MS = 10000, MAX_FAILED_STARTS = 3, OOM_SCORE_ABOVE_OURS = 300, MAX_ARGUMENTS = 32 };

static const char *const CANDIDATES[] = {"/bin/bash", "/usr/bin/bash", "/bin/sh"};

static const char *folder;
static char *arguments[MAX_ARGUMENTS + 5]; // of the shell; the last ones run the loop
static char source_loop[160], problem[256], turn[24] = "ready";
static char said[32 << 10]; // on the report pipe, and not yet understood
static size_t said_bytes;
static pid_t pid;
static int epoll_fd, go = -1, report = -1, ready, leaving, failed_starts, has_before, has_input, has_exit_trap;
static uint32_t generation;
static uint64_t tag, spawned_at;

// Good until the next call.
static const char *path_of(const char *name) {
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// Opened for both directions: the pipe is never at its end, whoever opens and closes it.
static int make_fifo(const char *name, int fd) {
  struct stat here, there;
  if (fd >= 0 && !fstat(fd, &here) && !stat(path_of(name), &there) && here.st_ino == there.st_ino) return fd;
  unlink(path_of(name));
  mkfifo(path_of(name), 0600);
  const int made = open(path_of(name), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd); // only now, so that the new one has another number
  return made;
}

static void make_fifos(void) {
  const int before = report;
  go = make_fifo("go", go);
  report = make_fifo("report", report);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
  if (report != before) epoll_ctl(epoll_fd, EPOLL_CTL_ADD, report, &event);
}

static void write_loop(void) {
  Text text;
  text_open(&text, path_of("loop"));
  text_say(&text, "__sf_dir=");
  text_quote(&text, folder, strlen(folder));
  text_say(&text, "\n__sf_again() {\n  command exec ${BASH_VERSION:+-c}");
  for (char **argument = arguments; *argument; argument++) {
    text_say(&text, " ");
    text_quote(&text, *argument, strlen(*argument));
  }
  text_say(&text, " \"$@\"\n}\n");
  text_add(&text, SHELL_SCRIPT, sizeof SHELL_SCRIPT - 1);
  text_close(&text);
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
  snprintf(source_loop, sizeof source_loop, ". %s/loop", folder);
  const char *slash = strrchr(arguments[0], '/');
  arguments[n++] = "-c";
  arguments[n++] = source_loop;
  arguments[n] = (char *)(slash ? slash + 1 : arguments[0]); // $0
}

static void raise_oom_score(void) {
  char text[16];
  const int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  const int raised = atoi(text) + OOM_SCORE_ABOVE_OURS;
  snprintf(text, sizeof text, "%d", raised > 1000 ? 1000 : raised);
  if (pwrite(fd, text, strlen(text), 0) < 0) errno = 0;
  close(fd);
}

void child_setup(void) {
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0);
  link_abandon();
  identity_forget();
  // From here on this process may be looked into; so it may also raise its own price: out of memory, the user's processes go
  // before the keeper.
  prctl(PR_SET_DUMPABLE, 1);
  raise_oom_score();
  const int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; i++) dup2(null, i);
  if (null > 2) close(null);
}

static pid_t fork_or_make_room(void) {
  for (int attempt = 0; attempt < 100; attempt++) {
    const pid_t child = fork();
    if (child >= 0) return child;
    sweep_kill(BEGINNING, pid); // at the pids limit room is made without forking
    while (waitpid(-1, 0, WNOHANG) > 0) continue;
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
  said_bytes = has_exit_trap = 0;
  write_loop();
  ready = 0;
  generation++;
  spawned_at = now_ms();
  strcpy(turn, "ready");
  pid = 0;
  pid = fork_or_make_room();
  if (pid) return;
  child_setup();
  setsid();
  execvp(arguments[0], arguments);
  _exit(errno == ENOENT ? 127 : 126);
}

void shell_open(const char *in, char *const *argv, int epoll, uint64_t report_tag) {
  folder = in;
  epoll_fd = epoll;
  tag = report_tag;
  make_fifos();
  find_shell(argv);
  if (!problem[0]) shell_spawn();
}

pid_t shell_pid(void) { return pid; }
int shell_is_ready(void) { return ready; }
const char *shell_problem(void) { return problem[0] ? problem : 0; }
uint32_t shell_generation(void) { return generation; }
int shell_wake_ms(void) { return ready || problem[0] ? -1 : READY_WITHIN_MS / 4; }

void shell_tick(void) {
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

static int is_name(const uint8_t *name, size_t n) {
  if (!n || (name[0] >= '0' && name[0] <= '9')) return 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t c = name[i];
    if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z')) return 0;
  }
  return 1;
}

static void say_name(Text *text, const char *words, const uint8_t *name, size_t n) {
  text_say(text, words);
  text_add(text, name, n);
}

// The files `before` and `after`: env and cwd of one command, and how the shell was without them.
static int write_surroundings(const Command *command) {
  Text before, after;
  text_open(&before, path_of("before"));
  text_open(&after, path_of("after"));
  text_say(&before, "command export -p >|\"$__sf_dir/exported\"\n");
  const uint8_t *pair = command->env, *end = command->env + command->env_bytes;
  int valid = 1;
  while (pair < end && valid) {
    const uint8_t *stop = memchr(pair, 0, end - pair);
    const uint8_t *equals = stop ? memchr(pair, '=', stop - pair) : 0;
    if (!equals || !is_name(pair, equals - pair)) {
      valid = 0;
      break;
    }
    const size_t n = equals - pair;
    say_name(&before, "__sf_had_", pair, n);
    say_name(&before, "=${", pair, n);
    say_name(&before, "+set} __sf_old_", pair, n);
    say_name(&before, "=${", pair, n);
    say_name(&before, "-}\n! __sf_exported ", pair, n);
    say_name(&before, " || __sf_had_", pair, n);
    say_name(&before, "=exported\ncommand export ", pair, n);
    text_say(&before, "=");
    text_quote(&before, equals + 1, stop - equals - 1);
    text_say(&before, "\n");
    say_name(&after, "case ${__sf_had_", pair, n);
    say_name(&after, "-} in\n  exported) command export ", pair, n);
    say_name(&after, "=\"$__sf_old_", pair, n);
    say_name(&after, "\" ;;\n  set) unset ", pair, n);
    say_name(&after, " && ", pair, n);
    say_name(&after, "=$__sf_old_", pair, n);
    say_name(&after, " ;;\n  *) unset ", pair, n);
    say_name(&after, " ;;\nesac\nunset __sf_had_", pair, n);
    say_name(&after, " __sf_old_", pair, n);
    text_say(&after, "\n");
    pair = stop + 1;
  }
  if (command->cwd_bytes) {
    text_say(&before, "__sf_cwd=$PWD __sf_oldpwd=${OLDPWD-}\nCDPATH= command cd -- ");
    text_quote(&before, command->cwd, command->cwd_bytes);
    text_say(&before, "\n");
    text_say(&after, "CDPATH= command cd -- \"$__sf_cwd\"\nOLDPWD=$__sf_oldpwd\nunset __sf_cwd __sf_oldpwd\n");
  } else {
    text_say(&before, ":\n");
  }
  text_say(&after, ":\n");
  const int written = text_close(&before);
  return text_close(&after) && written && valid;
}

static int write_whole(const char *name, const uint8_t *bytes, size_t n, const char *end) {
  Text text;
  text_open(&text, path_of(name));
  text_add(&text, bytes, n);
  text_say(&text, end);
  return text_close(&text);
}

int shell_prepare(const Command *command) {
  has_before = command->env_bytes || command->cwd_bytes;
  has_input = command->has_input;
  if (memchr(command->cwd, 0, command->cwd_bytes)) return 0;
  if (!write_whole("command", command->script, command->script_bytes, "\n")) return 0;
  if (has_input && !write_whole("input", command->input, command->input_bytes, "")) return 0;
  return !has_before || write_surroundings(command);
}

// A number that the processes of earlier commands cannot know, so that none of them reports the end of this one by chance.
static void new_turn(void) {
  static int random = -1;
  uint32_t number = 0;
  if (random < 0) random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (random < 0 || read(random, &number, sizeof number) != sizeof number) number = now_ms();
  snprintf(turn, sizeof turn, "%08x", number); // short: a shell reads it byte by byte
}

static void give_turn(const char *how, const char *extra) {
  char line[256];
  new_turn();
  const int n = snprintf(line, sizeof line, "%s %s %s\n", turn, how, extra);
  leaving = 0;
  make_fifos();
  if (write(go, line, n) != n) shell_kill();
}

void shell_run(void) { give_turn(has_input ? "input" : "-", has_before ? "+" : ""); }

void shell_leave(void) { give_turn("leave", has_exit_trap ? "+" : ""); }

void shell_kill(void) {
  if (pid > 0) kill(pid, SIGKILL);
}

static const struct {
  const char *note, *reason;
} NOTES[] = {
  {"incomplete", "the shell ended and its state could not be saved whole"},
  {"functions", "the shell re-executed itself: its functions are gone"},
  {"locals", "the shell re-executed itself inside a function: local variables may have replaced global ones"},
  {"jobs", "the shell re-executed itself: it no longer knows its background jobs"},
  {"dirs", "the shell re-executed itself: its directory stack is gone"},
};

static void parse_notes(const char *notes, Report *result) {
  result->state = KEPT;
  result->reason = 0;
  result->no_cwd = !strncmp(notes, "cwd", 3);
  for (size_t i = 0; i < sizeof NOTES / sizeof *NOTES && !result->reason; i++)
    if (strstr(notes, NOTES[i].note)) result->state = PARTIAL, result->reason = NOTES[i].reason;
}

// What the shell printed of its EXIT trap before a report: the loop's own, or one of the user's, which is kept in a file for
// the end of the shell.
static void keep_exit_trap(const char *words, size_t n) {
  static const char ours[] = "trap -- '{ __sf_leave \"$@\"; } 2>/dev/null' EXIT\n";
  if (memmem(words, n, ours, sizeof ours - 1)) return;
  const char *trap = memmem(words, n, "trap -- ", strlen("trap -- "));
  has_exit_trap = trap && write_whole("exit", (const uint8_t *)trap, n - (trap - words), "");
}

// A report is `turn code notes`, or `turn leaving`. Without the turn's number it was written by somebody else and means nothing.
// Takes the first one out of what has been said; 0 when there is none.
static int take_report(char *words, size_t size) {
  const char *found = memmem(said, said_bytes, turn, strlen(turn));
  const char *end = found ? memchr(found, '\n', said + said_bytes - found) : 0;
  if (!end) return 0;
  const char *from = found + strlen(turn);
  const size_t n = (size_t)(end - from) < size - 1 ? (size_t)(end - from) : size - 1;
  memcpy(words, from, n);
  words[n] = 0;
  if (strstr(words, " same")) keep_exit_trap(said, found - said);
  said_bytes -= end + 1 - said;
  memmove(said, end + 1, said_bytes);
  return 1;
}

static void on_report(const char *words, Report *result, int *ended) {
  if (!strcmp(words, " leaving")) {
    leaving = 1;
    return;
  }
  strcpy(turn, "-none-");
  if (!ready) {
    ready = 1;
    failed_starts = 0;
    return;
  }
  char *notes;
  result->code = strtol(words, &notes, 10) & 0xff;
  parse_notes(*notes == ' ' ? notes + 1 : notes, result);
  *ended = 1;
}

int shell_read_report(Report *result) {
  char words[128];
  int ended = 0;
  for (;;) {
    if (said_bytes == sizeof said) said_bytes = 0; // nobody's words
    const ssize_t n = read(report, said + said_bytes, sizeof said - said_bytes);
    if (n <= 0) return ended;
    said_bytes += n;
    while (take_report(words, sizeof words)) on_report(words, result, &ended);
  }
}

void shell_interrupt(void) {
  if (pid > 0 && !leaving) kill(pid, SIGPWR);
  if (pid > 0) kill(pid, SIGCONT);
}

int shell_script_is_suspect(const Command *command) {
  return memmem(command->script, command->script_bytes, "<<", 2) != 0;
}

pid_t shell_check(void) {
  Text text;
  text_open(&text, path_of("check"));
  const int from = open(path_of("command"), O_RDONLY | O_CLOEXEC);
  char bytes[4096];
  for (ssize_t n; from >= 0 && (n = read(from, bytes, sizeof bytes)) > 0;) text_add(&text, bytes, n);
  if (from >= 0) close(from);
  text_say(&text, "\n)\n");
  if (!text_close(&text)) return -1;
  const pid_t child = fork();
  if (child) return child;
  child_setup();
  execlp(arguments[0], arguments[0], "-n", path_of("check"), (char *)0);
  _exit(127);
}

void shell_check_done(void) { unlink(path_of("check")); }
