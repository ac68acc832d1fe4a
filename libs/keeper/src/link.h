// The one connection to the worker, over one of the transports.
//
// LINK-1. Before a CLAIM no frame has an effect. Afterwards a frame whose fence is not that of the last CLAIM is
//     ignored: its sender no longer owns this session, or never did.
// LINK-2. A malformed frame ends a connection that can be renewed. Over any other connection it is skipped. The shell
//     is not affected.
#ifndef LINK_H
#define LINK_H
#include "transport.h"
#include "wire.h"

// A function that link_read calls with each frame that passes LINK-1.
typedef void FrameSink(const Header *header, const uint8_t *payload);
// A function that puts a HELLO: the first frame of a renewable connection, and the reply to a claim with a lower fence.
typedef void Greeter(void);

// Opens the link. Returns 0 when it cannot work at all. The sync word is used where the transport needs it.
int link_open(const Transport *transport, const uint8_t *sync, Greeter *greet);
// Connects if there is no connection and an attempt is due. Returns the ms until the next call, or -1 if none is due.
// In a turn of the loop, called after all code that may find the connection broken.
int link_tick(void);
void link_read(FrameSink *sink);
// Replaces the connection with that of a worker that has dialled the keeper, unless a higher fence owns the keeper, and
// passes on its frames.
void link_accept(FrameSink *sink);
void link_flush(void);
void link_drop(void);
// Treats a frame of the worker as malformed (LINK-2).
void link_malformed(void);
// Returns whether there is a connection, claimed or not.
int link_is_connected(void);
// Returns whether a worker has claimed the connection.
int link_is_up(void);
// Returns when the owner's last frame came, or when the link was opened.
uint64_t link_confirmed_at(void);

// Queues a frame. Returns 0 when there is no room now. Output leaves some room for all other frames.
int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload,
             size_t n);
int link_has_room(void);
int link_is_flushed(void);
// Closes the connection's copy in a fork of the keeper.
void link_abandon(void);

#endif
