#define _GNU_SOURCE
#include "processes.h"
#include "log.h"
#include "memory.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSES = 32768, DEATHS_WITHIN_MS = 200 };

typedef struct {
  int pid, parent, session;
  char state;
  uint64_t started;
} Process;

const Moment BEGINNING = {0, 0};
static int keeper_pid; // 1, or 2 where Bubblewrap or Codex is the first process of the namespace
static Process *table;
static int count, loadavg = -1;
static pid_t spared[SPARED_LEADERS]; // 0: free

int processes_open(void) {
  keeper_pid = getpid();
  // Every shell inherits this slack. A bash whose fork was refused sleeps for a second, and SIGCHLD makes it try again,
  // but only if less than a second remains. By the default slack more than a second remains for the first 50 µs.
  if (prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL)) log_failure("setting the timer slack");
  table = memory_reserve(MAX_PROCESSES * sizeof *table);
  loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (loadavg < 0) log_failure("opening /proc/loadavg"); // then only the clock separates old from new processes
  return table != 0;
}

void processes_spare(pid_t leader) {
  for (int i = 0; i < SPARED_LEADERS; i++) {
    if (spared[i]) continue;
    spared[i] = leader;
    return;
  }
}

void processes_unspare(pid_t leader) {
  for (int i = 0; i < SPARED_LEADERS; i++)
    if (spared[i] == leader) spared[i] = 0;
}

static uint64_t ticks_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t); // cannot fail: this clock exists
  const long per_second = sysconf(_SC_CLK_TCK);
  return (uint64_t)t.tv_sec * per_second + t.tv_nsec / (1000000000 / per_second);
}

