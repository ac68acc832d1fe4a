/** Least size that is worth freeing. The collector handles smaller buffers cheaply. */
const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Frees a large buffer, of which the caller owns all memory and views. Node collects its whole heap after every few
 * megabytes of new buffers, and a flood of output creates three buffers for each 64 KiB. All work on the host would
 * wait for the collections.
 */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  // Node takes buffers up to half of its pool's size from that shared pool.
  if (byteLength > Math.max(WORTH_FREEING_BYTES, Buffer.poolSize / 2)) (buffer as ArrayBuffer).transfer(0);
}
