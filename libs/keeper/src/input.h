// The stdin of the running command where the worker feeds it: a FIFO in the folder, and what that has no room for yet.
//
// I1. Bytes reach the pipe in order and once: what was received before is known by its offset, and a gap is not taken.
// I2. The worker is told how much the pipe was given, and sends no more than a window beyond that; the rest of a longer frame is not taken.
// I3. The end closes the pipe when all was given. The end of the command closes it whatever is left, so it holds nobody up.
#ifndef INPUT_H
#define INPUT_H
#include "wire.h"

enum { INPUT_WINDOW = 1 << 20 };

void input_open(int epoll, uint64_t tag);
// For an entry that begins now. 0 when the FIFO could not be made.
int input_begin(const uint8_t *id);
void input_end(void);
void input_on_frame(const Header *header, const uint8_t *payload);
void input_on_writable(void);
// Looks whether the shell has opened the pipe. Returns in how many ms to call again, or -1.
int input_tick(void);
// A worker has resumed the entry, and is told again how much was given.
void input_resume(void);
// Puts on the link what the worker is to be told. 0 when there is no room now.
int input_send(void);

#endif
