// An open stdin: a FIFO in the directory, and the bytes from the worker for which it has no room yet.
//
// INPUTPIPE-1. Bytes reach the pipe in order and once: repeated ones are recognised by their offset, and a frame after
//              a gap is not taken.
// INPUTPIPE-2. The worker receives how much was written to the pipe, and sends at most a window beyond that.
// INPUTPIPE-3. The end of the input closes the pipe once everything was written, and the end of the command in any
//              case.
#ifndef INPUT_H
#define INPUT_H
#include "wire.h"

enum { INPUT_WINDOW = 1 << 20 };

// Returns 0 when there is no memory for the window.
int input_open(void);
// Makes the FIFO for an entry that begins now. Returns 0 on failure.
int input_begin(const uint8_t *id);
void input_end(void);
void input_on_frame(const Header *header, const uint8_t *payload);
void input_on_writable(void);
// Checks whether the shell has opened the pipe. Returns the milliseconds until the next call, or -1 if none is due.
int input_tick(void);
// Called when a worker has resumed the entry: input_send then reports again how much was written.
void input_resume(void);
// Reports how much was written, if that has changed. Returns 0 when the link has no room now.
int input_send(void);

#endif
