// The user's shell: a child that runs the loop of shell.sh, is given a turn for each command, and reports its end.
#ifndef SHELL_H
#define SHELL_H
#include "report.h"
#include <sys/types.h>

// What of the folder's files the turn is to use.
typedef struct {
  int input, surroundings;
  int traps; // its script may set one
} Turn;

// argv of the shell; empty to look for one. Its reports are announced by epoll under the tag.
void shell_open(char *const *argv, int epoll, uint64_t report_tag);
pid_t shell_pid(void);
// What its program is called.
const char *shell_program(void);
// It has reached its loop.
int shell_is_ready(void);
// Why there is no shell and none will come; null otherwise.
const char *shell_problem(void);
// Counts the shells, from 1.
uint32_t shell_generation(void);

void shell_run(const Turn *with);
// Runs the user's EXIT trap and ends.
void shell_leave(void);
// Asks the running command to come back to the loop, unless it is on its way.
void shell_interrupt(void);
void shell_kill(void);
// 1 when the turn has ended.
int shell_read_report(Report *report);
// To be told of the death of the shell. Spawns the next.
void shell_died(int status);
void shell_tick(void);
int shell_wake_ms(void);
enum Check { NO_CHECK = 0, CHECK_PARSES = 1, CHECK_END = 2 };
// A child that parses the script; CHECK_PARSES says on `error` what is wrong with it. -1 when there is no room.
pid_t shell_check(enum Check what, int error);
int shell_check_failed(enum Check what, int status);

#endif
