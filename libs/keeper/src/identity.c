#define _GNU_SOURCE
#include "identity.h"
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char token[TOKEN_BYTES + 1];
static uint8_t sync_word[SYNC_BYTES];

static void take(const char *name, char *value, size_t size) {
  char *given = getenv(name);
  if (!given) return;
  strncpy(value, given, size - 1);
  explicit_bzero(given, strlen(given)); // /proc/1/environ shows this memory
  unsetenv(name);
}

// Reads the first line of stdin, for a keeper whose environment the session can see. Reads single bytes, to leave the
// worker's frames that follow in stdin.
static void read_line(char *hex) {
  char line[sizeof token + 2 * SYNC_BYTES + 2], *space;
  size_t n = 0;
  while (n < sizeof line - 1 && read(0, line + n, 1) == 1 && line[n] != '\n') n++;
  line[n] = 0;
  if ((space = strchr(line, ' '))) {
    *space = 0;
    strncpy(token, line, sizeof token - 1);
    strncpy(hex, space + 1, 2 * (size_t)SYNC_BYTES);
  }
  explicit_bzero(line, sizeof line);
}

int identity_open(int needs_sync) {
  char hex[2 * SYNC_BYTES + 1] = "";
  take("SF_TOKEN", token, sizeof token);
  take("SF_SYNC", hex, sizeof hex);
  if (needs_sync && !token[0]) read_line(hex);
  for (int i = 0; i < SYNC_BYTES; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return !needs_sync && token[0];
    sync_word[i] = byte;
  }
  return token[0] != 0;
}

const char *identity_token(void) { return token; }
const uint8_t *identity_sync(void) { return sync_word; }

void identity_forget(void) {
  explicit_bzero(token, sizeof token);
  explicit_bzero(sync_word, sizeof sync_word);
}
