import { existsSync } from 'node:fs';
import { mkdir, readlink, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  bubblewrapArguments,
  compileSeccomp,
  type HostRoot,
  KERNEL_FILES,
  PROGRAM_DIRECTORIES,
  planBubblewrap,
  sessionSeccompProfile,
} from '@shellfleet/policy';
import type { Enclosure } from '../host/enclosure.ts';
import { findSystemProgram, SYSTEM_PATH } from '../host/find-program.ts';
import { unavailable } from '../host/unavailable.ts';

const TRIAL = `while read -r name value; do
  case $name in
    Seccomp:) [ "$value" = 2 ] || exit 21 ;;
    NoNewPrivs:) [ "$value" = 1 ] || exit 21 ;;
    CapEff:) [ "$value" = 0000000000000000 ] || exit 21 ;;
  esac
done </proc/self/status
[ ! -e /run ] && [ ! -e /home ] && [ ! -e /root ] || exit 22
(: >/probe) 2>/dev/null && exit 22
(: >/usr/probe) 2>/dev/null && exit 22
while read -r interface rest; do
  case $interface in *: ) [ "$interface" = lo: ] || exit 23 ;; esac
done </proc/net/dev`;

const PROBLEMS = {
  21: 'what it starts has capabilities, or no filter of system calls',
  22: "the root directory of a session shows or lets change more of the host's than it should",
  23: 'a session has a network',
};

/** Opens bubblewrap for sessions with their files in `directory`. Throws SANDBOX_UNAVAILABLE when it is missing. */
export async function openBubblewrap(directory: string, path = SYSTEM_PATH): Promise<Enclosure> {
  const { arch } = process;
  if (process.platform !== 'linux') throw unavailable('bubblewrap', 'it needs Linux');
  if (arch !== 'x64' && arch !== 'arm64')
    throw unavailable('bubblewrap', `its filter knows x64 and arm64, not ${arch}`);
  const bwrap = await findSystemProgram('bwrap', path);
  if (bwrap === undefined) throw unavailable('bubblewrap', 'it has no program bwrap (apt-get install bubblewrap)');
  const root = await readRoot();
  const descriptor = join(directory, 'filter');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(`${descriptor}.new`, compileSeccomp(sessionSeccompProfile(), arch));
  await rename(`${descriptor}.new`, descriptor);
  return {
    policy: 'bubblewrap',
    descriptor,
    plan(spec, allowances) {
      const plan = planBubblewrap(spec, allowances);
      return { plan, program: [bwrap, ...bubblewrapArguments(plan, root)] };
    },
    trial: { script: TRIAL, problems: PROBLEMS },
  };
}

async function readRoot(): Promise<HostRoot> {
  const programs = await Promise.all(
    PROGRAM_DIRECTORIES.filter((path) => existsSync(path)).map(async (path) => ({
      path,
      linkTo: await readlink(path).catch(() => undefined),
    })),
  );
  return { programs, kernelFiles: KERNEL_FILES.filter((path) => existsSync(path)) };
}
