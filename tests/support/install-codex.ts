import { execFile } from 'node:child_process';
import { access, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const VERSION = '0.169.0';
const WITHIN_MS = 240_000;

/**
 * Returns the path of the Codex CLI in the only tested version. The first call installs it from npm (100 MB) into a
 * cache, which is not below /tmp, because Codex does not work there, and which other users can reach. Throws with the
 * reason when it cannot be installed.
 */
export async function installCodex(): Promise<string> {
  const isRoot = process.getuid?.() === 0;
  const directory = join(isRoot ? '/var/cache' : join(homedir(), '.cache'), 'shellfleet-tests', `codex-${VERSION}`);
  const vendor = process.arch === 'arm64' ? 'aarch64-unknown-linux-musl' : 'x86_64-unknown-linux-musl';
  const program = join(directory, 'node_modules/@openai/codex/vendor', vendor, 'bin/codex');
  const isThere = await access(program).then(
    () => true,
    () => false,
  );
  if (isThere) return program;
  await mkdir(directory, { recursive: true });
  // Installs only the package of this platform. The main package adds nothing but the choice of the platform.
  const name = `@openai/codex@${VERSION}-linux-${process.arch}`;
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', directory, name];
  await promisify(execFile)('npm', args, { timeout: WITHIN_MS }).catch((error: Error & { stderr?: string }) => {
    const said = (error.stderr ?? '').trim().split('\n').slice(-3).join(' ');
    throw new Error(
      `${name} could not be installed from npm, so the codex policy cannot be tested: ${said || error.message}`,
    );
  });
  return program;
}
