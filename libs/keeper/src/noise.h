// The responder's side of Noise_KNpsk0_25519_ChaChaPoly_SHA256 (https://noiseprotocol.org/noise.html, revision 34). The
// cryptography is libsodium's; this file only orders its functions as the specification says.
//
// HANDSHAKE-1. noise_read accepts a first message only if its writer had the preshared key; it may be a recording.
//     Without the static key nobody can read the reply or write a transport message.
#ifndef NOISE_H
#define NOISE_H
#include <stddef.h>
#include <stdint.h>

enum { NOISE_KEY_BYTES = 32, NOISE_TAG_BYTES = 16, NOISE_MESSAGE_BYTES = 65535 };
// Bytes that a message of the handshake has besides its payload.
enum { NOISE_HANDSHAKE_BYTES = NOISE_KEY_BYTES + NOISE_TAG_BYTES };

typedef struct {
  uint8_t key[NOISE_KEY_BYTES];
  uint64_t nonce; // counts the messages
} NoiseCipher;

typedef struct {
  uint8_t hash[NOISE_KEY_BYTES], chaining_key[NOISE_KEY_BYTES];
  uint8_t initiator[NOISE_KEY_BYTES], ephemeral[NOISE_KEY_BYTES]; // the initiator's public keys
  NoiseCipher cipher;
} NoiseHandshake;

// Begins a handshake with the initiator of this static public key, by the preshared key.
void noise_begin(NoiseHandshake *handshake, const void *prologue, size_t prologue_bytes, const uint8_t *initiator,
                 const uint8_t *psk);
// Reads the initiator's message of `n` bytes and its payload. Returns 0 if it is not authentic.
int noise_read(NoiseHandshake *handshake, const uint8_t *message, size_t n, uint8_t *payload);
// Writes the reply with a payload of `n` bytes, by a fresh secret. Returns 0 if the initiator's keys are not valid.
int noise_write(NoiseHandshake *handshake, const uint8_t *secret, const uint8_t *payload, size_t n, uint8_t *message);
// Ends the handshake: sets the ciphers of both directions, and wipes the rest.
void noise_split(NoiseHandshake *handshake, NoiseCipher *inbound, NoiseCipher *outbound);

// Writes a message of `n` bytes and its tag. The message may begin where the text does.
void noise_encrypt(NoiseCipher *cipher, const uint8_t *text, size_t n, uint8_t *message);
// Reads a message of `n` bytes with its tag. Returns 0 if it is not authentic, or not the next one.
int noise_decrypt(NoiseCipher *cipher, const uint8_t *message, size_t n, uint8_t *text);

#endif
