#define _GNU_SOURCE
#include "noise.h"
#include <sodium.h>
#include <string.h>

static const char NAME[] = "Noise_KNpsk0_25519_ChaChaPoly_SHA256";
enum { NONCE_BYTES = crypto_aead_chacha20poly1305_ietf_NPUBBYTES };

static void mix_hash(NoiseHandshake *handshake, const void *data, size_t n) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, handshake->hash, NOISE_KEY_BYTES);
  crypto_hash_sha256_update(&state, data, n);
  crypto_hash_sha256_final(&state, handshake->hash);
}

// Derives the chaining key and `count` - 1 other keys, which is the specification's HKDF.
static void derive(NoiseHandshake *handshake, const uint8_t *material, size_t n, int count, uint8_t (*keys)[32]) {
  uint8_t secret[NOISE_KEY_BYTES];
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, handshake->chaining_key, NOISE_KEY_BYTES);
  crypto_auth_hmacsha256_update(&state, material, n);
  crypto_auth_hmacsha256_final(&state, secret);
  for (uint8_t i = 1; i <= count; i++) {
    crypto_auth_hmacsha256_init(&state, secret, sizeof secret);
    if (i > 1) crypto_auth_hmacsha256_update(&state, keys[i - 2], NOISE_KEY_BYTES);
    crypto_auth_hmacsha256_update(&state, &i, 1);
    crypto_auth_hmacsha256_final(&state, keys[i - 1]);
  }
  sodium_memzero(secret, sizeof secret);
  sodium_memzero(&state, sizeof state);
}

static void use_key(NoiseCipher *cipher, const uint8_t *key) {
  memcpy(cipher->key, key, NOISE_KEY_BYTES);
  cipher->nonce = 0;
}

static void mix_key(NoiseHandshake *handshake, const uint8_t *material) {
  uint8_t keys[2][NOISE_KEY_BYTES];
  derive(handshake, material, NOISE_KEY_BYTES, 2, keys);
  memcpy(handshake->chaining_key, keys[0], NOISE_KEY_BYTES);
  use_key(&handshake->cipher, keys[1]);
  sodium_memzero(keys, sizeof keys);
}

static void mix_psk(NoiseHandshake *handshake, const uint8_t *psk) {
  uint8_t keys[3][NOISE_KEY_BYTES];
  derive(handshake, psk, NOISE_KEY_BYTES, 3, keys);
  memcpy(handshake->chaining_key, keys[0], NOISE_KEY_BYTES);
  mix_hash(handshake, keys[1], NOISE_KEY_BYTES);
  use_key(&handshake->cipher, keys[2]);
  sodium_memzero(keys, sizeof keys);
}

static int mix_shared(NoiseHandshake *handshake, const uint8_t *secret, const uint8_t *public_key) {
  uint8_t shared[NOISE_KEY_BYTES];
  const int is_valid = !crypto_scalarmult(shared, secret, public_key);
  mix_key(handshake, shared);
  sodium_memzero(shared, sizeof shared);
  return is_valid;
}

static void put_nonce(NoiseCipher *cipher, uint8_t *nonce) {
  memset(nonce, 0, NONCE_BYTES);
  for (int i = 0; i < 8; i++) nonce[NONCE_BYTES - 8 + i] = cipher->nonce >> (8 * i);
}

static void encrypt(NoiseCipher *cipher, const uint8_t *hash, const uint8_t *text, size_t n, uint8_t *message) {
  uint8_t nonce[NONCE_BYTES];
  put_nonce(cipher, nonce);
  crypto_aead_chacha20poly1305_ietf_encrypt(message, 0, text, n, hash, hash ? NOISE_KEY_BYTES : 0, 0, nonce,
                                            cipher->key);
  cipher->nonce++;
}

static int decrypt(NoiseCipher *cipher, const uint8_t *hash, const uint8_t *message, size_t n, uint8_t *text) {
  uint8_t nonce[NONCE_BYTES];
  put_nonce(cipher, nonce);
  if (crypto_aead_chacha20poly1305_ietf_decrypt(text, 0, 0, message, n, hash, hash ? NOISE_KEY_BYTES : 0, nonce,
                                                cipher->key))
    return 0;
  cipher->nonce++;
  return 1;
}

void noise_begin(NoiseHandshake *handshake, const void *prologue, size_t prologue_bytes, const uint8_t *initiator,
                 const uint8_t *psk) {
  memset(handshake, 0, sizeof *handshake);
  crypto_hash_sha256(handshake->hash, (const uint8_t *)NAME, sizeof NAME - 1);
  memcpy(handshake->chaining_key, handshake->hash, NOISE_KEY_BYTES);
  memcpy(handshake->initiator, initiator, NOISE_KEY_BYTES);
  mix_hash(handshake, prologue, prologue_bytes);
  mix_hash(handshake, initiator, NOISE_KEY_BYTES);
  mix_psk(handshake, psk);
}

int noise_read(NoiseHandshake *handshake, const uint8_t *message, size_t n, uint8_t *payload) {
  if (n < NOISE_HANDSHAKE_BYTES) return 0;
  memcpy(handshake->ephemeral, message, NOISE_KEY_BYTES);
  mix_hash(handshake, message, NOISE_KEY_BYTES);
  mix_key(handshake, message);
  const uint8_t *sealed = message + NOISE_KEY_BYTES;
  if (!decrypt(&handshake->cipher, handshake->hash, sealed, n - NOISE_KEY_BYTES, payload)) return 0;
  mix_hash(handshake, sealed, n - NOISE_KEY_BYTES);
  return 1;
}

int noise_write(NoiseHandshake *handshake, const uint8_t *secret, const uint8_t *payload, size_t n, uint8_t *message) {
  crypto_scalarmult_base(message, secret);
  mix_hash(handshake, message, NOISE_KEY_BYTES);
  mix_key(handshake, message);
  if (!mix_shared(handshake, secret, handshake->ephemeral)) return 0;
  if (!mix_shared(handshake, secret, handshake->initiator)) return 0;
  uint8_t *sealed = message + NOISE_KEY_BYTES;
  encrypt(&handshake->cipher, handshake->hash, payload, n, sealed);
  mix_hash(handshake, sealed, n + NOISE_TAG_BYTES);
  return 1;
}

void noise_split(NoiseHandshake *handshake, NoiseCipher *inbound, NoiseCipher *outbound) {
  uint8_t keys[2][NOISE_KEY_BYTES];
  derive(handshake, (const uint8_t *)"", 0, 2, keys);
  use_key(inbound, keys[0]);
  use_key(outbound, keys[1]);
  sodium_memzero(keys, sizeof keys);
  sodium_memzero(handshake, sizeof *handshake);
}

void noise_encrypt(NoiseCipher *cipher, const uint8_t *text, size_t n, uint8_t *message) {
  encrypt(cipher, 0, text, n, message);
}

int noise_decrypt(NoiseCipher *cipher, const uint8_t *message, size_t n, uint8_t *text) {
  return n >= NOISE_TAG_BYTES && decrypt(cipher, 0, message, n, text);
}
