// The calls for file operations. They wait neither for the entry nor for each other.
//
// CALLS-1. A call begins at most once: a second FILE_CALL with its id is answered with "running", or with its end but
//     without its reply.
// CALLS-2. The reply of a call is kept in memory until it is sent, and is dropped when another worker claims the
//     keeper.
#ifndef FILE_CALLS_H
#define FILE_CALLS_H
#include "wire.h"

// Most calls at a time: four beside the commands, and one in their order.
enum { FILE_CALLS = 5 };

// Begins the call, or refuses it. Without a payload it begins nothing, and the refusal shows whether the id has begun.
void file_call_start(const Header *header, const uint8_t *payload);
// Kills the child of the call with this id, if it runs.
void file_call_stop(const Header *header);
void file_calls_claimed(void);
void file_calls_on_children(void);
// Kills the calls whose time limit has passed. Returns the milliseconds until the next call, or -1.
int file_calls_tick(void);
// Puts replies on the link. Returns 1 when there is more than the link has room for.
int file_calls_send(void);

#endif
