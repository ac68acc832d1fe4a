import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

// V8 sizes its heap for one program on a large machine: its young generation grows to 128 MiB, all of which stays resident. A worker shares
// its host with sandboxes, and its commands leave little behind, so a smaller one costs it nothing that can be measured
// (docs/adr/0023-a-worker-does-little-per-command.md).
//
// For the same reason it lets the old generation grow to twice what lives, and more, before it collects it. Most of what a worker promotes to it is
// garbage soon.
//
// The maximum of the young generation can only be set on the command line, and a worker is started in several ways. Its growth can be set
// at any time.
//
// V8 allocates objects directly in the old generation when most of those from the same place in the code have survived before. In a worker
// such a decision, taken under load, puts nearly everything of later commands there, though it is garbage within a millisecond: 3 to 6 KB of
// each command, which only a full collection removes. So it is turned off.

/** Both halves of the young generation. */
export const YOUNG_GENERATION_BYTES = 32 * 1024 * 1024;
/** The old generation is collected when it has grown by this much since its last collection. */
const OLD_GENERATION_GROWTH_PERCENT = 40;
/** From the size at which V8 begins to this one in one step. */
const GROWTH_FACTOR = 16;
/** V8 shrinks the young generation of a process that does little. */
const CHECK_MS = 5_000;
const MOST_ROUNDS = 100;

/** For the whole life of the process. */
export function limitHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Else the young generation outgrows its size while the old one is marked.
  setFlagsFromString('--no-separate-gc-phases');
  setFlagsFromString(`--heap-growing-percent=${OLD_GENERATION_GROWTH_PERCENT}`);
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`);
  // It grows when much of it survives.
  const surviving: object[] = [];
  for (let round = 0; round < MOST_ROUNDS && youngGenerationBytes() < YOUNG_GENERATION_BYTES; round += 1)
    for (let count = 0; count < 5_000; count += 1) surviving.push({ count });
  adjustGrowth();
  setInterval(adjustGrowth, CHECK_MS).unref();
}

function adjustGrowth(): void {
  const factor = youngGenerationBytes() < YOUNG_GENERATION_BYTES ? GROWTH_FACTOR : 1;
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

export function youngGenerationBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
}
