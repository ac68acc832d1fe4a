// What the shell says on its report pipe, among whatever others write there.
#ifndef REPORT_H
#define REPORT_H
#include "wire.h"

typedef struct {
  int code;
  int no_cwd;
  enum ShellState state;
  const char *reason; // or null
} Report;

enum Reported { NOTHING_SAID, SAID_LEAVING, SAID_ENDED };

void report_forget(void);
// Reads on until something is said about the turn.
enum Reported report_read(int pipe, const char *turn, Report *report);
// The user's EXIT trap is in the folder's file `exit`.
int report_has_exit_trap(void);

#endif
