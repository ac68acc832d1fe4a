// Plays the responder of a test vector. Prints the hash of the handshake, then for each message the payload that was
// read, or the message that was written.
// usage: noise-vector <prologue> <psk> <initiator's static public key> <ephemeral secret> <text ...>, all in
// hexadecimal; the texts are in turn a message of the initiator and a payload for it
#include "../src/noise.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 1024 };

typedef struct {
  uint8_t bytes[MOST_BYTES];
  size_t n;
} Text;

static Text parse(const char *hex) {
  Text text = {0};
  const size_t most = sizeof text.bytes - NOISE_HANDSHAKE_BYTES;
  if (sodium_hex2bin(text.bytes, most, hex, strlen(hex), 0, &text.n, 0)) text.n = 0;
  return text;
}

static void print(const uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) printf("%02x", bytes[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc < 7 || sodium_init() < 0) return 2;
  const Text prologue = parse(argv[1]), psk = parse(argv[2]), initiator = parse(argv[3]), secret = parse(argv[4]);
  NoiseHandshake handshake;
  noise_begin(&handshake, prologue.bytes, prologue.n, initiator.bytes, psk.bytes);
  NoiseCipher inbound, outbound;
  const Text first = parse(argv[5]), second = parse(argv[6]);
  Text read, written;
  if (!noise_read(&handshake, first.bytes, first.n, read.bytes)) return 3;
  if (!noise_write(&handshake, secret.bytes, second.bytes, second.n, written.bytes)) return 4;
  print(handshake.hash, sizeof handshake.hash);
  print(read.bytes, first.n - NOISE_HANDSHAKE_BYTES);
  print(written.bytes, second.n + NOISE_HANDSHAKE_BYTES);
  noise_split(&handshake, &inbound, &outbound);
  for (int i = 7; i < argc; i++) {
    Text text = parse(argv[i]);
    const int is_inbound = i % 2;
    if (!is_inbound) noise_encrypt(&outbound, text.bytes, text.n, text.bytes);
    else if (!noise_decrypt(&inbound, text.bytes, text.n, text.bytes)) return 5;
    print(text.bytes, is_inbound ? text.n - NOISE_TAG_BYTES : text.n + NOISE_TAG_BYTES);
  }
  return 0;
}
