#define _GNU_SOURCE
#include "wire.h"
#include <string.h>

const uint8_t *take_bytes(Cursor *cursor, size_t n) {
  if (n > cursor->left) {
    cursor->bad = 1;
    cursor->left = 0;
    return 0;
  }
  const uint8_t *bytes = cursor->at;
  cursor->at += n;
  cursor->left -= n;
  return bytes;
}

uint32_t take_u32(Cursor *cursor) {
  uint32_t value = 0;
  const uint8_t *bytes = take_bytes(cursor, sizeof value);
  if (bytes) memcpy(&value, bytes, sizeof value);
  return value;
}

uint64_t take_u64(Cursor *cursor) {
  uint64_t value = 0;
  const uint8_t *bytes = take_bytes(cursor, sizeof value);
  if (bytes) memcpy(&value, bytes, sizeof value);
  return value;
}

// Uses eight tables for eight bytes a step, because over attach the checksum must not limit the throughput.
uint32_t crc32_of(uint32_t crc, const void *bytes, size_t n) {
  static uint32_t table[8][256];
  if (!table[0][1]) {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
      for (int i = 0; i < 256; i++) table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 0xff];
  }
  const uint8_t *p = bytes;
  crc = ~crc;
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low, high;
    memcpy(&low, p, 4);
    memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^ table[5][(low >> 16) & 0xff] ^ table[4][low >> 24] ^
          table[3][high & 0xff] ^ table[2][(high >> 8) & 0xff] ^ table[1][(high >> 16) & 0xff] ^ table[0][high >> 24];
  }
  while (n--) crc = (crc >> 8) ^ table[0][(crc ^ *p++) & 0xff];
  return ~crc;
}

size_t parser_size(void) { return SYNC_BYTES + sizeof(Header) + MAX_INBOUND_PAYLOAD + CRC_BYTES; }

uint8_t *parser_space(Parser *parser, size_t *n) {
  if (parser->start == parser->end) parser->start = parser->end = 0;
  if (parser->start > parser->size / 2 || parser->end == parser->size) {
    memmove(parser->bytes, parser->bytes + parser->start, parser->end - parser->start);
    parser->end -= parser->start;
    parser->start = 0;
  }
  *n = parser->size - parser->end;
  return parser->bytes + parser->end;
}

void parser_reset(Parser *parser) { parser->start = parser->end = parser->searched = 0; }

static enum Parsed next_on_socket(Parser *parser, Header *header, const uint8_t **payload) {
  const size_t have = parser->end - parser->start;
  if (have < sizeof *header) return NEED_MORE;
  memcpy(header, parser->bytes + parser->start, sizeof *header);
  if (header->length > MAX_INBOUND_PAYLOAD) return MALFORMED;
  if (have < sizeof *header + header->length) return NEED_MORE;
  *payload = parser->bytes + parser->start + sizeof *header;
  parser->start += sizeof *header + header->length;
  return FRAME;
}

static void skip(Parser *parser, size_t n) {
  parser->start += n;
  parser->searched = SYNC_BYTES;
}

// Begins the next frame at a sync word inside an unfinished frame: the word is random, so the sender of that frame has
// died. A whole frame with a right checksum is taken even with a sync word in its payload.
static enum Parsed next_on_attach(Parser *parser, Header *header, const uint8_t **payload) {
  for (;;) {
    const uint8_t *from = parser->bytes + parser->start;
    size_t have = parser->end - parser->start;
    const uint8_t *found = have < SYNC_BYTES ? 0 : memmem(from, have, parser->sync, SYNC_BYTES);
    if (!found) {
      if (have >= SYNC_BYTES) skip(parser, have - (SYNC_BYTES - 1)); // its beginning may be there already
      return NEED_MORE;
    }
    if (found > from) {
      skip(parser, found - from);
      from = found;
      have = parser->end - parser->start;
    }
    if (parser->searched < SYNC_BYTES) parser->searched = SYNC_BYTES;
    size_t whole = SYNC_BYTES + sizeof *header;
    if (have >= whole) {
      memcpy(header, from + SYNC_BYTES, sizeof *header);
      if (header->length > MAX_INBOUND_PAYLOAD) {
        skip(parser, 1);
        continue;
      }
      whole += header->length + CRC_BYTES;
    }
    if (have >= whole && whole > SYNC_BYTES + sizeof *header) {
      uint32_t crc;
      memcpy(&crc, from + whole - CRC_BYTES, CRC_BYTES);
      if (crc != crc32_of(0, from + SYNC_BYTES, whole - SYNC_BYTES - CRC_BYTES)) {
        skip(parser, 1);
        continue;
      }
      *payload = from + SYNC_BYTES + sizeof *header;
      parser->start += whole;
      parser->searched = 0;
      return FRAME;
    }
    const uint8_t *inner = memmem(from + parser->searched, have - parser->searched, parser->sync, SYNC_BYTES);
    if (!inner) {
      if (have - parser->searched >= SYNC_BYTES) parser->searched = have - (SYNC_BYTES - 1);
      return NEED_MORE;
    }
    skip(parser, inner - from);
  }
}

enum Parsed parser_next(Parser *parser, Header *header, const uint8_t **payload) {
  return parser->sync ? next_on_attach(parser, header, payload) : next_on_socket(parser, header, payload);
}
