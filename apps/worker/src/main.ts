import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Sessions wait while a killed worker starts again, and without a cache half of the start is compilation. The cache is stored beside the
// code and has the same owner. When it cannot be written, the start is slower.
enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/shellfleet-worker', import.meta.url)));
const { startWorker } = await import('./start-worker.ts');
await startWorker();
// The worker may be killed later without time to flush.
flushCompileCache();
