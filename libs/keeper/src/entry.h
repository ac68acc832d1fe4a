// The one entry that runs, or ran last: a command or a restart.
//
// ENTRY-1. One at a time; an id that began once never begins again (invariant 3).
#ifndef ENTRY_H
#define ENTRY_H
#include "processes.h"
#include "wire.h"

void entry_start(const Header *header, const uint8_t *payload);
void entry_ack(const Header *header);
void entry_resume(const Header *header, const uint8_t *payload);
void entry_stop(const Header *header, const uint8_t *payload);
// A worker has claimed the keeper: nothing of the entry is sent before it resumes.
void entry_on_claim(void);
// The keeper is to end: stops the entry, and no other begins.
void entry_begin_closing(uint32_t termination_ms);

void entry_on_report(void);
// Children were reaped: the shell may be among them.
void entry_on_children(void);
// Deadlines and the stop ladder. Returns in how many ms to call again, or -1.
int entry_tick(void);
// Puts output, then the end, on the link. 1 when there is more than the link has room for.
int entry_send(void);

// In how many ms its output has to be read as it comes; 0: now, -1: there is none. Of a command that ends at once it is
// read at its end.
int entry_output_after(void);

// Null when none has begun.
const uint8_t *entry_id(void);
int entry_is_busy(void);
int entry_has_ended(void);
// The worker has everything of it, or does not follow it.
int entry_is_delivered(void);
// Processes that are newer, and no descendants of older ones, belong to the running command.
Moment entry_since(void);

#endif
