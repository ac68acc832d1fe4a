import module from 'node:module';
import { compileCache } from './tools/compile-cache.ts';

// Sessions wait while a killed worker restarts, and without a cache half of that time is compilation. The cache is
// optional: its directory may be read-only.
module.enableCompileCache(compileCache);
const { startWorker } = await import('./start-worker.ts');
await startWorker();
// The worker may be killed later without time to flush. Node 22.9 does not have this function.
module.flushCompileCache?.();
