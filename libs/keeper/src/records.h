// The record layer of a TCP connection: the handshake, then the bytes of the frames in encrypted messages. Before each
// message of either kind goes its length, as two bytes, the higher one first.
//
// RECORDS-1. Bytes are passed on only from a message that the worker has encrypted for this connection.
#ifndef RECORDS_H
#define RECORDS_H
#include "noise.h"
#include <sys/types.h>

enum { LENGTH_BYTES = 2, MAX_RECORD_TEXT = NOISE_MESSAGE_BYTES - NOISE_TAG_BYTES };

typedef struct {
  NoiseCipher inbound, outbound;
  size_t from, to;       // the decrypted bytes in `received` that are not passed on yet
  size_t start, end;     // the bytes in `received` that are not decrypted yet
  size_t written, ready; // bytes of the message in `sending`
  size_t text_bytes;     // how many bytes that message encrypts
  uint8_t received[LENGTH_BYTES + NOISE_MESSAGE_BYTES], sending[LENGTH_BYTES + NOISE_MESSAGE_BYTES];
} Records;

// Sets the keys of all connections: the worker's public key, and the preshared key. The caller keeps them valid.
// Returns 0 if libsodium cannot work here.
int records_open(const uint8_t *worker, const uint8_t *psk);

// Wipes a connection's keys and bytes, and prepares the next one.
void records_reset(Records *records);
// Reads the handshake's first message and answers it. Returns 1 when that is done, 0 when bytes are missing, and -1
// when the other end does not have the keys, or has gone.
int records_greet(Records *records, int fd);
// Copies the first `n` bytes of the first message that has bytes, without taking them. Returns 1 when that is done, 0
// when the message has not arrived, and -1 when it has fewer bytes, is not authentic, or cannot arrive any more.
int records_peek(Records *records, int fd, void *bytes, size_t n);
// Reads like read(), and fails with EBADMSG for a message that was changed on its way. After fewer than `n` bytes none
// are left until `fd` is readable again.
ssize_t records_read(Records *records, int fd, uint8_t *bytes, size_t n);
// Writes like write(), except that a call that has failed with EAGAIN must be repeated with the same bytes, to which
// more may have been added.
ssize_t records_write(Records *records, int fd, const uint8_t *bytes, size_t n);

#endif
