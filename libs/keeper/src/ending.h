// The END message of the entry, and the changes of the shell that it reports.
//
// ENDING-1. The end is kept, and sent again to each worker that resumes, until the next entry begins.
// ENDING-2. The next END reports a change of the shell between two entries; if there are several, the worst of them.
#ifndef ENDING_H
#define ENDING_H
#include "usage.h"
#include "wire.h"

// Notes a change of the shell for the next END. The reason is a string literal, or null with KEPT.
void ending_note_shell(enum ShellState state, const char *reason);

typedef struct {
  int code; // -1: none
  enum EndReason reason;
  int signal;
  uint32_t run_ms;
  Usage usage;
} Ending;

// Called when an entry begins. Until that entry ends, no END is sent.
void ending_clear(void);
// Sets how the entry has ended, with the noted change of the shell.
void ending_set(const Ending *ending);
// Called when a worker has claimed the keeper or resumed the entry: ending_send then sends the END again.
void ending_repeat(void);
// Sends the END of this entry. Returns 0 when the link has no room now.
int ending_send(const uint8_t *id);
int ending_is_sent(void);

#endif
