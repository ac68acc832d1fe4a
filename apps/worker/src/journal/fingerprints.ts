import { hash } from 'node:crypto';

const FIRST_SLOTS = 1 << 8;

/**
 * Set of texts. Keeps a fingerprint of 8 bytes for each, in at most 32 bytes of memory. Two are equal with p = 2⁻⁶⁴.
 */
export class Fingerprints {
  /** Open addressing: each slot has two words, both 0 if the slot is free. At most half of the slots are used. */
  #slots = new Uint32Array(2 * FIRST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(print: Fingerprint): boolean {
    return this.#slots[this.#find(print) * 2] !== 0;
  }

  add(print: Fingerprint): void {
    const slot = this.#find(print);
    if (this.#slots[slot * 2] !== 0) return;
    this.#put(slot, print);
    this.#size += 1;
    if (this.#size * 4 > this.#slots.length) this.#grow();
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      const print: Fingerprint = [old[at] as number, old[at + 1] as number];
      if (print[0] !== 0) this.#put(this.#find(print), print);
    }
  }

  /** Returns the slot that has the fingerprint, or the free slot where it belongs. */
  #find([high, low]: Fingerprint): number {
    const mask = this.#slots.length / 2 - 1;
    let slot = low & mask;
    for (;;) {
      const stored = this.#slots[slot * 2];
      if (stored === 0 || (stored === high && this.#slots[slot * 2 + 1] === low)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #put(slot: number, [high, low]: Fingerprint): void {
    this.#slots[slot * 2] = high;
    this.#slots[slot * 2 + 1] = low;
  }
}

/** Fingerprint of a text. The first word is never 0. */
export type Fingerprint = readonly [high: number, low: number];

export const FINGERPRINT_CHARS = 16;

/** Returns the fingerprint as it is written: 16 hex digits. */
export function fingerprintOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, FINGERPRINT_CHARS);
}

export function parseFingerprint(hex: string): Fingerprint {
  const half = FINGERPRINT_CHARS / 2;
  return [Number.parseInt(hex.slice(0, half), 16) || 1, Number.parseInt(hex.slice(half), 16) || 0];
}