int processes_newest(void) {
  char text[128];
  const ssize_t n = loadavg < 0 ? -1 : pread(loadavg, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *last = strrchr(text, ' ');
  return last ? atoi(last) : 0;
}

Moment moment_now(void) { return moment_with(processes_newest()); }

Moment moment_alone(void) { return moment_with(0); }
Moment moment_with(int newest) { return (Moment){.ticks = ticks_now(), .last_pid = newest}; }

static int read_file(const char *path, char *text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0; // the process has ended meanwhile
  const ssize_t n = read(fd, text, size - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  return n;
}

// Reads fields of /proc/<pid>/stat after the name, which may contain spaces and parentheses: 3 state, 4 parent, 6
// session, 22 start.
static int read_process(int pid, Process *process) {
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (!read_file(path, text, sizeof text)) return 0;
  const char *rest = strrchr(text, ')');
  if (!rest) return 0;
  *process = (Process){.pid = pid};
  int group;
  return sscanf(rest + 1, " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                &process->state, &process->parent, &group, &process->session, &process->started) == 5;
}

static void read_table(void) {
  count = 0;
  DIR *proc = opendir("/proc");
  if (!proc) { // without /proc no process can be found, and none is signalled
    log_failure("opening /proc");
    return;
  }
  for (struct dirent *entry; count < MAX_PROCESSES && (entry = readdir(proc));) {
    const int pid = atoi(entry->d_name);
    if (pid > 0 && read_process(pid, &table[count])) count++;
  }
  closedir(proc);
}

// Finds a process by binary search: the kernel lists processes in the order of their numbers.
static const Process *find(int pid) {
  for (int low = 0, high = count; low < high;) {
    const int middle = (low + high) / 2;
    if (table[middle].pid == pid) return &table[middle];
    if (table[middle].pid < pid) low = middle + 1;
    else high = middle;
  }
  return 0;
}

static int is_newer(const Process *p, Moment since) {
  return p->started > since.ticks || (p->started == since.ticks && p->pid > since.last_pid);
}

static int is_keeper(int pid) { return pid <= keeper_pid; }

static int is_keeper_or_shell(int pid, pid_t shell) { return is_keeper(pid) || pid == shell; }

static int descends_from_older(const Process *process, Moment since, pid_t shell) {
  int steps = 0;
  if (!process->parent) return 1; // came from outside the container (docker exec)
  for (const Process *p = find(process->parent); p && steps++ < count; p = find(p->parent)) {
    if (is_keeper_or_shell(p->pid, shell)) break;
    if (!is_newer(p, since) || !p->parent) return 1;
  }
  // A process whose parent has ended is the keeper's child by now. If a server started it, it is still in the server's
  // session.
  const Process *leader = find(process->session);
  return leader && !is_keeper_or_shell(leader->pid, shell) && !is_newer(leader, since);
}

static int is_led_by(const Process *p, pid_t leader) { return p->pid == leader || p->session == leader; }

// Returns whether a process is in the leader's session, or descends from the leader and has made another session.
static int belongs_to(const Process *process, pid_t leader) {
  int steps = 0;
  for (const Process *p = process; p && !is_keeper(p->pid) && steps++ < count; p = find(p->parent))
    if (is_led_by(p, leader)) return 1;
  return 0;
}

static int is_spared(const Process *process) {
  for (int i = 0; i < SPARED_LEADERS; i++)
    if (spared[i] && belongs_to(process, spared[i])) return 1;
  return 0;
}

static int is_target(const Process *p, Moment since, pid_t shell) {
  if (is_keeper_or_shell(p->pid, shell) || p->state == 'Z' || p->state == 'X' || !is_newer(p, since)) return 0;
  return since.ticks == 0 || (!descends_from_older(p, since, shell) && !is_spared(p));
}

int sweep(int signal, Moment since, pid_t shell) {
  int n = 0;
  read_table();
  for (int i = 0; i < count; i++)
    if (is_target(&table[i], since, shell) && !kill(table[i].pid, signal)) n++;
  return n;
}

void sweep_between(int signal, Moment since, Moment until, pid_t shell) {
  read_table();
  for (int i = 0; i < count; i++)
    if (is_target(&table[i], since, shell) && !is_newer(&table[i], until)) kill(table[i].pid, signal);
}

static int is_bystander(const Process *process, Moment since, pid_t shell) {
  int steps = 0;
  if (is_keeper_or_shell(process->pid, shell) || !process->parent)
    return 0; // one that is dead and not reaped counts as well
  for (const Process *p = process; p && steps++ < count; p = find(p->parent)) {
    if (p->pid == shell) return 0;
    if (is_keeper(p->pid) || !is_newer(p, since)) return 1;
  }
  return 1;
}

typedef int Choice(const Process *process, Moment since, pid_t shell);

static int kill_all(Choice *is_chosen, Moment since, pid_t shell);

int sweep_kill(Moment since, pid_t shell) { return kill_all(is_target, since, shell); }
int sweep_kill_bystanders(Moment since, pid_t shell) { return kill_all(is_bystander, since, shell); }

int processes_bystanders(Moment since, pid_t shell) {
  int n = 0;
  read_table();
  for (int i = 0; i < count; i++) n += is_bystander(&table[i], since, shell);
  return n;
}

static int is_dead(int pid) {
  Process process;
  return !read_process(pid, &process) || process.state == 'Z' || process.state == 'X';
}

// Waits, because a process that was sent SIGKILL counts against the limit until it has run once more and was reaped.
static void wait_for_deaths(Choice *is_chosen, Moment since, pid_t shell) {
  int left = DEATHS_WITHIN_MS;
  for (int i = 0; i < count; i++) {
    if (is_keeper(table[i].pid) || !is_chosen(&table[i], since, shell)) continue;
    for (; left > 0 && !is_dead(table[i].pid); left--) usleep(1000);
  }
}

// Kills the chosen processes. SIGSTOP to -1 first stops every process, so that the table is complete. The others
// continue only when the chosen are dead: a bash whose fork was refused tries again once, at SIGCHLD.
static int kill_all(Choice *is_chosen, Moment since, pid_t shell) {
  static int was_stopped[64];
  int stopped = 0, n = 0;
  read_table();
  for (int i = 0; i < count && stopped < 64; i++)
    if (table[i].state == 'T') was_stopped[stopped++] = table[i].pid;
  kill(-1, SIGSTOP); // ESRCH: there is none
  read_table();
  for (int i = 0; i < count; i++)
    if (!is_keeper(table[i].pid) && is_chosen(&table[i], since, shell) && !kill(table[i].pid, SIGKILL)) n++;
  wait_for_deaths(is_chosen, since, shell);
  // The youngest continues first: a shell that continued before its child would take the child for a stopped job.
  for (int i = count - 1; i >= 0; i--) {
    const int pid = table[i].pid;
    if (is_keeper(pid) || is_chosen(&table[i], since, shell)) continue;
    int stay = 0;
    for (int k = 0; k < stopped; k++) stay |= was_stopped[k] == pid && pid != shell;
    if (!stay) kill(pid, SIGCONT);
  }
  return n;
}

int signal_session(pid_t leader, int signal) {
  int n = 0;
  read_table();
  for (int i = 0; i < count; i++)
    if (table[i].state != 'Z' && belongs_to(&table[i], leader) && !kill(table[i].pid, signal)) n++;
  return n;
}

size_t processes_describe(uint8_t *text, size_t size, Moment since, pid_t shell) {
  size_t used = 0;
  read_table();
  for (int i = 0; i < count; i++) {
    const int pid = table[i].pid;
    if (is_keeper_or_shell(pid, shell) || table[i].state == 'Z' || is_spared(&table[i]) ||
        is_target(&table[i], since, shell))
      continue;
    char path[48], command[512];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    const int n = read_file(path, command, sizeof command);
    if (!n) continue;
    for (int k = 0; k < n - 1; k++)
      if (!command[k]) command[k] = ' ';
    const int length = snprintf((char *)text + used, size - used, "%d %s", pid, command);
    if (length < 0 || used + length + 1 > size) break;
    used += length + 1;
  }
  return used;
}
