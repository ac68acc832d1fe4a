#define _GNU_SOURCE
#include "shell.h"
#include "child.h"
#include "clock.h"
#include "events.h"
#include "run_directory.h"
#include "log.h"
#include "processes.h"
#include "reaper.h"
#include "sealed.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_WITHIN_MS = 10000, MAX_FAILED_STARTS = 3, MAX_ARGUMENTS = 32, FORK_ATTEMPTS = 100, FORK_PAUSE_MS = 10 };
enum { MOST_PIPE_BYTES = 1 << 20, HELD_WITHIN_MS = 1000 };

// Run tokens. The loop reports the first one before its first command, and never the second.
static const char READY_TOKEN[] = "ready", NO_TOKEN[] = "-none-";
static const char *const CANDIDATES[] = {"/bin/bash", "/usr/bin/bash", "/bin/sh"};

// The command that starts the shell.
static struct {
  char *arguments[MAX_ARGUMENTS + 5]; // the last ones run the loop
  char source_loop[160];
  char problem[256];
} program;

static struct {
  pid_t pid; // -1: it could not be forked so far
  uint32_t number;
  int go, report; // FIFOs
  int is_ready, is_leaving, has_saved, is_stepped, failed_starts;
  int is_without_builtin; // told so
  int continues, continue_code; // the shell goes on with the saved state and exit code of the one before
  uint64_t spawned_at;
  char token[16];
} own = {.go = -1, .report = -1};

// Returns 0 when the reports cannot be received.
static int make_fifos(void) {
  const int before = own.report;
  own.go = run_directory_fifo("go", own.go);
  own.report = run_directory_fifo("report", own.report);
  if (own.go < 0 || own.report < 0) return 0;
  return own.report == before || events_add(own.report, EPOLLIN, REPORT_PIPE);
}

static void find_shell(char *const *argv) {
  char *const *given = argv && argv[0] ? argv : 0;
  char **arguments = program.arguments;
  int n = 0;
  if (given) {
    while (given[n] && n < MAX_ARGUMENTS) arguments[n] = given[n], n++;
    if (strchr(given[0], '/') && access(given[0], X_OK))
      snprintf(program.problem, sizeof program.problem, "the shell %s cannot be executed: %s", given[0],
               strerror(errno));
  } else {
    for (size_t i = 0; i < sizeof CANDIDATES / sizeof *CANDIDATES && !n; i++)
      if (!access(CANDIDATES[i], X_OK)) arguments[n++] = (char *)CANDIDATES[i];
    if (!n)
      snprintf(program.problem, sizeof program.problem, "the image has neither /bin/bash, /usr/bin/bash nor /bin/sh");
  }
  if (program.problem[0]) {
    log_message("%s", program.problem);
    return;
  }
  snprintf(program.source_loop, sizeof program.source_loop, ". /proc/self/fd/%d", sealed_loop());
  const char *slash = strrchr(arguments[0], '/');
  arguments[n++] = "-c";
  arguments[n++] = program.source_loop;
  arguments[n] = (char *)(slash ? slash + 1 : arguments[0]); // $0
}

// Forks. At the limit of processes it makes room first, which needs no fork.
static pid_t fork_or_make_room(void) {
  for (int attempt = 0; attempt < FORK_ATTEMPTS; attempt++) {
    const pid_t child = fork();
    if (child >= 0) return child;
    log_failure("fork of the shell");
    sweep_kill(BEGINNING, own.pid);
    reap_children();
    usleep(FORK_PAUSE_MS * 1000);
  }
  return -1;
}

// Empties a FIFO. Reads only as many bytes as a pipe can hold, because a process of the session may be filling it.
static void drain(int fd) {
  char bytes[4 << 10];
  for (int i = 0; i < MOST_PIPE_BYTES / (int)sizeof bytes && read(fd, bytes, sizeof bytes) > 0; i++) continue;
}

// Executes the shell again, to continue from its saved state. The state has the variables, so the environment is empty.
static void execute_again(int code) {
  char *arguments[sizeof program.arguments / sizeof *program.arguments + 4], *none[] = {0};
  char text[8];
  int n = 0;
  snprintf(text, sizeof text, "%d", code);
  while (program.arguments[n]) arguments[n] = program.arguments[n], n++;
  arguments[n++] = "resumed";
  arguments[n++] = (char *)READY_TOKEN;
  arguments[n++] = text;
  arguments[n++] = "kept";
  arguments[n] = 0;
  execvpe(arguments[0], arguments, none);
}

