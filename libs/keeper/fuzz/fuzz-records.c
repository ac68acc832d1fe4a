// Sends whole, cut, damaged and repeated messages to the record layer and the handshake, under the sanitizers. Byte n
// of a stream is a function of n, so every byte can be checked. usage: fuzz-records <seed> <milliseconds>
#define _GNU_SOURCE
#include "../src/clock.h"
#include "../src/records.h"
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 12, MOST_BYTES = MESSAGES * (LENGTH_BYTES + NOISE_MESSAGE_BYTES) };

// The first message of a worker with the private key 01 01 … and the preshared key 02 02 …, by link-initiator.ts.
static const uint8_t WORKER_KEY[NOISE_KEY_BYTES] = {0xa4, 0xe0, 0x92, 0x92, 0xb6, 0x51, 0xc2, 0x78, 0xb9, 0x77, 0x2c,
                                                    0x56, 0x9f, 0x5f, 0xa9, 0xbb, 0x13, 0xd9, 0x06, 0xb4, 0x6a, 0xb6,
                                                    0x8c, 0x9d, 0xf9, 0xdc, 0x2b, 0x44, 0x09, 0xf8, 0xa2, 0x09};
static const uint8_t OPENING[LENGTH_BYTES + NOISE_HANDSHAKE_BYTES] = {
  0x00, 0x30, 0xe1, 0xf0, 0xc0, 0x75, 0x3f, 0x03, 0x6f, 0xf3, 0x1b, 0xab, 0xfa, 0x2f, 0x17, 0xa0, 0xbb,
  0x16, 0x46, 0x54, 0xa5, 0x73, 0x61, 0x28, 0x5f, 0x64, 0x01, 0x42, 0xc9, 0xdc, 0x9f, 0xba, 0xb2, 0x07,
  0x8c, 0x6d, 0x38, 0x19, 0x61, 0xe0, 0x5a, 0x5a, 0xae, 0x2b, 0x1c, 0xcf, 0x7a, 0xb2, 0x84, 0x6b};

static Records records;
static int ours, theirs; // the two ends of the connection
static uint64_t state;

static uint32_t next_random(void) { // xorshift: the same bytes for the same seed, everywhere
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 16;
}

static uint8_t byte_at(uint64_t n) { return n * 167 + (n >> 8) * 13 + (n >> 16); }

static void connect_both(void) {
  int pair[2];
  const int small = 4 << 10;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) abort();
  ours = pair[0];
  theirs = pair[1];
  if (next_random() % 2) setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  records_reset(&records);
}

static void close_both(void) {
  close(ours);
  close(theirs);
}

static void greet(void) {
  uint8_t message[sizeof OPENING + 40] = {0};
  memcpy(message, OPENING, sizeof OPENING);
  const int is_damaged = next_random() % 4;
  size_t n = sizeof OPENING;
  if (is_damaged) message[next_random() % n] ^= 1 << next_random() % 8;
  if (next_random() % 4 == 0) n = next_random() % n; // cut short
  connect_both();
  int greeted = 0;
  for (size_t at = 0, piece; at < n && !greeted; at += piece) {
    piece = 1 + next_random() % (n - at);
    if (write(theirs, message + at, piece) != (ssize_t)piece) abort();
    greeted = records_greet(&records, ours);
  }
  if (greeted != (n < sizeof OPENING ? 0 : is_damaged ? -1 : 1)) abort();
  uint8_t reply[200];
  const ssize_t got = read(theirs, reply, sizeof reply);
  if (got != (greeted > 0 ? LENGTH_BYTES + NOISE_HANDSHAKE_BYTES : -1)) abort();
  close_both();
}

// Writes messages of one stream. Returns their bytes, and how many bytes of text the undamaged ones at the front have.
static size_t make_stream(NoiseCipher *cipher, uint8_t *stream, uint64_t *whole_text, int *is_whole) {
  size_t end = 0;
  uint64_t text = 0;
  *is_whole = 1;
  for (int i = 0; i < MESSAGES; i++) {
    size_t n = next_random() % (next_random() % 4 ? 300 : MAX_RECORD_TEXT + 1);
    if (next_random() % 8 == 0) n = next_random() % 2 ? 0 : MAX_RECORD_TEXT;
    uint8_t *message = stream + end + LENGTH_BYTES;
    for (size_t k = 0; k < n; k++) message[k] = byte_at(text + k);
    noise_encrypt(cipher, message, n, message);
    stream[end] = (n + NOISE_TAG_BYTES) >> 8;
    stream[end + 1] = n + NOISE_TAG_BYTES;
    const size_t bytes = LENGTH_BYTES + n + NOISE_TAG_BYTES;
    if (*is_whole && next_random() % 16 == 0) {
      const int is_gap = next_random() % 3 == 0;
      *whole_text = is_gap ? text + n : text;
      *is_whole = 0;
      if (is_gap) cipher->nonce++; // the next message is then not the one that is expected
      else stream[end + next_random() % bytes] ^= 1 << next_random() % 8;
    }
    end += bytes;
    text += n;
  }
  if (*is_whole) *whole_text = text;
  return end;
}

