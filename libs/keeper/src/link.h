// The one connection to the worker, over one of the transports.
//
// LINK-1. Before a CLAIM no frame has an effect. Afterwards a frame whose fence is not that of the last CLAIM is
//     ignored: its sender does not own this session any more, or never did.
// LINK-2. A malformed frame ends the connection where that can be renewed, and is skipped elsewhere. The shell is not
// affected.
#ifndef LINK_H
#define LINK_H
#include "transport.h"
#include "wire.h"

// Called with each frame that passes LINK-1, from within link_read.
typedef void FrameSink(const Header *header, const uint8_t *payload);
// Puts a HELLO: the first frame of a renewable connection, and the answer to a claim with a lower fence.
typedef void Greeter(void);

// 0 when the link cannot work at all. The sync word is used where the transport needs it.
int link_open(const Transport *transport, const uint8_t *sync, Greeter *greet);
// Connects when there is no connection and it is time to. Returns in how many ms to call again, or -1. Call it after
// everything that may have found the connection broken.
int link_tick(void);
void link_read(FrameSink *sink);
void link_flush(void);
void link_drop(void);
// A frame that passed the parser makes no sense (LINK-2).
void link_malformed(void);
// There is a connection, claimed or not.
int link_is_connected(void);
// A worker has claimed it.
int link_is_up(void);

// 0 when there is no room now. Output leaves some room for all other frames.
int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload,
             size_t n);
int link_has_room(void);
int link_is_flushed(void);
// In a fork of the keeper: closes its copy of the connection.
void link_abandon(void);

#endif
