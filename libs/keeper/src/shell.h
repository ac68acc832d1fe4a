// The user's shell: a child that runs the loop of shell.sh, receives a run token per command, and reports its end.
#ifndef SHELL_H
#define SHELL_H
#include "run_directory.h"
#include "report.h"
#include <sys/types.h>

// Constructs inside of which a script might end. To find out, the script is parsed before it runs.
enum Check { CHECK_HERE_DOCUMENTS = 1, CHECK_BRACKETS = 2 };

typedef struct {
  Texts texts;
  int input;  // stdin is the file `input`
  int checks; // bits of Check, for which the text `check` is parsed
  int traps;  // the script may set a trap
  enum { OPEN_PIPES, OPEN_AND_KEEP_PIPES, KEPT_PIPES } pipes;
} ShellRun;

// Takes the argv of the shell. If it is empty, the first shell that is found is used.
void shell_open(char *const *argv);
pid_t shell_pid(void);
// Returns the path or the name of the shell's program.
const char *shell_program(void);
// Returns whether the shell has reached its loop.
int shell_is_ready(void);
// Returns why there is no shell and no other will be started, else null.
const char *shell_problem(void);
// Returns whether the shell waits in its builtin between commands, and not in the loop.
int shell_is_stepped(void);
// Returns the number of the shell, counted from 1 in this keeper.
uint32_t shell_number(void);

// Returns whether the shell has the descriptors of its texts. Gives the shell those again that it has closed, and tells
// whether it did.
int shell_holds_texts(int *were_given);
void shell_run(const ShellRun *run);
// Makes the shell run the user's EXIT trap and end.
void shell_leave(void);
// Lets a shell go on that a process has stopped between two commands. It would never read its next line.
void shell_continue(void);
// Signals the shell to stop the running command and return to the loop, unless it already returns.
void shell_interrupt(void);
void shell_kill(void);
// Reads the shell's reports. Returns 1 when the command has ended.
int shell_read_report(Report *report);
// Returns whether the shell, which ended during a command, had saved its state before.
int shell_can_continue(void);
// Starts the next shell, or gives up after three that were never ready. With a code it continues with the saved state,
// and the code is its first `$?`.
void shell_replace(int status, const int *continue_with);
// Called when the shell has ended and no other is to follow.
void shell_forget(void);
// Retries a failed start, and kills a shell that starts too slowly. Returns the ms until the next call, or -1 for none.
int shell_tick(void);

#endif
