import { fileURLToPath } from 'node:url';

/** A value of SHELLFLEET_TOOLS for modules of tests/fixtures/tools, or for paths. */
export function toolModules(...names: string[]): string {
  return names.map((name) => (name.startsWith('/') ? name : fixture(name))).join(',');
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/tools/${name}.ts`, import.meta.url));
}
