// The user's shell: a child that runs the loop of shell.sh, receives one run token for each command, and reports its
// end.
#ifndef SHELL_H
#define SHELL_H
#include "folder.h"
#include "report.h"
#include <sys/types.h>

// The script is parsed before it runs, to find out whether it ends inside one of these.
enum Check { CHECK_HERE_DOCUMENTS = 1, CHECK_BRACKETS = 2 };

typedef struct {
  Texts texts;
  int input;  // stdin is the file `input`
  int checks; // bits of Check, for which the text `check` is parsed
  int traps;  // the script may set a trap
} ShellRun;

// argv of the shell; empty to look for one.
void shell_open(char *const *argv);
pid_t shell_pid(void);
// The path or the name of its program.
const char *shell_program(void);
// It has reached its loop.
int shell_is_ready(void);
// Why there is no shell and none will come; null otherwise.
const char *shell_problem(void);
// Counts the shells of this keeper, from 1.
uint32_t shell_number(void);

// Does it hold the descriptors of the texts that it is to source? A shell that has closed them is given them again. One
// that holds something else there is of no use.
int shell_holds_texts(void);
void shell_run(const ShellRun *run);
// Runs the user's EXIT trap and ends.
void shell_leave(void);
// Asks the running command to come back to the loop, unless it is on its way.
void shell_interrupt(void);
void shell_kill(void);
// 1 when the command has ended.
int shell_read_report(Report *report);
// The shell has ended in the middle of a command, and has saved its state before.
int shell_can_continue(void);
// The shell has ended: starts the next, or gives up after three that were never ready. With a code the next one
// continues with the saved state, and the code is its first `$?`.
void shell_replace(int status, const int *continue_with);
// The shell has ended, and none is to follow.
void shell_forget(void);
// Returns in how many ms to call again, or -1.
int shell_tick(void);

#endif
