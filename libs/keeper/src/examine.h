// The reply to EXAMINE: what the kernel enforces on this container, and which addresses it reaches.
//
// EXAMINE-1. The loop never waits for it: addresses are tried all at once, for at most a second.
#ifndef EXAMINE_H
#define EXAMINE_H
#include "wire.h"

// Begins an examination, instead of one that still runs.
void examine_begin(const Header *header, const uint8_t *payload);
// Ends the examination without a reply.
void examine_end(void);
// Sends EXAMINED when the examination is done. Returns the ms until the next call, or -1 if none is due.
int examine_tick(void);

#endif
