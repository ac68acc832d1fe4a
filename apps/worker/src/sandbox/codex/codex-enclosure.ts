import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type CodexForm, codexArguments, planCodex, readCodexForm } from '@shellfleet/policy';
import type { Enclosure } from '../host/enclosure.ts';
import { findSystemProgram, SYSTEM_PATH } from '../host/find-program.ts';
import { unavailable } from '../host/unavailable.ts';

// Codex keeps files in CODEX_HOME, which it accepts neither below /tmp nor from another user. Each session has its own
// CODEX_HOME in its private run directory. The kernel removes that directory with the session, and nothing in the
// enclosure can write to it.

const CODEX_HOME = '/.shellfleet-run/codex';
/** Run directory of a sandbox: its own tmpfs, in every mode. */
const RUN_DIRECTORY = '/dev/shm/.shellfleet-run';

const ENTER = 'mkdir -m 700 "$CODEX_HOME" && exec "$@"';

const TRIAL = `while read -r name value; do
  case $name in Seccomp:) [ "$value" = 2 ] || exit 21 ;; CapEff:) [ "$value" = 0000000000000000 ] || exit 21 ;; esac
done </proc/self/status
(: >/usr/probe) 2>/dev/null && exit 22
[ ! -w /.shellfleet-run/codex ] || exit 22`;

const PROBLEMS = {
  21: 'what Codex starts has capabilities, or no filter of system calls',
  22: "Codex's sandbox lets a session write outside of its own directories",
};

export interface CodexOptions {
  /** Path of the Codex program. Default: `codex` in one of `directories`. */
  program?: string | undefined;
  /** The operator's settings. Settings of the session override them. Default: none. */
  configOverrides?: Record<string, unknown>;
  platform?: NodeJS.Platform;
  /** Directories of programs, separated by colons. Default: those of the system. */
  directories?: string;
}

/** Opens the sandbox of the Codex CLI. Throws SANDBOX_UNAVAILABLE when this host lacks it. */
export async function openCodex(options: CodexOptions = {}): Promise<Enclosure> {
  const { program, configOverrides, platform = process.platform, directories = SYSTEM_PATH } = options;
  if (platform !== 'linux') throw unavailable('codex', `it needs Linux, and this host has ${platform}`);
  const codex = program ?? (await findSystemProgram('codex', directories));
  if (codex === undefined)
    throw unavailable(
      'codex',
      'it has no program codex (npm install --global @openai/codex, or name its path in SHELLFLEET_CODEX)',
    );
  const form = await formOf(codex);
  return {
    policy: 'codex',
    // Nothing in this enclosure can open a socket.
    isRelayed: true,
    runDirectory: RUN_DIRECTORY,
    env: { CODEX_HOME },
    plan(spec, allowances) {
      const plan = planCodex(spec, allowances);
      const config = { ...configOverrides, ...plan.config };
      return { plan, program: ['/bin/sh', '-c', ENTER, 'sh', codex, ...codexArguments(form, config)] };
    },
    trial: { script: TRIAL, problems: PROBLEMS },
  };
}

async function formOf(codex: string): Promise<CodexForm> {
  const home = await mkdtemp(join(tmpdir(), 'sf-codex-'));
  try {
    const options = { timeout: 20_000, env: { PATH: SYSTEM_PATH, CODEX_HOME: home, HOME: home } };
    const { stdout } = await promisify(execFile)(codex, ['sandbox', '--help'], options).catch((cause: Error) => {
      throw unavailable('codex', `${codex} does not run (${cause.message.trim().split('\n').at(-1)})`);
    });
    const form = readCodexForm(stdout);
    if (form !== undefined) return form;
    throw unavailable('codex', `\`${codex} sandbox --help\` names no way to run a command that this version knows`);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
