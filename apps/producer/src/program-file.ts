import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// The path holds in the source, the compiled code and the bundle: this module is next to the program in each.

const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** Version of the command line and of its fleets. */
export const VERSION = String((manifest as { version?: unknown }).version ?? '0.0.0');

export const PROGRAM = fileURLToPath(
  new URL(`./main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
);
