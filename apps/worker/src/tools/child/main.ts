import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// The process of one call, or of one look at a module. Most of its time is its start, and most of that is compiling what was compiled before.
enableCompileCache(fileURLToPath(new URL('../../../../../node_modules/.cache/shellfleet-worker', import.meta.url)));
await import('./answer-request.ts');
