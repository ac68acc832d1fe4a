// The way out of a sandbox with a limited network. The forwarder, a child of the keeper, listens on its loopback and
// relays bytes to a unix socket, behind which the worker's proxy decides.
//
// FORWARD-1. The port is bound before the shell starts, and stays bound while a forwarder that was killed is replaced.
// FORWARD-2. A connection waits a few seconds for a proxy that is away, and then gets an error as its answer.
#ifndef EGRESS_H
#define EGRESS_H

enum { EGRESS_PORT = 61080 }; // above the ports that the kernel gives to outgoing connections

// Starts the forwarder if SF_EGRESS names the proxy's socket. Returns 0, with a message in the log, on failure.
int egress_open(void);
// Returns how many processes of the keeper's container the forwarder is: one, or none while it is away.
int egress_processes(void);
// Replaces a forwarder that has ended. Returns the milliseconds until the next call, or -1 if none is due.
int egress_tick(void);

#endif
