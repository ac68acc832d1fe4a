// The reports of the shell's loop. They come over a pipe to which any process of the user can write as well.
#ifndef REPORT_H
#define REPORT_H
#include "wire.h"

typedef struct {
  int code;
  enum EndReason reason; // EXITED, or why nothing was run: NO_CWD, SYNTAX
  enum ShellState state;
  const char *state_reason; // null with KEPT
  int is_stepped;           // the shell waits in its builtin, so it can keep the output pipes
  int holds_pipes;          // the shell still has the output pipes and has forked no process that could have them
} Report;

// A LEAVING shell saves its state and re-executes itself. A SAVED one has saved its state, and a signal ends it.
enum Reported { NO_REPORT, REPORTED_LEAVING, REPORTED_SAVED, REPORTED_END };

// Called when a shell starts: drops the bytes that the old shell wrote. A shell that continues keeps the traps.
void report_forget(int keeps_traps);
// Reads until a report with this run token is complete, or the pipe is empty.
enum Reported report_read(int pipe, const char *run_token, Report *report);
// Returns whether the user's EXIT trap is in the directory's file `exit`.
int report_has_exit_trap(void);
// Returns whether the last report shows that the loop's own trap is no longer on EXIT.
int report_lacks_own_trap(void);

#endif
