// The user's shell: a child that runs the loop of shell.sh, is given a turn for each command, and reports its end.
#ifndef SHELL_H
#define SHELL_H
#include "wire.h"
#include <sys/types.h>

typedef struct {
  const uint8_t *script, *cwd, *env, *input;
  uint32_t script_bytes, cwd_bytes, env_bytes, input_bytes;
  int has_input;
} Command;

typedef struct {
  int code;
  int no_cwd;
  enum ShellState state;
  const char *reason; // or null
} Report;

// argv of the shell; empty to look for one. Its reports are announced by epoll under the tag.
void shell_open(const char *folder, char *const *argv, int epoll, uint64_t report_tag);
pid_t shell_pid(void);
// It has reached its loop.
int shell_is_ready(void);
// Why there is no shell and none will come; null otherwise.
const char *shell_problem(void);
uint32_t shell_generation(void);

// Writes what the command needs. 0 when there is no room for it, or its env is not valid.
int shell_prepare(const Command *command);
void shell_run(void);
// Runs the user's EXIT trap and ends.
void shell_leave(void);
// Asks the running command to come back to the loop, unless it is on its way. Once a turn, right after shell_read_report: a
// shell that has just re-executed itself would die of it.
void shell_interrupt(void);
void shell_kill(void);
// 1 when the turn has ended.
int shell_read_report(Report *report);
// To be told of the death of the shell. Spawns the next.
void shell_died(int status);
void shell_tick(void);
int shell_wake_ms(void);
// A child that only parses the script, with something after its end that is an error unless the script swallows it.
int shell_script_is_suspect(const Command *command);
pid_t shell_check(void);
void shell_check_done(void);
// For a fork of the keeper that becomes something of the user's.
void child_setup(void);

#endif
