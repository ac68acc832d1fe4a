// Output of an entry: FIFOs for stdout and stderr, which the shell opens for every command, and their ring buffers.
//
// PIPE-1. Between two entries no process holds an output pipe, except the shell when no other process was made since it
//     opened the pipe. A pipe that is still held when its entry ends becomes *late* output of that entry, and a fresh
//     FIFO takes its place, so output of a background process never mixes with the next command's.
// PIPE-2. A full ring buffer stops the reading, so the writer waits; nothing is dropped.
#ifndef OUTPUT_H
#define OUTPUT_H
#include "wire.h"

// Returns 0 when a pipe could not be made.
int output_open(void);
// Who holds the pipes: it is to be found out, the shell and perhaps others, the shell alone.
enum Holder { UNKNOWN_HOLDER, SHELL_AND_OTHERS, SHELL_ALONE };

// Prepares the pipes for an entry that begins now: makes FIFOs again that were removed. Returns 0 when that failed.
int output_begin(const uint8_t *id, enum Holder holder);
void output_on_readable(int stream);
// Called when the entry has ended. Its output ends with the bytes that are in the pipes now.
void output_end(enum Holder holder);
// Returns 1 when all bytes of the entry were received; pipes that are still held have then become late output.
int output_settle(void);
int output_is_full(void);
uint64_t output_received(int stream);
uint64_t output_acked(int stream);
void output_ack(int stream, uint64_t offset);
void output_resume(int stream, uint64_t offset);
// Sends the unsent output. Returns 0 when the link has no room for all of it.
int output_send(void);

#endif
