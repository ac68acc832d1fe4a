#define _GNU_SOURCE
#include "identity.h"
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_BYTES = crypto_scalarmult_BYTES };

static char token[TOKEN_BYTES + 1];
static uint8_t sync_word[SYNC_BYTES];
static uint8_t worker_key[KEY_BYTES], shared_key[KEY_BYTES];

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
    memcpy(token, line, strnlen(line, TOKEN_BYTES));
    strncpy(hex, space + 1, 2 * (size_t)SYNC_BYTES);
  }
  explicit_bzero(line, sizeof line);
}

// Reads a whole text of hexadecimal digits. Returns 0 when it is anything else.
static int read_key(const char *name, uint8_t *key) {
  char hex[2 * KEY_BYTES + 2] = ""; // room for one digit too many
  take(name, hex, sizeof hex);
  size_t n;
  const char *end;
  const int is_valid = !sodium_hex2bin(key, KEY_BYTES, hex, strlen(hex), 0, &n, &end) && n == KEY_BYTES && !*end;
  explicit_bzero(hex, sizeof hex);
  return is_valid;
}

int identity_open(enum TransportKind kind) {
  const int needs_sync = kind == OVER_STDIO;
  char hex[2 * SYNC_BYTES + 1] = "";
  take("SF_TOKEN", token, sizeof token);
  take("SF_SYNC", hex, sizeof hex);
  const int has_worker = read_key("SF_LINK_KEY", worker_key), has_psk = read_key("SF_LINK_PSK", shared_key);
  if (kind == OVER_TCP) {
    memset(token, '0', TOKEN_BYTES);
    return has_worker && has_psk;
  }
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
const uint8_t *identity_worker_key(void) { return worker_key; }
const uint8_t *identity_shared_key(void) { return shared_key; }

void identity_forget(void) {
  explicit_bzero(token, sizeof token);
  explicit_bzero(sync_word, sizeof sync_word);
  explicit_bzero(worker_key, sizeof worker_key);
  explicit_bzero(shared_key, sizeof shared_key);
}
