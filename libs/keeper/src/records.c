#define _GNU_SOURCE
#include "records.h"
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static const char PROLOGUE[] = "shellfleet keeper link 1";

static const uint8_t *worker_key, *shared_key;

int records_open(const uint8_t *worker, const uint8_t *psk) {
  worker_key = worker;
  shared_key = psk;
  return sodium_init() >= 0;
}

void records_reset(Records *records) {
  // The bytes above these ends were never used, and a page that is not touched takes no memory.
  const size_t received = records->end > records->to ? records->end : records->to;
  explicit_bzero(records->received, received);
  explicit_bzero(records, offsetof(Records, received));
}

static void put_length(uint8_t *at, size_t n) {
  at[0] = n >> 8;
  at[1] = n;
}

// Returns the length of the message that has arrived whole, or -1.
static ssize_t whole_message(const Records *records) {
  const size_t have = records->end - records->start;
  const uint8_t *at = records->received + records->start;
  const size_t length = have < LENGTH_BYTES ? 0 : (size_t)at[0] << 8 | at[1];
  return have < LENGTH_BYTES || have < LENGTH_BYTES + length ? -1 : (ssize_t)length;
}

// Reads what `fd` has, up to this place in the buffer. Returns what read() does.
static ssize_t receive(Records *records, int fd, size_t up_to) {
  const ssize_t n = read(fd, records->received + records->end, up_to - records->end);
  if (n > 0) records->end += n;
  return n;
}

static int reply(Records *records, NoiseHandshake *handshake, int fd) {
  uint8_t secret[NOISE_KEY_BYTES], message[LENGTH_BYTES + NOISE_HANDSHAKE_BYTES];
  randombytes_buf(secret, sizeof secret);
  put_length(message, NOISE_HANDSHAKE_BYTES);
  const int is_written = noise_write(handshake, secret, message, 0, message + LENGTH_BYTES);
  explicit_bzero(secret, sizeof secret);
  noise_split(handshake, &records->inbound, &records->outbound);
  // The buffer of a new connection has room for these few bytes.
  return is_written && write(fd, message, sizeof message) == sizeof message ? 1 : -1;
}

int records_greet(Records *records, int fd) {
  enum { FIRST_BYTES = LENGTH_BYTES + NOISE_HANDSHAKE_BYTES };
  const ssize_t n = receive(records, fd, FIRST_BYTES);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n <= 0) return -1;
  if (records->end < FIRST_BYTES) return 0;
  if (whole_message(records) != NOISE_HANDSHAKE_BYTES) return -1;
  NoiseHandshake handshake;
  noise_begin(&handshake, PROLOGUE, sizeof PROLOGUE - 1, worker_key, shared_key);
  const int is_read =
    noise_read(&handshake, records->received + LENGTH_BYTES, NOISE_HANDSHAKE_BYTES, records->received);
  records->start = records->end = 0;
  const int is_done = is_read ? reply(records, &handshake, fd) : -1;
  explicit_bzero(&handshake, sizeof handshake);
  return is_done;
}

// Decrypts the next message in its place. Returns 0 if it has not arrived whole, and -1 if it is not authentic.
static int open_message(Records *records) {
  const ssize_t length = whole_message(records);
  if (length < 0) return 0;
  uint8_t *message = records->received + records->start + LENGTH_BYTES;
  if (!noise_decrypt(&records->inbound, message, length, message)) {
    errno = EBADMSG;
    return -1;
  }
  records->from = message - records->received;
  records->to = records->from + length - NOISE_TAG_BYTES;
  records->start += LENGTH_BYTES + length;
  return 1;
}

static void move_to_front(Records *records) {
  memmove(records->received, records->received + records->start, records->end - records->start);
  records->end -= records->start;
  records->start = records->from = records->to = 0;
}

int records_peek(Records *records, int fd, void *bytes, size_t n) {
  while (records->from == records->to) {
    const int opened = open_message(records);
    if (opened < 0) return -1;
    if (opened) continue;
    move_to_front(records);
    const ssize_t got = receive(records, fd, sizeof records->received);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }
  if (records->to - records->from < n) return -1;
  memcpy(bytes, records->received + records->from, n);
  return 1;
}

ssize_t records_read(Records *records, int fd, uint8_t *bytes, size_t n) {
  int is_drained = 0;
  for (size_t taken = 0;;) {
    size_t next = records->to - records->from;
    if (next > n - taken) next = n - taken;
    memcpy(bytes + taken, records->received + records->from, next);
    records->from += next;
    taken += next;
    if (taken == n) return n;
    const int opened = open_message(records);
    if (opened < 0) return taken ? (ssize_t)taken : -1; // the next call fails
    if (opened) continue;
    if (is_drained) {
      if (taken) return taken;
      errno = EAGAIN;
      return -1;
    }
    move_to_front(records);
    const ssize_t got = receive(records, fd, sizeof records->received);
    if (got <= 0) return taken ? (ssize_t)taken : got;
    is_drained = records->end < sizeof records->received;
  }
}

static void seal(Records *records, const uint8_t *bytes, size_t n) {
  records->text_bytes = n < MAX_RECORD_TEXT ? n : MAX_RECORD_TEXT;
  noise_encrypt(&records->outbound, bytes, records->text_bytes, records->sending + LENGTH_BYTES);
  put_length(records->sending, records->text_bytes + NOISE_TAG_BYTES);
  records->ready = LENGTH_BYTES + records->text_bytes + NOISE_TAG_BYTES;
  records->written = 0;
}

ssize_t records_write(Records *records, int fd, const uint8_t *bytes, size_t n) {
  if (records->written == records->ready) seal(records, bytes, n);
  while (records->written < records->ready) {
    const ssize_t k = write(fd, records->sending + records->written, records->ready - records->written);
    if (k < 0) return -1; // EINTR too: the call is repeated
    records->written += k;
  }
  return records->text_bytes;
}
