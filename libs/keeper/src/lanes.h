// The pipes through which an entry prints. A lane is the named FIFO that the shell opens for stdout or stderr of each command,
// with the ring that it is read into.
//
// L1. Between two entries nobody holds a lane: one that is still held when its entry ends becomes a *late* lane of that entry,
//     and a fresh FIFO takes its place. So output of a background process never mixes with the next command.
// L2. A full ring stops the reading, so the writer waits; nothing is dropped.
// L3. Late output comes no faster than 1 MiB/s after the first MiB: nobody stores it, so nothing else would hold it back, and the
//     worker has other sessions to serve.
#ifndef LANES_H
#define LANES_H
#include "wire.h"

enum { LANES = 2, MAX_LATE = 512 };

void lanes_open(int epoll, uint64_t lane_tag, uint64_t late_tag);
// FIFOs that somebody removed are made again.
void lanes_begin(const uint8_t *id);
// The write end, for a child of the keeper itself.
int lane_open_for_writing(int stream);
void lane_on_readable(int stream);
void late_on_readable(int index);
// The entry has ended: what is in the pipes now is still its own, and nothing else.
void lanes_end(void);
// All of that has been received; lanes that are still held have become late.
int lanes_settle(void);
int lanes_are_full(void);
uint64_t lane_received(int stream);
uint64_t lane_acked(int stream);
void lane_ack(int stream, uint64_t offset);
void lane_resume(int stream, uint64_t offset);
// Puts what is unsent on the link. 0 when the link has no room for it all.
int lanes_send(void);
// The same for late output, a piece of each lane. Returns in how many ms to call again, or -1.
int late_send(void);

#endif
