import { access } from 'node:fs/promises';
import { arch } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Programs } from '../build.ts';

/** True in a published package, which has the built programs. A checkout builds them on first use. */
export const isPrebuilt = !import.meta.url.endsWith('.ts');

let programs: Promise<Programs> | undefined;

/** Returns the path of the keeper's static program for containers. Throws when there is none and none can be built. */
export async function keeperPath(): Promise<string> {
  return (await findPrograms()).keeper;
}

/** Returns the path of the program that starts a keeper on the host without a container. */
export async function launcherPath(): Promise<string> {
  return (await findPrograms()).launch;
}

/** Finds the programs once. A failure is not kept, because a missing compiler can be installed meanwhile. */
function findPrograms(): Promise<Programs> {
  if (programs) return programs;
  const found = locatePrograms();
  found.catch(() => {
    programs = undefined;
  });
  programs = found;
  return found;
}

async function locatePrograms(): Promise<Programs> {
  if (!isPrebuilt) return (await import('../build.ts')).buildKeeper();
  const pathOf = (name: string) => fileURLToPath(new URL(`../../prebuilt/linux-${arch()}/${name}`, import.meta.url));
  const found = { keeper: pathOf('keeper'), launch: pathOf('launch') };
  await Promise.all(Object.values(found).map((path) => access(path))).catch(() => {
    throw new Error(`This package has no keeper for ${arch()}. Run the worker from a checkout, which builds one.`);
  });
  return found;
}
