// File operations beside the entry: they wait neither for it nor for each other.
//
// CALLS-1. A call begins at most once: for an id that began before its end is told again, without what it printed.
// CALLS-2. The answer of a call is kept in memory until it is sent, and is dropped when another worker claims the
//     keeper.
#ifndef FILE_CALLS_H
#define FILE_CALLS_H
#include "wire.h"

enum { FILE_CALLS = 4 };

void file_call_start(const Header *header, const uint8_t *payload);
void file_calls_claimed(void);
void file_calls_on_children(void);
// Returns in how many ms to call again, or -1.
int file_calls_tick(void);
// 1 when there is more to send than there was room for.
int file_calls_send(void);

#endif
