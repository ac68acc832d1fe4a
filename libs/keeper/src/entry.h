// The one entry that runs, or ran last: a command, a file operation or a restart. Its deadlines, its stop, its end.
//
// E1. One at a time; an id that began once never begins again (invariant 3).
// E2. The end is kept, and told again to each worker that asks, until the next entry begins.
#ifndef ENTRY_H
#define ENTRY_H
#include "processes.h"
#include "wire.h"
#include <sys/types.h>

void entry_start(const Header *header, const uint8_t *payload);
void entry_ack(const Header *header);
void entry_resume(const Header *header, const uint8_t *payload);
void entry_stop(const Header *header, const uint8_t *payload);
// A worker has claimed us: nothing of the entry is sent before it resumes.
void entry_claimed(void);
void entry_close(uint32_t termination_ms);

void entry_on_report(void);
void entry_on_child(pid_t pid, int status);
void entry_on_shell_death(int status);
// What is newer, and no child of what is older, is the running entry's.
Moment entry_since(void);
// Deadlines and the ladder. Returns in how many ms to call again, or -1.
int entry_tick(void);
// Puts output, then the end, on the link. 1 when there is more than it has room for.
int entry_send(void);
void entry_hello(void);

#endif
