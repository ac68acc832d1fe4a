import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Injection, Stage } from './stage.ts';

/** Fills a small file system, and frees it again. */
const fill =
  (which: keyof Stage['smallDisks']): Injection =>
  async (stage) => {
    const directory = stage.smallDisks[which];
    if (directory === undefined) return 'small file systems are mounted by root, on Linux';
    const ballast = join(directory, 'ballast');
    const file = await open(ballast, 'w');
    const piece = Buffer.alloc(64 * 1024);
    try {
      for (;;) await file.write(piece);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      await file.close();
    }
    return {
      target: which,
      async heal() {
        await rm(ballast);
        // With every write synced, a server that cannot write ends itself.
        if (which === 'redis') await stage.redis.restart();
      },
    };
  };

export const diskFaults = { 'redis-disk-full': fill('redis'), 'host-disk-full': fill('host') };
