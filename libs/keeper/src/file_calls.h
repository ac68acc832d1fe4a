// The calls for file operations. They wait neither for the entry nor for each other.
//
// CALLS-1. A call begins at most once: a second FILE_CALL with its id is answered with "running", or with the call's
//     end but without its reply.
// CALLS-2. The reply of a call is kept in memory until it is sent, and is dropped when another worker claims the
//     keeper.
#ifndef FILE_CALLS_H
#define FILE_CALLS_H
#include "wire.h"

// Most calls at a time. Four run alongside commands, and one has its turn among the commands.
enum { FILE_CALLS = 5 };

// Begins the call, or refuses it. Without a payload nothing begins, and the refusal shows whether the id has begun.
void file_call_start(const Header *header, const uint8_t *payload);
// Kills the child of the call with this id, if it runs.
void file_call_stop(const Header *header);
void file_calls_claimed(void);
void file_calls_on_children(void);
// Kills calls whose time limit has passed. Returns the milliseconds until the next look, or -1 if none is due.
int file_calls_tick(void);
// Sends replies. Returns 1 if the link had no room for all of them.
int file_calls_send(void);

#endif
