import { buildKeeper } from '../build.ts';

let path: Promise<string> | undefined;

/** Where the keeper's program is on this machine, built on first use. It is static: any image of this architecture can run it. */
export function keeperPath(): Promise<string> {
  path ??= buildKeeper();
  return path;
}
