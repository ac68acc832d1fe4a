// The transport on which the keeper listens for TCP connections of workers.
//
// LISTENER-1. Until a peer has proven to have the keys and has sent a CLAIM, it has no effect on the connection. There
//     are four such peers at most, for 1 s each. When a fifth connects, the oldest of those that have not shown the
//     preshared key is dropped, and the oldest of all only if each has shown it.
// LISTENER-2. A peer with an address of this network namespace is dropped: it is a process of the session.
// LISTENER-3. A turn of the loop accepts 16 peers at most, so that no number of them keeps the loop from the session.
#ifndef LISTENER_H
#define LISTENER_H
#include "transport.h"

// Reads where to listen: `port` for all addresses of IPv4 and IPv6, or `address:port`, IPv6 in brackets. Returns 0 if
// it is neither.
int listener_parse(const char *text);
// Listens there. Returns null, with a message in the log, if it cannot. Called once at most, and after records_open.
const Transport *listener_open(void);

#endif
