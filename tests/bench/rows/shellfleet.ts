import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Fleet, type Session } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/mailbox';
import { checkoutRoot } from '@shellfleet/setup';
import { expectOutput, type Row, type Script } from './row.ts';

export interface ShellfleetOptions {
  redisUrl: string;
  /** State of the worker; a folder of the bench's own. */
  folder: string;
  image: string;
  dockerHost: string;
  slots: number;
}

/** The whole of it: the public SDK here, a real worker process, a container per session. */
export interface ShellfleetRow extends Row {
  /** Opens sessions until there are so many; each has run one command then. */
  openSessions(count: number): Promise<void>;
  /** Milliseconds from nothing to the result of the first command of a new session. */
  startCold(): Promise<number>;
}

/** The machine should not be asked for more containers at once. */
const OPENING_AT_ONCE = 5;
const MEMORY_BYTES = 64 * 1024 * 1024;

export async function createShellfleetRow(options: ShellfleetOptions): Promise<ShellfleetRow> {
  const sealKeys = [createSealKey()];
  const worker = await startWorker(options, sealKeys);
  const fleet = await Fleet.connect({ redisUrl: options.redisUrl, namespace: 'bench', sealKeys });
  const sessions: Session[] = [];
  let started = 0;

  const open = async (): Promise<Session> => {
    const session = await fleet.session(`bench-${started++}`, { limits: { memoryBytes: MEMORY_BYTES } });
    await run(session, 'echo hi');
    return session;
  };
  return {
    name: 'shellfleet',
    workerPid: worker.pid,
    one: (script, turn) => run(sessions[turn % sessions.length]!, script),
    async many(count, perSession) {
      const turns = Array.from({ length: perSession }, () => sessions.slice(0, count)).flat();
      await Promise.all(turns.map((session) => run(session, 'echo hi')));
    },
    async openSessions(count) {
      while (sessions.length < count) {
        const missing = Math.min(OPENING_AT_ONCE, count - sessions.length);
        sessions.push(...(await Promise.all(Array.from({ length: missing }, open))));
      }
    },
    async startCold() {
      const from = performance.now();
      const session = await open();
      const tookMs = performance.now() - from;
      await session.close();
      return tookMs;
    },
    async close() {
      await fleet.close();
      const ended = once(worker, 'exit');
      worker.kill('SIGINT'); // its shells end with it
      await ended;
    },
  };
}

async function run(session: Session, script: Script): Promise<void> {
  const result = await session.run(script);
  if (result.outcome !== 'success') throw new Error(`${script}: ${result.outcome} ${result.error?.message ?? ''}`);
  expectOutput(result.stdout, script);
}

async function startWorker(options: ShellfleetOptions, sealKeys: string[]): Promise<ChildProcess> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
  const env = {
    ...Object.fromEntries(inherited),
    DOCKER_HOST: options.dockerHost,
    SHELLFLEET_REDIS_URL: options.redisUrl,
    SHELLFLEET_NAMESPACE: 'bench',
    SHELLFLEET_STATE_DIR: options.folder,
    SHELLFLEET_SLOTS: String(options.slots),
    SHELLFLEET_DEFAULT_IMAGE: options.image,
    SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    SHELLFLEET_LOG_LEVEL: 'warn',
  };
  const worker = fork(join(checkoutRoot, 'apps/worker/src/main.ts'), [], { env, stdio: ['ignore', 2, 2, 'ipc'] });
  const ended = once(worker, 'exit').then(() => {
    throw new Error('the worker ended before it was ready');
  });
  await Promise.race([once(worker, 'message'), ended]);
  ended.catch(() => {});
  return worker;
}
