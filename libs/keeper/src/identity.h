// What proves to the worker that this is the keeper, and the other way round: a token, with the sync word of attach, or
// the keys of a link over TCP. They leave the environment before any program of the user's starts.
#ifndef IDENTITY_H
#define IDENTITY_H
#include "transport.h"
#include <stdint.h>

// Returns 0 when the environment does not hold what the transport needs, in its form.
int identity_open(enum TransportKind kind);
const char *identity_token(void); // TOKEN_BYTES, zero-padded; over TCP, where the keys prove more, all '0'
const uint8_t *identity_sync(void);
const uint8_t *identity_worker_key(void);
const uint8_t *identity_shared_key(void);
void identity_forget(void);

#endif
