// The one entry that runs, or ran last: a command or a restart.
//
// ENTRY-1. Entries run one at a time, and an id that began once never begins again (invariant 3).
#ifndef ENTRY_H
#define ENTRY_H
#include "processes.h"
#include "wire.h"

void entry_start(const Header *header, const uint8_t *payload);
void entry_ack(const Header *header);
void entry_resume(const Header *header, const uint8_t *payload);
void entry_stop(const Header *header, const uint8_t *payload);
// Called when a worker has claimed the keeper: nothing of the entry is sent before it resumes.
void entry_on_claim(void);
// Stops the entry and lets no other begin, because the keeper is to end.
void entry_begin_closing(uint32_t termination_ms);

void entry_on_report(void);
// Called when children were reaped: the shell may be among them.
void entry_on_children(void);
// Applies deadlines and the stop ladder. Returns the milliseconds until the next call, or -1.
int entry_tick(void);
// Puts output, then the end, on the link. Returns 1 when there is more than the link has room for.
int entry_send(void);

// Returns the milliseconds until output has to be read, or -1. Output of a short command is read at its end.
int entry_output_after(void);

// Returns the entry's id, or null when none has begun.
const uint8_t *entry_id(void);
int entry_is_busy(void);
int entry_has_ended(void);
// Returns whether the worker has received the entry's end, or does not follow the entry.
int entry_is_delivered(void);
// Returns when the running command began: newer processes that do not descend from older ones belong to it.
Moment entry_since(void);

#endif
