import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// This module stands beside the program in the source, in what is compiled of it, and in the bundle that is published.

const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The version of the command line, and of the fleet that it starts. */
export const VERSION = String((manifest as { version?: unknown }).version ?? '0.0.0');

/** The program of the command line. */
export const PROGRAM = fileURLToPath(
  new URL(`./main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
);
