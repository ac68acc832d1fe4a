/**
 * Flags of V8 for the process of a worker (docs/tuning.md has the figures). The worker's image has the same.
 *
 * The young generation has two halves of 16 MiB from the start; by default it begins with 1 MiB and grows to 128 MiB,
 * which stay resident. The old generation is collected when it has grown by 40 %. Nothing is allocated there directly,
 * because nearly all that a command leaves is garbage within a millisecond.
 */
export const workerNodeFlags: readonly string[] = [
  '--max-semi-space-size=16',
  '--min-semi-space-size=16',
  '--heap-growing-percent=40',
  '--no-allocation-site-pretenuring',
];
