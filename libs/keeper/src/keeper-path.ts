import { buildKeeper, type Programs } from '../build.ts';

let programs: Promise<Programs> | undefined;

/** Path of the keeper's program on this machine. It is built on first use, and static: any image of this architecture can run it. */
export async function keeperPath(): Promise<string> {
  programs ??= buildKeeper();
  return (await programs).keeper;
}

/** Path of the program that starts a keeper on the host without a container. It is built on first use. */
export async function launcherPath(): Promise<string> {
  programs ??= buildKeeper();
  return (await programs).launch;
}
