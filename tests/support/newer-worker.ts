import { fileURLToPath } from 'node:url';

const preload = new URL('../fixtures/newer-version.ts', import.meta.url).href;

/** Program of workers that variables make newer. Run from source, its modules are found by the preloaded module. */
export const sourceWorker = fileURLToPath(new URL('../../apps/worker/src/main.ts', import.meta.url));

/** Returns the variables of a newer worker: see the fixture. */
export const newerWorker = (what: 'schema' | 'protocol' | 'next') => ({
  NODE_OPTIONS: `--import ${preload}`,
  SHELLFLEET_TEST_NEWER: what,
});

/** Variables that make a newer worker one of this version again. */
export const THIS_WORKER = { NODE_OPTIONS: '', SHELLFLEET_TEST_NEWER: '' };
