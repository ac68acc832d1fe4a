// Starts a program (the keeper) on the host itself: in namespaces of its own, under limits, as a user without
// privileges. If any of that is not possible, the program does not start. The launcher stays outside of the namespaces
// and writes down how the program ended.
//
//   launch --process FILE --ended FILE --user UID:GID [--same-user] [--keeper DIRECTORY] [--workspace DIRECTORY]
//          [--scratch-bytes N] [--cgroup NAME=DIRECTORY ...] [--hide DIRECTORY ...] [--address-space BYTES]
//          [--cpu-seconds N]
//          [--file-size BYTES] [--descriptor FILE] [--show-errors] [--relay SOCKET] -- PROGRAM [ARGUMENT ...]
//
// Prints `ready` once the program runs, or one line on stderr with the reason why it does not. The program gets its
// environment, FILE open for reading as descriptor 10, and with --show-errors the launcher's stderr. With --relay its
// stdin and stdout are connected to the process that connects to SOCKET. The first line of stdin is then
// `SF_TOKEN SF_SYNC`, and the environment lacks both.
//
// LAUNCHER-1. All limits are in force before the program's first instruction.
// LAUNCHER-2. The launcher outlives the process that started it: it has a session of its own, no descriptors, and gets
//             no signal when that process dies.
// LAUNCHER-3. The pids are on disk before the program starts, so the next worker finds the program.
#define _GNU_SOURCE
#include "fail.h"
#include "launch.h"
#include "relay.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static Plan plan;

static uint64_t to_number(const char *text) {
  char *end;
  errno = 0;
  const uint64_t number = strtoull(text, &end, 10);
  if (errno || *end || end == text) fail("'%s' is not a number", text);
  return number;
}

static void take_user(const char *text) {
  unsigned uid, gid;
  if (sscanf(text, "%u:%u", &uid, &gid) != 2 || !uid || !gid) {
    errno = 0;
    fail("'%s' is not a user without privileges (uid:gid)", text);
  }
  plan.uid = uid;
  plan.gid = gid;
}

static void take_cgroup(char *text) {
  char *equals = strchr(text, '=');
  errno = 0;
  if (!equals || plan.cgroups == MOST_CGROUPS) fail("'%s' is not a control group (name=directory)", text);
  *equals = 0;
  plan.cgroup[plan.cgroups++] = (Cgroup){.name = text, .directory = equals + 1};
}

static void take_hidden(const char *text) {
  errno = 0;
  if (plan.hidden_directories == MOST_HIDDEN) fail("no more than %d directories can be hidden", MOST_HIDDEN);
  plan.hidden[plan.hidden_directories++] = text;
}

static void read_plan(int argc, char **argv) {
  static const struct option options[] = {
    {"process", 1, 0, 'p'},     {"ended", 1, 0, 'e'},         {"user", 1, 0, 'u'},          {"same-user", 0, 0, 's'},
    {"keeper", 1, 0, 'k'},      {"workspace", 1, 0, 'w'},     {"scratch-bytes", 1, 0, 't'}, {"cgroup", 1, 0, 'g'},
    {"hide", 1, 0, 'h'},        {"address-space", 1, 0, 'a'}, {"cpu-seconds", 1, 0, 'c'},   {"descriptor", 1, 0, 'd'},
    {"show-errors", 0, 0, 'o'}, {"file-size", 1, 0, 'f'},     {"relay", 1, 0, 'r'},         {0, 0, 0, 0},
  };
  for (int option; (option = getopt_long(argc, argv, "+", options, 0)) != -1;) {
    switch (option) {
      case 'p': plan.process_file = optarg; break;
      case 'e': plan.ended_file = optarg; break;
      case 'u': take_user(optarg); break;
      case 's': plan.same_user = 1; break;
      case 'k': plan.keeper = optarg; break;
      case 'w': plan.workspace = optarg; break;
      case 't': plan.scratch_bytes = to_number(optarg); break;
      case 'g': take_cgroup(optarg); break;
      case 'h': take_hidden(optarg); break;
      case 'a': plan.address_space = to_number(optarg); break;
      case 'f': plan.file_size = to_number(optarg); break;
      case 'c': plan.cpu_seconds = to_number(optarg); break;
      case 'd': plan.descriptor = optarg; break;
      case 'r': plan.relay = optarg; break;
      case 'o': plan.shows_errors = 1; break;
      default: exit(2);
    }
  }
  plan.program = argv + optind;
  errno = 0;
  if (!plan.process_file || !plan.ended_file || !plan.uid || !plan.program[0])
    fail("--process, --ended, --user and a program are needed");
}

static void write_file(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) fail("writing %s", path);
  close(fd);
}

// Writes a file in one step, so that a reader never finds a part of it.
static void put_file(const char *path, const char *text) {
  char draft[512];
  snprintf(draft, sizeof draft, "%s.%d", path, getpid());
  const int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) || rename(draft, path)) fail("writing %s", path);
}

