import type { Stage } from './stage.ts';

const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Holds back a UTF-8 character whose rest has not arrived yet (at most 3 bytes), so that each entry of the stream is
 * text on its own. Bytes are never changed: what is no UTF-8 at all passes exactly as it came.
 */
export function createCharacterBoundary(): Stage {
  let held: Buffer = NOTHING;
  return {
    push(bytes) {
      if (bytes.length === 0) return bytes;
      const all = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      const whole = all.length - unfinishedTail(all);
      held = whole === all.length ? NOTHING : Buffer.from(all.subarray(whole));
      return all.subarray(0, whole);
    },
    end() {
      const rest = held;
      held = NOTHING;
      return rest;
    },
    get heldBytes() {
      return held.length;
    },
  };
}

/** Invalid bytes become U+FFFD; a byte order mark is kept. */
export function decodeUtf8(bytes: Buffer): string {
  return bytes.toString('utf8');
}

/** How many bytes at the end begin a character that is not complete: 0 to 3. */
export function unfinishedTail(bytes: Uint8Array): number {
  const most = Math.min(3, bytes.length);
  for (let back = 1; back <= most; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return characterLength(byte) > back ? back : 0;
  }
  return 0;
}

/** How many bytes at the start belong to a character that began before: 0 to 3. */
export function orphanedHead(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && count < bytes.length && isContinuation(bytes[count] ?? 0)) count += 1;
  return count;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function characterLength(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  return 1;
}
