import { fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { Fleet, readFleetFile } from '@shellfleet/client';
import { DEFAULT_POLICY, POLICY_NAMES, type PolicyName } from '@shellfleet/protocol';
import { isCheckout, makeStateDirectory, SetupError, stateDirectory } from '@shellfleet/setup';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { apiHeaderPath } from '../fleet-process/api-key.ts';
import { runFirstCommand } from '../fleet-process/first-command.ts';
import { readFleetRecord } from '../fleet-process/fleet-record.ts';
import { describeUse } from '../fleet-process/fleet-use.ts';
import { describeKept } from '../fleet-process/kept-settings.ts';
import { type RunningFleet, startFleet, type UpOptions } from '../fleet-process/up.ts';
import { PROGRAM } from '../program-file.ts';
import type { Context } from './context.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { EXIT_CANCELLED } from './exit-codes.ts';
import { parseDuration } from './units.ts';
import { policiesFlag, slotsFlag } from './worker-flags.ts';

const DRAIN_MS = 60_000;

interface UpFlags {
  detach?: boolean;
  workers?: number;
  slots?: number;
  policies?: string;
  replace?: boolean;
  drainTimeout: number;
}

/** Messages of a detached supervisor to its starter. */
type Progress = { type: 'line' | 'failed'; text: string } | { type: 'ready' };

export function registerUp(program: Command, context: Context): void {
  program
    .command('up')
    .description('bring up a fleet on this machine: engine, images, Redis, workers, HTTP API')
    .addOption(new Option('-d, --detach', 'return when all is ready').env('SHELLFLEET_UP_DETACH'))
    .addOption(
      new Option('--replace', 'replace a fleet that runs: let its commands finish, end its sessions, start anew').env(
        'SHELLFLEET_UP_REPLACE',
      ),
    )
    .addOption(
      new Option('--drain-timeout <time>', 'how long commands of a fleet that is replaced may go on')
        .env('SHELLFLEET_UP_DRAIN_TIMEOUT')
        .argParser(parseDuration)
        .default(DRAIN_MS, '60s'),
    )
    .addOption(new Option('--workers <n>', 'workers; default: 1').env('SHELLFLEET_WORKERS').argParser(toCount))
    .addOption(slotsFlag().argParser(toCount))
    .addOption(policiesFlag())
    .action((flags: UpFlags) => (flags.detach ? upDetached(context) : up(flags, context)));
}

function toCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000) {
    throw new InvalidArgumentError('Give a whole number from 1 to 10000.');
  }
  return count;
}

/** Runs a fleet in the foreground. A signal ends it at any time, with a message about open sessions once it is up. */
async function up(flags: UpFlags, { config, terminal, setExitCode }: Context): Promise<void> {
  const asked = askedToEnd();
  // The starter of a detached supervisor receives messages until the fleet is ready.
  const tell = (progress: Progress) => process.connected && process.send?.(progress);
  const report = (line: string) => {
    tell({ type: 'line', text: line });
    for (const part of line.split('\n')) terminal.say(part);
  };
  const options: UpOptions = {
    replace: flags.replace === true,
    drainMs: flags.drainTimeout,
    workers: flags.workers ?? 1,
    ...(flags.slots === undefined ? {} : { slots: flags.slots }),
    ...(flags.policies === undefined ? {} : { policies: flags.policies }),
  };
  let running: RunningFleet | undefined;
  try {
    running = await startFleet(options, config.env, report, asked.signal);
    if (running.started === 'reused') await reportKept(flags, config.env, report);
    await greet(running, config.env, report, asked.signal);
    tell({ type: 'ready' });
    asked.releaseStarter();
    if (running.started === 'reused') return;
    if (!asked.signal.aborted) await once(asked.signal, 'abort');
    report(`Ending the fleet, and with it: ${describeUse(await running.use())}`);
  } catch (error) {
    if (!(error instanceof SetupError) && !asked.signal.aborted) {
      tell({ type: 'failed', text: error instanceof Error ? error.message : String(error) });
      throw error;
    }
    report(asked.signal.aborted ? 'Interrupted: what was started ends.' : (error as Error).message);
    setExitCode(asked.signal.aborted ? EXIT_CANCELLED : 1);
  } finally {
    await running?.close();
    asked.releaseStarter();
  }
}

