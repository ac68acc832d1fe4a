// The reports of the shell's loop, on a pipe to which any process of the user may write as well.
#ifndef REPORT_H
#define REPORT_H
#include "wire.h"

typedef struct {
  int code;
  enum EndReason reason; // EXITED, or why nothing was run: NO_CWD, SYNTAX
  enum ShellState state;
  const char *state_reason; // null with KEPT
} Report;

// LEAVING: the shell saves its state and will re-execute itself. SAVED: it has saved it, and a signal ends it.
enum Reported { NO_REPORT, REPORTED_LEAVING, REPORTED_SAVED, REPORTED_END };

// A new shell starts: bytes of the old one do not count. One that continues keeps the traps.
void report_forget(int keeps_traps);
// Reads on until a report with this run token is complete.
enum Reported report_read(int pipe, const char *run_token, Report *report);
// The user's EXIT trap is in the folder's file `exit`.
int report_has_exit_trap(void);
// The last report says that the loop's own trap is not on EXIT any more.
int report_lacks_own_trap(void);

#endif
