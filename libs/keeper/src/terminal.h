// Interactive terminals: each a pseudo-terminal with a separate shell, alongside the session's shell.
//
// PTY-1. A terminal and an entry never wait for each other. They share files, directory and processes, but no state of
//     a shell.
// PTY-2. Output waits in a ring buffer until it is acknowledged, and input until the program reads it. While a buffer
//     is full, nothing is read from its writer, which therefore waits: nothing is dropped.
// PTY-3. Input has offsets as well: bytes that a worker, or its successor, sends again are typed once.
// PTY-4. A terminal for which no frame has come for a minute is hung up. Its end is kept for a minute, or until a
//     worker closes it.
#ifndef TERMINAL_H
#define TERMINAL_H
#include "wire.h"
#include <sys/types.h>

enum { TERMINALS = 4 };

// Returns 0 when there is no memory for the buffers.
int terminals_open(void);
void terminal_start(const Header *header, const uint8_t *payload);
void terminal_input(const Header *header, const uint8_t *payload);
void terminal_resize(const Header *header, const uint8_t *payload);
void terminal_close(const Header *header);
void terminal_ack(const Header *header);

// Called when a worker has claimed the keeper: nothing of a terminal is sent until that worker's TERMINAL_OPEN.
void terminals_claimed(void);
// Hangs up all terminals, because the session ends.
void terminals_hang_up(void);
void terminal_on_ready(int index);
// Called when children were reaped: shells of terminals may be among them.
void terminals_on_children(void);
// Hangs up terminals that are due. Returns the milliseconds until the next call, or -1 if none is due.
int terminals_tick(void);
// Sends the output and the end messages of the terminals. Returns 1 if the link had no room for all of them.
int terminals_send(void);

#endif
