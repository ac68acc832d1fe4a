// The addresses of this network namespace. Only processes of the session itself dial the keeper from one of them.
#ifndef ADDRESSES_H
#define ADDRESSES_H
#include <sys/socket.h>

// Returns whether the address is a loopback address or one of an interface, or whether that cannot be found out.
int address_is_own(const struct sockaddr *address);

#endif
