/** Size of the first buffer. Most texts are short, and Node takes so small a buffer from its pool. */
const FIRST_ALLOCATION = 256;
const NOTHING: Buffer = Buffer.alloc(0);

/** The last `capacity` bytes that were pushed, in one ring buffer that grows only as needed. */
export class TailBuffer {
  readonly capacity: number;
  #ring: Buffer = NOTHING;
  #start = 0;
  #length = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.#length;
  }

  push(bytes: Buffer): void {
    if (this.capacity === 0 || bytes.length === 0) return;
    const last = bytes.length > this.capacity ? bytes.subarray(bytes.length - this.capacity) : bytes;
    this.#makeRoom(last.length);
    const size = this.#ring.length;
    const at = (this.#start + this.#length) % size;
    const untilWrap = Math.min(last.length, size - at);
    last.copy(this.#ring, at, 0, untilWrap);
    last.copy(this.#ring, 0, untilWrap);
    const overwritten = Math.max(0, this.#length + last.length - size);
    this.#start = (this.#start + overwritten) % size;
    this.#length += last.length - overwritten;
  }

  clear(): void {
    this.#start = 0;
    this.#length = 0;
  }

  /** Returns the bytes: a view that is valid until the next push if they are contiguous, else a copy. */
  bytes(): Buffer {
    if (this.#start + this.#length <= this.#ring.length)
      return this.#start === 0 && this.#length === this.#ring.length
        ? this.#ring
        : this.#ring.subarray(this.#start, this.#start + this.#length);
    const untilWrap = Math.min(this.#length, this.#ring.length - this.#start);
    return Buffer.concat([
      this.#ring.subarray(this.#start, this.#start + untilWrap),
      this.#ring.subarray(0, this.#length - untilWrap),
    ]);
  }

  copy(): TailBuffer {
    const copy = new TailBuffer(this.capacity);
    copy.push(this.bytes());
    return copy;
  }

  #makeRoom(incoming: number): void {
    const wanted = Math.min(this.capacity, this.#length + incoming);
    if (wanted <= this.#ring.length) return;
    const size = Math.min(this.capacity, Math.max(FIRST_ALLOCATION, wanted, this.#ring.length * 2));
    const grown = Buffer.allocUnsafe(size);
    this.bytes().copy(grown);
    this.#ring = grown;
    this.#start = 0;
  }
}
