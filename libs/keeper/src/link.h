// The one connection to the worker: dialled to its unix socket, or the container's own stdin and stdout (attach).
//
// K1. Nothing is believed before a CLAIM. A frame whose fence is not that of the last CLAIM is ignored: it comes from a worker
//     that owns this session no more, or from no worker.
// K2. On the socket something malformed ends the connection; over attach it is skipped. The shell never notices.
#ifndef LINK_H
#define LINK_H
#include "wire.h"

// Called with each frame that holds; from within link_read.
typedef void FrameSink(const Header *header, const uint8_t *payload);
// Writes a HELLO; on the socket the keeper speaks first.
typedef void Greeter(void);

void link_open(const char *socket_path, const uint8_t *sync, int epoll, uint64_t tag_in, uint64_t tag_out, Greeter *greet);
// Dials when there is no connection and it is time to. Returns in how many ms to call again, or -1; to be asked after the last
// thing that may have found the connection broken.
int link_tick(void);
void link_read(FrameSink *sink);
void link_flush(void);
void link_drop(void);
// What arrived makes no sense (K2).
void link_malformed(void);
int link_is_up(void);

// 0 when there is no room now. Output leaves some room for everything else.
int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload, size_t n);
int link_has_room(void);
int link_is_flushed(void);
uint64_t link_fence(void);
// For a fork of the keeper: forget the connection.
void link_abandon(void);

#endif
