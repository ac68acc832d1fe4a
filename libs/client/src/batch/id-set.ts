import { createHash } from 'node:crypto';

/**
 * Set of ids in 16 to 32 bytes each, whatever their length. It holds 64 bits of a hash of each id: among a million ids,
 * the probability that two are confused is 1 in 30 million.
 */
export class IdSet {
  /** Pairs of 32 bits, at the place that the first of them names or behind it. A free place has 0 and 0. */
  #table = new Uint32Array(2_048);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: string): boolean {
    const [high, low] = hashOf(id);
    return this.#table[this.#placeOf(high, low) + 1] !== 0;
  }

  /** Adds an id. Returns false if it was there. */
  add(id: string): boolean {
    const [high, low] = hashOf(id);
    const place = this.#placeOf(high, low);
    if (this.#table[place + 1] !== 0) return false;
    this.#put(place, high, low);
    this.#size++;
    if (this.#size * 4 > this.#table.length) this.#grow();
    return true;
  }

  /** Returns the place of a hash, or the free place where it would go. */
  #placeOf(high: number, low: number): number {
    const { length } = this.#table;
    for (let place = (2 * high) % length; ; place = (place + 2) % length) {
      const found = this.#table[place + 1];
      if (found === 0 || (found === low && this.#table[place] === high)) return place;
    }
  }

  #put(place: number, high: number, low: number): void {
    this.#table[place] = high;
    this.#table[place + 1] = low;
  }

  #grow(): void {
    const before = this.#table;
    this.#table = new Uint32Array(2 * before.length);
    for (let place = 0; place < before.length; place += 2) {
      const [high = 0, low = 0] = [before[place], before[place + 1]];
      if (low !== 0) this.#put(this.#placeOf(high, low), high, low);
    }
  }
}

/** Returns two numbers of 32 bits. The second is never 0. */
function hashOf(id: string): [number, number] {
  const digest = createHash('sha256').update(id).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4) || 1];
}
