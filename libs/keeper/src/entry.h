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
// Called when a worker has claimed the keeper: nothing of the entry is sent until that worker resumes the entry.
void entry_on_claim(void);
// Stops the entry and lets no other begin, because the keeper will end.
void entry_begin_closing(uint32_t termination_ms);

void entry_on_report(void);
// Called when children were reaped: the shell may be among them.
void entry_on_children(void);
// Applies deadlines and the stop ladder. Returns the milliseconds until the next call, or -1 if none is due.
int entry_tick(void);
// Sends the output, and then the END message. Returns 1 if the link had no room for all of them.
int entry_send(void);

// Returns the ms until output must be read, or -1 if none must. Output of a short command is read when that ends.
int entry_output_after(void);

// Returns the entry's id, or null when none has begun.
const uint8_t *entry_id(void);
int entry_is_busy(void);
int entry_has_ended(void);
// Returns whether the worker has received the entry's END, or does not follow the entry.
int entry_is_delivered(void);
// Returns when the running command began. Newer processes belong to the command, unless they descend from older ones.
Moment entry_since(void);

#endif
