// An open stdin: a FIFO in the folder, and the bytes from the worker for which it has no room yet.
//
// INPUTPIPE-1. Bytes reach the pipe in order and once: those that were received before are recognised by their offset,
//     and a frame that begins after a gap is not taken.
// INPUTPIPE-2. The worker receives how much was written to the pipe, and sends no more than a window beyond that; the
//     rest of a longer frame is not taken.
// INPUTPIPE-3. The end of the input closes the pipe once everything was written. The end of the command closes it in
// any case.
#ifndef INPUT_H
#define INPUT_H
#include "wire.h"

enum { INPUT_WINDOW = 1 << 20 };

// 0 when there is no memory for the window.
int input_open(void);
// For an entry that begins now. 0 when the FIFO could not be made.
int input_begin(const uint8_t *id);
void input_end(void);
void input_on_frame(const Header *header, const uint8_t *payload);
void input_on_writable(void);
// Looks whether the shell has opened the pipe. Returns in how many ms to call again, or -1.
int input_tick(void);
// A worker has resumed the entry: it receives again how much was written.
void input_resume(void);
// Puts that on the link when it has changed. 0 when there is no room now.
int input_send(void);

#endif
