import { readFile } from 'node:fs/promises';
import { withoutEnablingServices } from './boot-services.ts';
import { withoutStartingServices } from './no-service-starts.ts';
import { findProgram, type ProgramResult, runProgram, runProgramOrThrow } from './run-program.ts';
import { SetupError } from './setup-error.ts';
import { uninterrupted } from './uninterrupted.ts';

export type Report = (line: string) => void;

/** Debian packages that the project uses, by purpose. */
export const debianPackages = {
  docker: ['docker.io'],
  redis: ['redis-server'],
  compiler: ['gcc', 'libc6-dev', 'libsodium-dev'],
  imageTools: ['mmdebstrap'],
  testImages: ['busybox-static'],
  bubblewrap: ['bubblewrap'],
  pythonTests: ['python3', 'python3-setuptools', 'python3-venv', 'python3-wheel'],
  testPrograms: ['curl', 'zsh', 'fish', 'docker-registry', 'prometheus', 'chromium', 'openssl'],
} as const;

/** Returns true if this process may install Debian packages: as root, on Debian or a relative of it. */
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

/** Place of the installation, which tests replace. */
export interface DebianSystem {
  root: string;
  policyPath?: string;
}

/**
 * Installs packages without starting their services now or at boot, and without removing packages. Signals that ask
 * this process to end wait for apt, which would otherwise leave packages half installed.
 */
export async function installPackages(
  names: readonly string[],
  report: Report,
  { root, policyPath }: DebianSystem = { root: '/' },
): Promise<void> {
  report(`Installing ${names.join(', ')} from Debian's packages`);
  const install = () => installOrThrow(names, report);
  await uninterrupted(() => withoutEnablingServices(() => withoutStartingServices(install, policyPath), root));
}

async function installOrThrow(names: readonly string[], report: Report): Promise<void> {
  const first = await aptInstall(names);
  if (first.exitCode === 0) return;
  if (wouldRemove(first)) throw removalRefused(names);
  // The first install fails if package lists are missing or stale.
  report("Fetching Debian's package lists");
  await runProgramOrThrow('apt-get', ['update', '-qq'], { env: aptEnv(), detached: true });
  const second = await aptInstall(names);
  if (second.exitCode === 0) return;
  if (wouldRemove(second)) throw removalRefused(names);
  const lastWords = second.stderr.trim().split('\n').slice(-3).join(' ');
  throw new SetupError(
    `apt-get could not install ${names.join(', ')}: ${lastWords}`,
    `apt-get install ${names.join(' ')}`,
  );
}

function aptInstall(names: readonly string[]): Promise<ProgramResult> {
  const options = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0'];
  // docker.io conflicts with containerd.io: without --no-remove, apt would remove a Kubernetes node's container
  // runtime.
  const args = ['install', '-y', '-qq', '--no-remove', '--no-install-recommends', ...options, ...names];
  return runProgram('apt-get', args, { env: aptEnv(), detached: true });
}

function wouldRemove({ stderr, stdout }: ProgramResult): boolean {
  return /need to be removed but remove is disabled/i.test(stderr + stdout);
}

function removalRefused(names: readonly string[]): SetupError {
  return new SetupError(
    `apt-get would remove other packages to install ${names.join(', ')}, and set-up removes none.`,
    `read what apt-get install -s ${names.join(' ')} would remove, then install ${names.length === 1 ? 'it' : 'them'} yourself`,
  );
}

function aptEnv(): NodeJS.ProcessEnv {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
}
