// Interactive terminals: each a pseudo-terminal with a shell of its own, beside the session's shell.
//
// T1. A terminal and an entry never wait for each other. They share files, directory and processes, and no state of a shell.
// T2. Output waits in a ring until it is acknowledged, and input until the program reads it. A full ring stops the reading of
//     that side, so its writer waits: nothing is dropped.
// T3. Input has offsets as well: what a worker, or its successor, sends again is typed once.
// T4. One that has heard of no worker for a minute is closed. Its end is kept until a worker has closed it.
#ifndef TERMINAL_H
#define TERMINAL_H
#include "wire.h"
#include <sys/types.h>

enum { TERMINALS = 4 };

void terminals_open(int epoll, uint64_t first_tag);
void terminal_start(const Header *header, const uint8_t *payload);
void terminal_input(const Header *header, const uint8_t *payload);
void terminal_resize(const Header *header, const uint8_t *payload);
void terminal_close(const Header *header);
void terminal_ack(const Header *header);

// A worker has claimed us: nothing of a terminal is sent before it asks for it.
void terminals_claimed(void);
// The session ends.
void terminals_hang_up(void);
void terminal_on_ready(int index);
// 1 when the child was the shell of a terminal.
int terminal_on_child(pid_t pid, int status);
// Who leads the processes at this terminal; 0 for none.
pid_t terminal_leader(int index);
// Returns in how many ms to call again, or -1.
int terminals_tick(void);
// Puts output and ends on the link. 1 when there is more than it has room for.
int terminals_send(void);

#endif
