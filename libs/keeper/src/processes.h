// The process tree of the container, and the signals that end what a command started.
#ifndef PROCESSES_H
#define PROCESSES_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A point in time that tells processes apart: those that began before it from those that began after.
typedef struct {
  uint64_t ticks;
  int last_pid; // within the same tick the pid decides
} Moment;

extern const Moment BEGINNING; // every process is newer

void processes_open(void);
Moment moment_now(void);

// Signals everything newer than the moment but keeper, shell, descendants of older processes (so that a background server
// keeps the workers that it starts) and, after the beginning, what runs at a terminal. Signal 0 only counts. Returns how many there were.
int sweep(int signal, Moment since, pid_t shell);
// The same, of what began until then.
void sweep_between(int signal, Moment since, Moment until, pid_t shell);
// The same with SIGKILL, and nothing escapes by forking: everything is stopped first.
int sweep_kill(Moment since, pid_t shell);
// Bystanders are all but shell, keeper, and what the shell has started since and is still its descendant.
int processes_bystanders(Moment since, pid_t shell);
int sweep_kill_bystanders(Moment since, pid_t shell);
// To every process of the session that this one leads, and to what descends from it. Returns how many there were.
int signal_session(pid_t leader, int signal);
// "pid command\0" of everything but keeper, shell, terminals, and what a sweep since then would reach, as much as fits. Returns the
// length.
size_t processes_describe(uint8_t *text, size_t size, Moment since, pid_t shell);

#endif
