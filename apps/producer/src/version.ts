import { readFileSync } from 'node:fs';

const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The version of the command line, and of the fleet that it starts. */
export const VERSION = String((manifest as { version?: unknown }).version ?? '0.0.0');
