import { buildKeeper, type Programs } from '../build.ts';

let programs: Promise<Programs> | undefined;

/** Where the keeper's program is on this machine, built on first use. It is static: any image of this architecture can run it. */
export async function keeperPath(): Promise<string> {
  programs ??= buildKeeper();
  return (await programs).keeper;
}

/** Where the program is that starts a keeper on the host itself. */
export async function launcherPath(): Promise<string> {
  programs ??= buildKeeper();
  return (await programs).launch;
}