// Returns the start time of a process: field 22 of /proc/<pid>/stat. Pid and start time together name one process, even
// when the pid is used again.
static unsigned long long start_of(pid_t pid) {
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (n <= 0) fail("reading %s", path);
  close(fd);
  text[n] = 0;
  unsigned long long started = 0;
  const char *rest = strrchr(text, ')');
  if (!rest || sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                      &started) != 1)
    fail("reading %s", path);
  return started;
}

// Maps only the user's own id into the user namespace. There a process without privileges may create the other
// namespaces.
static void map_user(pid_t child) {
  char path[48], text[48];
  snprintf(path, sizeof path, "/proc/%d/setgroups", child);
  write_file(path, "deny");
  snprintf(path, sizeof path, "/proc/%d/uid_map", child);
  snprintf(text, sizeof text, "%u %u 1", plan.uid, plan.uid);
  write_file(path, text);
  snprintf(path, sizeof path, "/proc/%d/gid_map", child);
  snprintf(text, sizeof text, "%u %u 1", plan.gid, plan.gid);
  write_file(path, text);
}

static void join_cgroups(pid_t child) {
  char path[512], text[16];
  snprintf(text, sizeof text, "%d", child);
  for (int i = 0; i < plan.cgroups; i++) {
    snprintf(path, sizeof path, "%s/cgroup.procs", plan.cgroup[i].directory);
    write_file(path, text);
  }
}

static void write_process_file(pid_t child) {
  char text[96];
  snprintf(text, sizeof text, "%d %llu %d %llu\n", child, start_of(child), getpid(), start_of(getpid()));
  put_file(plan.process_file, text);
}

// The launcher does not need the program's secrets.
static void forget_environment(void) {
  extern char **environ;
  for (char **variable = environ; *variable; variable++) memset(*variable, 0, strlen(*variable));
  clearenv();
}

static void detach(int first, int last) {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = first; fd <= last; fd++)
    if (dup2(null, fd) < 0) close(fd); // without /dev/null: none rather than the starter's
  if (null > 2) close(null);
}

static void write_end(pid_t child) {
  int status;
  char text[32];
  if (plan.relay) relay_until_end();
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) exit(1);
  if (WIFEXITED(status)) snprintf(text, sizeof text, "exited %d\n", WEXITSTATUS(status));
  else snprintf(text, sizeof text, "killed %d\n", WTERMSIG(status));
  put_file(plan.ended_file, text);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// Opens the file of --descriptor by its path outside of the session's root directory. The program closes it.
static void open_descriptor(void) {
  const int fd = open(plan.descriptor, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || dup2(fd, DESCRIPTOR) < 0) fail("opening %s", plan.descriptor);
  close(fd);
}

static void run_child(int go, int failures) {
  report_failures_to(failures);
  char byte;
  errno = 0;
  if (read(go, &byte, 1) != 1) fail("the launcher ended before the program could start");
  if (plan.descriptor) open_descriptor();
  enclose(&plan);
  confine(&plan);
  signal(SIGPIPE, SIG_DFL);
  if (plan.relay) relay_enter();
  detach(plan.relay ? 2 : 0, plan.shows_errors ? 1 : 2);
  execv(plan.program[0], plan.program);
  fail("executing %s", plan.program[0]);
}

int main(int argc, char **argv) {
  errno = 0;
  read_plan(argc, argv);
  int go[2], failures[2];
  if (plan.relay) relay_open(plan.relay);
  if (pipe2(go, O_CLOEXEC) || pipe2(failures, O_CLOEXEC)) fail("making a pipe");
  if (syscall(SYS_close_range, failures[1] + 1, ~0u, 0) && errno != ENOSYS) fail("closing descriptors");
  setsid(); // fails if this process leads a session already
  for (int s = 1; s < NSIG; s++)
    signal(s, s == SIGHUP || s == SIGINT || s == SIGTERM || s == SIGPIPE ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0); // with valid arguments it cannot fail
  const int namespaces =
    CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (plan.same_user ? CLONE_NEWUSER : 0);
  const pid_t child = syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
  if (child < 0)
    fail("making namespaces for a session (%s)",
         plan.same_user ? "user, pid, mount, ipc, uts" : "pid, mount, ipc, uts");
  if (!child) {
    close(go[1]);
    run_child(go[0], failures[1]);
  }
  close(failures[1]);
  close(go[0]);
  if (plan.same_user) map_user(child);
  join_cgroups(child);
  write_process_file(child);
  if (write(go[1], "g", 1) != 1) fail("letting the program go");
  close(go[1]);
  char text[512];
  size_t n = 0;
  for (ssize_t got; n < sizeof text && (got = read(failures[0], text + n, sizeof text - n)) > 0;) n += got;
  if (n) { // the reason why the program does not run
    waitpid(child, 0, 0); // the child is ending: a failure of this call changes nothing
    unlink(plan.process_file);
    return write(2, text, n) == (ssize_t)n ? 1 : 2;
  }
  if (plan.relay) relay_begin();
  forget_environment();
  if (write(1, "ready\n", 6) < 0) errno = 0; // the starter may have died: the program goes on
  detach(0, 2);
  if (chdir("/")) errno = 0; // then the launcher only keeps a directory of the host in use
  write_end(child);
}
