// The END message of the entry, and the changes of the shell that it reports.
//
// ENDING-1. The end is kept, and sent again to each worker that resumes, until the next entry begins.
// ENDING-2. A change of the shell between two entries is reported with the next END; of several, the worst.
#ifndef ENDING_H
#define ENDING_H
#include "wire.h"

// The reason is a literal; null with KEPT.
void ending_note_shell(enum ShellState state, const char *reason);

typedef struct {
  int code; // -1: none
  enum EndReason reason;
  int signal;
  uint32_t run_ms;
} Ending;

// An entry begins: there is no end to send.
void ending_clear(void);
// The entry has ended so; what was noted of the shell goes with it.
void ending_set(const Ending *ending);
// A worker has claimed or resumed: send it again.
void ending_repeat(void);
// 0 when the link has no room now. `id` is the entry's.
int ending_send(const uint8_t *id);
int ending_is_sent(void);

#endif
