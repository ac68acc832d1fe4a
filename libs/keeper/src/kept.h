// Output pipes that the shell keeps from one command to the next, because opening them again costs more than a short
// command.
//
// KEEPERKEPT-1. Pipes are kept only if nothing but keeper and shell was there when the shell opened them, and every
//     process that was made since is gone. So no other process can hold them or write to them later. What one has
//     changed (such as O_NONBLOCK) the builtin notices.
// KEEPERKEPT-2. Where the kernel does not tell the number of the newest process, no pipes are kept.
#ifndef KEPT_H
#define KEPT_H
#include "output.h"
#include "processes.h"
#include "report.h"

// Called before an entry begins. Returns whether the shell still holds the pipes of the entry before, alone.
int kept_look(void);
// Called when the processes have been counted after kept_look. Returns whether the shell may keep the pipes of the
// entry that begins.
int kept_allow(int is_alone);
// Returns the moment of kept_look.
Moment kept_moment(void);
// Returns who holds the pipes when the entry has ended. The report is null when the shell has not sent one.
enum Holder kept_end(const Report *report, int was_stopped);

#endif