/** Reports which of the given options a fleet that runs already does not follow. */
async function reportKept(flags: UpFlags, env: NodeJS.ProcessEnv, report: (line: string) => void): Promise<void> {
  const record = await readFleetRecord(env);
  if (record === undefined) return;
  await using fleet = await Fleet.connect();
  const own = new Set(record.workers.map(({ hostId }) => hostId));
  const hosts = (await fleet.hosts()).filter(({ id }) => own.has(id));
  const kept = describeKept(flags, { workers: record.workers.length, hosts });
  if (kept !== undefined) report(kept);
}

/**
 * Returns an AbortSignal that aborts on SIGINT, SIGTERM and SIGHUP, which then do not end this process. Until
 * `releaseStarter` is called, the signal also aborts when the starter ends.
 */
function askedToEnd(): { signal: AbortSignal; releaseStarter(): void } {
  const asked = new AbortController();
  const end = () => asked.abort(new Error('It was interrupted.'));
  for (const signal of ENDING_SIGNALS) process.on(signal, end);
  process.once('disconnect', end);
  if (process.send !== undefined && !process.connected) end();
  const releaseStarter = () => {
    process.off('disconnect', end);
    if (process.connected) process.disconnect();
  };
  return { signal: asked.signal, releaseStarter };
}

async function greet(
  { served }: RunningFleet,
  env: NodeJS.ProcessEnv,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  await using fleet = await Fleet.connect();
  const before = await fleet.hosts();
  const policy = policyFor(before.flatMap(({ policies }) => policies));
  // The API starts while the first command runs.
  await Promise.all([runFirstCommand(fleet, policy, { report, signal }), served]);
  signal.throwIfAborted();
  const free = (await fleet.hosts()).reduce((sum, host) => sum + host.free, 0);
  const exec = `npx shellfleet exec${policy === DEFAULT_POLICY ? '' : ` --policy ${policy}`} demo`;
  const { api } = (await readFleetFile(env)) ?? {};
  report(`The fleet is up, with ${free} free slots.${api === undefined ? '' : ` Its HTTP API is at ${api.url}.`} In another terminal:
  ${exec} -- 'cd /tmp && export GREETING=hello'
  ${exec} -- 'echo "$GREETING from $PWD"'
${api === undefined ? '' : describeRequest(api, policy, env)}  npx shellfleet ps${isCheckout ? '\n  npm run example        # twenty npm packages, each exercised in its own session' : ''}
  npx shellfleet down`);
}

/** Returns a first request to the HTTP API. curl reads the key from a file: no log and no list of processes has it. */
function describeRequest({ url }: { url: string }, policy: PolicyName, env: NodeJS.ProcessEnv): string {
  const body = { script: 'echo hello', ...(policy === DEFAULT_POLICY ? {} : { spec: { policy } }) };
  return `  curl -H '@${apiHeaderPath(stateDirectory(env))}' --json '${JSON.stringify(body)}' ${new URL('/v1/run', url)}\n`;
}

/** Returns the default policy if a host offers it, else the first one offered. */
function policyFor(offered: readonly string[]): PolicyName {
  const policies = POLICY_NAMES.filter((name) => offered.includes(name));
  return policies.includes(DEFAULT_POLICY) ? DEFAULT_POLICY : (policies[0] ?? DEFAULT_POLICY);
}

/** Runs `up` in its own process, and shows its progress until it is ready. */
async function upDetached({ config, terminal, setExitCode }: Context): Promise<void> {
  const log = openSync(join(await makeStateDirectory(config.env), 'up.log'), 'a', 0o600);
  const args = process.argv.slice(2).filter((argument) => argument !== '--detach' && argument !== '-d');
  const { SHELLFLEET_UP_DETACH: _, ...env } = config.env;
  const child = fork(PROGRAM, args, { env, detached: true, stdio: ['ignore', log, log, 'ipc'] });
  // The child does not belong to the terminal, so signals are passed on. This process ends after the child.
  const passOn = () => void child.kill('SIGTERM');
  for (const signal of ENDING_SIGNALS) process.on(signal, passOn);
  const ready = await new Promise<boolean>((resolve) => {
    child.on('message', (progress: Progress) => {
      if (progress.type === 'ready') resolve(true);
      else for (const part of progress.text.split('\n')) terminal.say(part);
    });
    child.once('exit', (exitCode) => {
      setExitCode(exitCode || 1);
      resolve(false);
    });
  });
  if (!ready) return;
  if (child.connected) child.disconnect();
  child.unref();
}
