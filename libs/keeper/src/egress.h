// The way out of a sandbox whose network is limited. A child of the keeper, the forwarder, listens on the loopback of
// the sandbox and relays each connection to a unix socket behind which the worker's proxy decides. The child relays
// bytes and knows nothing of what they mean.
//
// FORWARD-1. The port is bound before the shell starts, and stays bound while a forwarder that was killed is replaced.
// FORWARD-2. A connection waits a few seconds for a proxy that is away, and is then answered.
#ifndef EGRESS_H
#define EGRESS_H

enum { EGRESS_PORT = 61080 }; // above the ports that the kernel gives to outgoing connections

// Only where SF_EGRESS names the socket; otherwise nothing of this is there. 0, with a message in the log, when it
// failed.
int egress_open(void);
int egress_is_on(void);
// Replaces a forwarder that has ended. Milliseconds until it is to be called again; -1: none.
int egress_tick(void);

#endif
