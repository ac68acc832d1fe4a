import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// A worker that was killed has sessions waiting for it: half of what its start takes is compiling what was compiled before. The
// cache lies beside the code, in the hands of whoever owns that; where it cannot be written, the start is slower.
enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/shellfleet-worker', import.meta.url)));
const { startWorker } = await import('./start-worker.ts');
await startWorker();
// Its end may leave no time for that.
flushCompileCache();
