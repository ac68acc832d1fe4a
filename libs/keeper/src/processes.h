// The process tree of the container, and the signals that end what a command started.
#ifndef PROCESSES_H
#define PROCESSES_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A point in time: a process began before it or after it.
typedef struct {
  uint64_t ticks;
  int last_pid; // within the same tick the pid decides
} Moment;

extern const Moment BEGINNING; // every process is newer

enum { SPARED_LEADERS = 12 }; // terminals, file calls, the forwarder

// Returns 0 when there is no memory for the table.
int processes_open(void);
Moment moment_now(void);
// Returns the number of the newest process of the namespace, or 0 where the kernel does not tell.
int processes_newest(void);
// Returns the present moment at less cost than moment_now, for when only keeper and shell exist, or the number of the
// newest process is known.
Moment moment_alone(void);
Moment moment_with(int newest);

// Makes sweeps spare this process and its session (terminals, file calls), except a sweep since the BEGINNING.
void processes_spare(pid_t leader);
void processes_unspare(pid_t leader);

// Signals every process that began after the moment, except keeper, shell, descendants of older processes and spared
// sessions. Signal 0 only counts. Returns their number.
int sweep(int signal, Moment since, pid_t shell);
// Does what sweep does, but only to processes that began before `until`.
void sweep_between(int signal, Moment since, Moment until, pid_t shell);
// Does what sweep does with SIGKILL. Stops all processes first, so that none escapes by forking.
int sweep_kill(Moment since, pid_t shell);
// Returns the number of bystanders: processes that are not the keeper, the shell, or newer descendants of the shell.
int processes_bystanders(Moment since, pid_t shell);
int sweep_kill_bystanders(Moment since, pid_t shell);
// Signals every process of the leader's session, and their descendants. Returns how many there were.
int signal_session(pid_t leader, int signal);
// Writes "pid command\0" of every process that fits, except keeper, shell, spared sessions, and those that a sweep
// since the moment would reach. Returns the length.
size_t processes_describe(uint8_t *text, size_t size, Moment since, pid_t shell);

#endif
