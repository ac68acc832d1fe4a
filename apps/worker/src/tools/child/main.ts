import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// The process of one call, or of the description of one module. Most of its time is compilation at its start, so it uses a compile cache.
enableCompileCache(fileURLToPath(new URL('../../../../../node_modules/.cache/shellfleet-worker', import.meta.url)));
await import('./answer-request.ts');