static void spawn(void) {
  own.is_ready = own.is_leaving = own.has_saved = own.is_stepped = 0;
  own.spawned_at = now_ms();
  own.pid = -1;
  if (!make_fifos() || !run_directory_write_loop(program.arguments, own.continues)) return; // shell_tick tries again
  drain(own.go);
  drain(own.report);
  report_forget(own.continues);
  strcpy(own.token, READY_TOKEN);
  own.pid = 0;
  own.pid = fork_or_make_room();
  if (own.pid > 0) reaper_watch(own.pid);
  sealed_watch(own.pid);
  if (own.pid) return;
  child_setup_program();
  sealed_inherit(!own.is_without_builtin && !own.failed_starts); // a bash that dies of the builtin gets the loop
  setsid(); // a fork leads no group, so it cannot fail
  if (own.continues) execute_again(own.continue_code);
  else execvp(program.arguments[0], program.arguments);
  _exit(errno == ENOENT ? 127 : 126);
}

// Starts the next shell. Unless that continues with a saved state, it has a new number, so commands for the last shell
// are refused.
static void spawn_next(const int *continue_with) {
  run_directory_distrust();
  own.continues = continue_with != 0;
  if (continue_with) own.continue_code = *continue_with;
  else own.number++;
  spawn();
}

void shell_open(char *const *argv) {
  find_shell(argv);
  own.is_without_builtin = getenv("SF_LOOP") != 0;
  unsetenv("SF_LOOP");
  run_directory_write_builtin();
  if (!program.problem[0]) spawn_next(0);
}

pid_t shell_pid(void) { return own.pid > 0 ? own.pid : 0; }
const char *shell_program(void) { return program.arguments[0]; }
int shell_is_ready(void) { return own.is_ready; }
int shell_is_stepped(void) { return own.is_stepped; }
const char *shell_problem(void) { return program.problem[0] ? program.problem : 0; }
uint32_t shell_number(void) { return own.number; }

int shell_tick(void) {
  if (own.is_ready || program.problem[0]) return -1;
  if (own.pid < 0) spawn(); // the last attempt failed
  if (own.pid > 0 && now_ms() - own.spawned_at > READY_WITHIN_MS) {
    log_message("the shell was not ready within %d ms and is killed", READY_WITHIN_MS);
    shell_kill();
  }
  return own.pid < 0 ? READY_WITHIN_MS / 100 : READY_WITHIN_MS / 4;
}

static void describe_failed_start(int status, char *text, size_t size) {
  const int signalled = WIFSIGNALED(status);
  snprintf(text, size, "the shell %s ended with %s %d before it was ready", program.arguments[0],
           signalled ? "signal" : "status", signalled ? WTERMSIG(status) : WEXITSTATUS(status));
}

int shell_can_continue(void) { return own.has_saved; }

void shell_replace(int status, const int *continue_with) {
  own.pid = 0;
  if (!own.is_ready) {
    char text[sizeof program.problem];
    describe_failed_start(status, text, sizeof text);
    log_message("%s", text);
    own.failed_starts++;
    if (own.failed_starts >= MAX_FAILED_STARTS) memcpy(program.problem, text, sizeof text);
    if (program.problem[0]) return;
  }
  spawn_next(continue_with);
}

void shell_forget(void) { own.pid = own.is_ready = 0; }

// Random numbers are read many at a time.
static uint32_t draw_number(void) {
  static int random = -1;
  static uint32_t numbers[64];
  static size_t left;
  if (random < 0) random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (!left && random >= 0 && read(random, numbers, sizeof numbers) == sizeof numbers)
    left = sizeof numbers / sizeof *numbers;
  // Without /dev/urandom (an image may lack /dev) the time is enough, because a token prevents accidents, not attacks.
  return left ? numbers[--left] : (uint32_t)now_ms();
}

// Makes a run token that earlier processes cannot know, so that none reports this command's end by accident. The token
// ends with the last digit of the script's descriptor.
static void make_token(int script) {
  const uint32_t number = draw_number() & 0x0fffffff; // short: a shell reads it byte by byte
  snprintf(own.token, sizeof own.token, "%07x%d", number, script ? script - sealed_first() : 0);
}

// Gives the shell its next line. It ends with a mark: because the user's IFS might cut off its last character, and to
// say what an ordinary script does with the pipes.
static void give(int script, const char *what, char mark) {
  char line[256];
  make_token(script);
  const int n = snprintf(line, sizeof line, "%s%s%s%c\n", own.token, *what ? " " : "", what, mark);
  own.is_leaving = 0;
  if ((run_directory_is_unchanged() || make_fifos()) && write(own.go, line, n) == n) return;
  log_message("the shell could not be given a command and is killed");
  shell_kill();
}

