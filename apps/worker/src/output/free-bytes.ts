/** Smaller ones cost the collector little. */
const WORTH_FREEING_BYTES = 16 * 1024;

/** From Node 22 on. */
type Transferable = ArrayBufferLike & { transfer?(bytes: number): ArrayBuffer };

/**
 * Frees the memory of a large buffer at once, which is empty after that. Its caller owns all of it, other views of it included.
 *
 * Node counts the memory of buffers, and stops for a collection of its whole heap after every few megabytes of new ones. A flood makes
 * three buffers of each 64 KiB, and everything else on the host waits for these collections.
 */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  // Up to half of its size Node takes buffers from a pool that they share.
  if (byteLength > Math.max(WORTH_FREEING_BYTES, Buffer.poolSize / 2)) (buffer as Transferable).transfer?.(0);
}
