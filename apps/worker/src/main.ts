import module from 'node:module';
import { compileCache } from './tools/compile-cache.ts';

// Sessions wait while a killed worker starts again, and without a cache half of the start is compilation. When the cache cannot be written, or
// Node is older than 22, the start is slower.
module.enableCompileCache?.(compileCache);
const { startWorker } = await import('./start-worker.ts');
await startWorker();
// The worker may be killed later without time to flush.
module.flushCompileCache?.();
