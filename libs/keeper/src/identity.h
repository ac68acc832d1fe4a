// Token of the keeper, and sync word of attach. Both leave the environment before any program of the user's starts.
#ifndef IDENTITY_H
#define IDENTITY_H
#include <stdint.h>

// Returns 0 when the environment holds no valid token, or no sync word where one is needed.
int identity_open(int needs_sync);
const char *identity_token(void); // TOKEN_BYTES, zero-padded
const uint8_t *identity_sync(void);
void identity_forget(void);

#endif
