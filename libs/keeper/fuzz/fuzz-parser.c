// Feeds the frame parser with random and mutated frames, under the sanitizers. usage: fuzz-parser <seed> <milliseconds>
#include "../src/clock.h"
#include "../src/wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BYTES = 256 << 10 };

static const uint8_t SYNC[SYNC_BYTES] = {0xa5, 0x5a, 0x01, 0xff, 0x00, 0x7e, 0x81, 0xc3};
static uint64_t state;

static uint32_t next_random(void) { // xorshift: the same bytes for the same seed, everywhere
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state >> 16;
}

static size_t add_frame(uint8_t *bytes, int framed) {
  Header header = {.length = next_random() % 600, .type = next_random() % 80, .stream = next_random() % 3};
  if (next_random() % 8 == 0) header.length = 0;
  header.fence = next_random();
  uint8_t *p = bytes;
  if (framed) memcpy(p, SYNC, SYNC_BYTES), p += SYNC_BYTES;
  uint8_t *from = p;
  memcpy(p, &header, sizeof header);
  p += sizeof header;
  for (uint32_t i = 0; i < header.length; i++) *p++ = next_random();
  if (framed) {
    const uint32_t crc = crc32_of(0, from, p - from);
    memcpy(p, &crc, CRC_BYTES);
    p += CRC_BYTES;
  }
  return p - bytes;
}

// Kinds of damage that a dying sender or a hostile one makes.
static size_t damage(uint8_t *bytes, size_t n) {
  switch (next_random() % 6) {
    case 0: return n ? next_random() % n : 0; // cut short
    case 1:
      if (n) bytes[next_random() % n] ^= 1 << next_random() % 8;
      return n;
    case 2:
      if (n > 4) {
        const uint32_t huge = next_random();
        memcpy(bytes + next_random() % (n - 4), &huge, 4);
      }
      return n;
    case 3:
      if (n > SYNC_BYTES) memcpy(bytes + next_random() % (n - SYNC_BYTES), SYNC, SYNC_BYTES);
      return n;
    case 4:
      for (size_t i = 0; i < n; i++) bytes[i] = next_random();
      return n;
    default: return n;
  }
}

static uint64_t feed(Parser *parser, const uint8_t *bytes, size_t n) {
  uint64_t frames = 0, sum = 0;
  while (n) {
    size_t room, piece = 1 + next_random() % 900;
    uint8_t *space = parser_space(parser, &room);
    if (!room) abort(); // a full buffer holds a whole frame, so one must have been returned
    if (piece > n) piece = n;
    if (piece > room) piece = room;
    memcpy(space, bytes, piece);
    parser->end += piece;
    bytes += piece;
    n -= piece;
    Header header;
    const uint8_t *payload;
    for (enum Parsed parsed; (parsed = parser_next(parser, &header, &payload)) != NEED_MORE;) {
      if (parsed == MALFORMED) {
        parser_reset(parser);
        return frames;
      }
      if (header.length > MAX_INBOUND_PAYLOAD) abort();
      for (uint32_t i = 0; i < header.length; i++) sum += payload[i]; // the sanitizer looks at every byte
      Cursor cursor = {.at = payload, .left = header.length};
      for (int i = 0; i < 12 && !cursor.bad; i++) sum += take_u32(&cursor) + take_u64(&cursor);
      take_bytes(&cursor, next_random());
      frames++;
    }
  }
  return frames + (sum == 1);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  state = strtoull(argv[1], 0, 10) * 0x9e3779b97f4a7c15u + 1;
  const uint64_t deadline = now_ms() + strtoull(argv[2], 0, 10);
  uint8_t *stream = malloc(STREAM_BYTES);
  uint64_t rounds = 0, frames = 0;
  while (now_ms() < deadline) {
    const int framed = next_random() % 2;
    Parser parser = {.size = parser_size(), .sync = framed ? SYNC : 0};
    parser.bytes = malloc(parser.size);
    size_t n = 0;
    while (n < STREAM_BYTES - 2048) {
      const size_t one = add_frame(stream + n, framed);
      n += next_random() % 4 ? one : damage(stream + n, one);
    }
    frames += feed(&parser, stream, n);
    // Over attach, half a frame of the largest size must not swallow the whole frame that follows.
    if (framed) {
      Header half = {.length = MAX_INBOUND_PAYLOAD, .type = START};
      memcpy(stream, SYNC, SYNC_BYTES);
      memcpy(stream + SYNC_BYTES, &half, sizeof half);
      parser_reset(&parser);
      n = SYNC_BYTES + sizeof half;
      n += add_frame(stream + n, 1);
      if (feed(&parser, stream, n) != 1) abort();
    }
    free(parser.bytes);
    rounds++;
  }
  free(stream);
  printf("%llu rounds, %llu frames\n", (unsigned long long)rounds, (unsigned long long)frames);
  return 0;
}