static int add_number(char *text, size_t size, const char *word, int number) {
  return number > 0 ? snprintf(text, size, "%s=%d ", word, number) : 0;
}

void shell_run(const ShellRun *run) {
  char extra[160];
  const Texts *texts = &run->texts;
  const int checks = run->checks;
  size_t n = snprintf(extra, sizeof extra, "%s%s%s%s", run->input ? "input " : "", run->traps ? "traps " : "",
                      checks & CHECK_HERE_DOCUMENTS ? "documents " : "", checks & CHECK_BRACKETS ? "brackets " : "");
  n += add_number(extra + n, sizeof extra - n, "before", texts->before);
  n += add_number(extra + n, sizeof extra - n, "after", texts->after);
  n += add_number(extra + n, sizeof extra - n, "check", texts->check);
  add_number(extra + n, sizeof extra - n, "early", texts->early);
  give(texts->script, extra, *extra ? '.' : ".;,"[run->pipes]);
  run_directory_confirm(); // all names in the directory were checked for this command
}

// Starts a process with only the descriptors of the sealed files, which the shell opens through /proc. It executes a
// program, so its memory has nothing of the keeper's.
static pid_t spawn_holder(void) {
  int executed[2];
  char byte;
  if (pipe2(executed, O_CLOEXEC)) return -1;
  const pid_t holder = fork();
  if (!holder) {
    child_setup_program();
    sealed_inherit(1);
    execl("/proc/self/exe", "keeper", "hold", (char *)0);
    _exit(126);
  }
  close(executed[1]);
  while (holder > 0 && read(executed[0], &byte, 1) < 0 && errno == EINTR) continue; // end of file: the program runs
  close(executed[0]);
  return holder;
}

static int give_descriptors_again(void) {
  char line[64];
  const pid_t holder = spawn_holder();
  if (holder < 0) {
    log_failure("starting a process that holds the scripts");
    return 0;
  }
  const int n = snprintf(line, sizeof line, "- holder=%d from=%d .\n", holder, sealed_first());
  // The shell takes back all descriptors, also those that this command does not use, because later commands need them.
  if (write(own.go, line, n) == n)
    for (int ms = 0; ms < HELD_WITHIN_MS && !sealed_all_are_held(); ms++) usleep(1000);
  kill(holder, SIGKILL);
  return sealed_is_held();
}

int shell_holds_texts(int *were_given) {
  *were_given = own.pid > 0 && own.is_ready && !sealed_is_held();
  return !*were_given || give_descriptors_again();
}

void shell_leave(void) { give(0, report_has_exit_trap() ? "leave trap " : "leave ", '.'); }

void shell_kill(void) {
  if (own.pid > 0) kill(own.pid, SIGKILL); // its own child, not reaped yet: it cannot fail
}

// Asks the shell to set the loop's trap on EXIT again, because the command has set another. All lines
// are longer than that of an ordinary command, which the builtin reads with one call.
static void arm(void) {
  static const char LINE[] = "- arm trap .\n";
  if (write(own.go, LINE, sizeof LINE - 1) < 0) log_failure("writing to the shell");
}

int shell_read_report(Report *report) {
  int has_ended = 0;
  for (enum Reported reported; (reported = report_read(own.report, own.token, report)) != NO_REPORT;) {
    if (reported == REPORTED_LEAVING) {
      own.is_leaving = 1;
      continue;
    }
    if (reported == REPORTED_SAVED) {
      own.has_saved = 1;
      continue;
    }
    strcpy(own.token, NO_TOKEN);
    if (report_lacks_own_trap()) arm();
    if (own.is_ready) has_ended = 1;
    own.is_ready = 1;
    own.is_stepped = report->is_stepped;
    own.failed_starts = 0;
  }
  return has_ended;
}

void shell_continue(void) {
  siginfo_t info = {0};
  if (own.pid > 0 && !waitid(P_PID, own.pid, &info, WSTOPPED | WNOHANG) && info.si_pid) kill(own.pid, SIGCONT);
}

void shell_interrupt(void) {
  if (own.pid > 0 && !own.is_leaving) kill(own.pid, SIGURG);
  if (own.pid > 0) kill(own.pid, SIGCONT); // a stopped shell could not come back
}
