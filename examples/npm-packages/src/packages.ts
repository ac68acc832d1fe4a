import { readFile } from 'node:fs/promises';

export interface Package {
  name: string;
  version: string;
  /** The integrity of the tarball, as `sha512-…`. */
  integrity: string;
  /** The packages that it imports. */
  dependencies: Package[];
}

type Locked = { version: string; integrity: string; dependencies?: Record<string, string> };

/** Returns the packages to exercise, in order. The npm lock file beside the checks pins them. */
export async function readPackages(): Promise<Package[]> {
  const text = await readFile(new URL('../checks/package-lock.json', import.meta.url), 'utf8');
  const locked = (JSON.parse(text) as { packages: Record<string, Locked> }).packages;
  return Object.keys(locked['']?.dependencies ?? {}).map((name) => toPackage(name, locked));
}

function toPackage(name: string, locked: Record<string, Locked>): Package {
  const found = locked[`node_modules/${name}`];
  if (found === undefined) throw new Error(`${name} is missing from checks/package-lock.json`);
  const { version, integrity, dependencies = {} } = found;
  return { name, version, integrity, dependencies: Object.keys(dependencies).map((each) => toPackage(each, locked)) };
}
