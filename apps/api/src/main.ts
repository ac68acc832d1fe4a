import module from 'node:module';
import { fileURLToPath } from 'node:url';

// `up` waits for the server, and without a cache half of its start is compilation. The directory is beside the code, so
// that only users who can change the code can change it. The cache is optional: the directory may be read-only.
const modules = import.meta.url.endsWith('.ts') ? '../../../node_modules' : '../node_modules';
module.enableCompileCache(fileURLToPath(new URL(`${modules}/.cache/shellfleet-api`, import.meta.url)));
const { startApi } = await import('./start-api.ts');
await startApi();
// The server may be killed later without time to flush. Node 22.9 does not have this function.
module.flushCompileCache?.();
