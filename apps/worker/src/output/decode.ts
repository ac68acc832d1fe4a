import type { Stage } from './redactor.ts';

const NOTHING: Buffer = Buffer.alloc(0);

/** Holds an incomplete UTF-8 character until its rest arrives, so that each chunk is valid text. Changes no byte. */
export class CharacterBoundary implements Stage {
  #pending: Buffer = NOTHING;

  push(bytes: Buffer): Buffer {
    if (bytes.length === 0) return bytes;
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    const whole = all.length - unfinishedTail(all);
    if (whole === all.length) {
      this.#pending = NOTHING;
      return all;
    }
    this.#pending = Buffer.from(all.subarray(whole));
    return all.subarray(0, whole);
  }

  end(): Buffer {
    const rest = this.#pending;
    this.#pending = NOTHING;
    return rest;
  }

  get pendingBytes(): number {
    return this.#pending.length;
  }
}

/** Decodes text. Invalid bytes become U+FFFD; a byte order mark is kept. */
export function decodeUtf8(bytes: Buffer): string {
  return bytes.toString('utf8');
}

/** Returns how many bytes at the end begin an incomplete character: 0 to 3. */
export function unfinishedTail(bytes: Uint8Array): number {
  const most = Math.min(3, bytes.length);
  for (let back = 1; back <= most; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return characterLength(byte) > back ? back : 0;
  }
  return 0;
}

/** Returns how many bytes at the start continue an earlier character: 0 to 3. */
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