// Returns how many bytes were read.
static uint64_t receive(void) {
  static uint8_t stream[MOST_BYTES], bytes[200000];
  NoiseCipher cipher = {0};
  connect_both();
  for (size_t i = 0; i < sizeof cipher.key; i++) cipher.key[i] = next_random();
  records.inbound = cipher;
  uint64_t whole_text, seen = 0;
  int is_whole, failed = 0;
  const size_t end = make_stream(&cipher, stream, &whole_text, &is_whole);
  for (size_t at = 0; at < end && !failed;) {
    size_t piece = 1 + next_random() % (next_random() % 2 ? 100 : 100000);
    if (piece > end - at) piece = end - at;
    const ssize_t sent = write(theirs, stream + at, piece);
    if (sent > 0) at += sent;
    for (;;) {
      const size_t room = 1 + next_random() % (next_random() % 2 ? 50 : sizeof bytes);
      uint8_t peeked[40];
      const int had = records_peek(&records, ours, peeked, sizeof peeked);
      const ssize_t n = records_read(&records, ours, bytes, room);
      if (had > 0 && (n <= 0 || memcmp(peeked, bytes, n < 40 ? n : 40))) abort();
      if (n < 0 && errno != EAGAIN) failed = 1;
      for (ssize_t k = 0; k < n; k++)
        if (bytes[k] != byte_at(seen + k)) abort();
      if (n > 0) seen += n;
      if (n < (ssize_t)room) break;
    }
  }
  if (seen > whole_text || (is_whole && (failed || seen != whole_text))) abort();
  close_both();
  return seen;
}

// Returns how many bytes were written.
static uint64_t send_all(void) {
  static uint8_t bytes[300000], stream[LENGTH_BYTES + NOISE_MESSAGE_BYTES];
  connect_both();
  for (size_t i = 0; i < sizeof records.outbound.key; i++) records.outbound.key[i] = next_random();
  NoiseCipher cipher = records.outbound;
  const uint64_t end = 1 + next_random() % sizeof bytes;
  uint64_t written = 0, seen = 0, offered = 0;
  size_t have = 0;
  for (uint64_t k = 0; k < end; k++) bytes[k] = byte_at(k);
  while (seen < end) {
    if (offered < end) offered += next_random() % (end - offered + 1); // the queue grows while a write is repeated
    if (offered > written) {
      const ssize_t n = records_write(&records, ours, bytes + written, offered - written);
      if (n < 0 && errno != EAGAIN) abort();
      if (n > 0) written += n;
    }
    const ssize_t got = read(theirs, stream + have, 1 + next_random() % (sizeof stream - have));
    if (got > 0) have += got;
    for (;;) {
      const size_t length = have < LENGTH_BYTES ? 0 : (size_t)stream[0] << 8 | stream[1];
      if (have < LENGTH_BYTES || have < LENGTH_BYTES + length) break;
      uint8_t *message = stream + LENGTH_BYTES;
      if (!noise_decrypt(&cipher, message, length, message)) abort();
      for (size_t k = 0; k < length - NOISE_TAG_BYTES; k++)
        if (message[k] != byte_at(seen + k)) abort();
      seen += length - NOISE_TAG_BYTES;
      have -= LENGTH_BYTES + length;
      memmove(stream, message + length, have);
    }
  }
  if (written != end) abort();
  close_both();
  return written;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  state = strtoull(argv[1], 0, 10) * 0x9e3779b97f4a7c15u + 1;
  const uint64_t deadline = now_ms() + strtoull(argv[2], 0, 10);
  uint8_t psk[NOISE_KEY_BYTES];
  memset(psk, 2, sizeof psk);
  signal(SIGPIPE, SIG_IGN);
  if (!records_open(WORKER_KEY, psk)) return 1;
  uint64_t rounds = 0, bytes = 0;
  while (now_ms() < deadline) {
    for (int i = 0; i < 10; i++) greet();
    bytes += receive() + send_all();
    rounds++;
  }
  printf("%llu rounds, %llu bytes\n", (unsigned long long)rounds, (unsigned long long)bytes);
  return 0;
}
