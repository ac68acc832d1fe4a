import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { findProgram, runProgram, runProgramOrThrow } from './run-program.ts';
import { SetupError } from './setup-error.ts';

export type Report = (line: string) => void;

/** Debian packages that the project uses, by purpose. */
export const debianPackages = {
  docker: ['docker.io'],
  redis: ['redis-server'],
  compiler: ['gcc', 'libc6-dev'],
  imageTools: ['mmdebstrap'],
  testImages: ['busybox-static'],
} as const;

const policyPath = '/usr/sbin/policy-rc.d';

/** Whether this process may install Debian packages: root, on Debian or a relative of it. */
export async function canInstallPackages(): Promise<boolean> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return isDebianFamily(release) && (await findProgram('apt-get')) !== undefined;
}

export function isDebianFamily(osRelease: string): boolean {
  const ids = osRelease.split('\n').flatMap((line) => {
    const match = /^(?:ID|ID_LIKE)=(.*)$/.exec(line);
    return match?.[1] === undefined ? [] : match[1].replaceAll('"', '').split(' ');
  });
  return ids.includes('debian') || ids.includes('ubuntu');
}

/** Installs packages without starting their services, so that only processes run that set-up has started and can stop. */
export async function installPackages(names: readonly string[], report: Report): Promise<void> {
  report(`Installing ${names.join(', ')} from Debian's packages`);
  await withoutStartingServices(async () => {
    const first = await aptInstall(names);
    if (first.exitCode === 0) return;
    // Package lists that are missing (a fresh machine) or stale (an old one) make the install fail.
    report("Fetching Debian's package lists");
    await runProgramOrThrow('apt-get', ['update', '-qq'], { env: aptEnv() });
    const second = await aptInstall(names);
    if (second.exitCode === 0) return;
    const lastWords = second.stderr.trim().split('\n').slice(-3).join(' ');
    throw new SetupError(
      `apt-get could not install ${names.join(', ')}: ${lastWords}`,
      `apt-get install ${names.join(' ')}`,
    );
  });
}

function aptInstall(names: readonly string[]) {
  const options = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0'];
  return runProgram('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...options, ...names], {
    env: aptEnv(),
  });
}

function aptEnv(): NodeJS.ProcessEnv {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
}

async function withoutStartingServices(work: () => Promise<void>): Promise<void> {
  // An existing policy belongs to the administrator and is kept.
  if (
    await stat(policyPath).then(
      () => true,
      () => false,
    )
  )
    return work();
  await writeFile(policyPath, '#!/bin/sh\nexit 101\n');
  await chmod(policyPath, 0o755);
  try {
    await work();
  } finally {
    await rm(policyPath, { force: true });
  }
}
