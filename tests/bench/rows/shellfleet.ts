import { once } from 'node:events';
import { Fleet, type Result, type Session } from '@shellfleet/client';
import { createSealKey } from '@shellfleet/sealing';
import type Docker from 'dockerode';
import { expectOutput, type Row, type Script } from './row.ts';
import { startWorker, type WorkerOptions } from './worker-process.ts';

export interface ShellfleetOptions extends WorkerOptions {
  docker: Docker;
}

/** The row of the complete system: the public SDK in this process, a real worker process, a container per session. */
export interface ShellfleetRow extends Row {
  /** Opens sessions until this number is open. Each open session has run one command. */
  openSessions(count: number): Promise<void>;
  /** Opens a session of its own, which has run one command. */
  openSession(): Promise<Session>;
  /** Variables that connect another process to the fleet as a producer. */
  environment: Record<string, string>;
  /** Opens a new session, and returns the milliseconds until the result of its first command. */
  startCold(): Promise<number>;
}

/** Number of containers that are started at a time, to limit the load on the machine. */
const OPENING_AT_ONCE = 5;
/**
 * Number of submits at a time. A submit must be accepted within two seconds, and this process also reads all results.
 */
const ACCEPTED_AT_ONCE = 1_000;
const MEMORY_BYTES = 64 * 1024 * 1024;

export async function createShellfleetRow(options: ShellfleetOptions): Promise<ShellfleetRow> {
  const sealKeys = [createSealKey()];
  const worker = await startWorker(options, sealKeys);
  const died = once(worker, 'exit').then(([exitCode, signal]): never => {
    throw new Error(`the worker ended (${signal ?? exitCode}) while it was measured`);
  });
  died.catch(() => {});
  const { redisUrl, namespace } = options;
  const fleet = await Fleet.connect({ redisUrl, namespace, sealKeys });
  const sessions: Session[] = [];
  let started = 0;

  const open = async (): Promise<Session> => {
    const session = await fleet.session(`bench-${started++}`, { limits: { memoryBytes: MEMORY_BYTES } });
    await run(session, 'echo hi');
    return session;
  };
  // Without its worker a command would wait for a host for ever.
  const whileAlive = <T>(work: Promise<T>): Promise<T> => Promise.race([work, died]);
  return {
    name: 'shellfleet',
    workerPid: worker.pid,
    one: (script, turn) => whileAlive(run(sessions[turn % sessions.length]!, script)),
    async many(count, perSession) {
      const turns = Array.from({ length: perSession }, () => sessions.slice(0, count)).flat();
      const results: Promise<void>[] = [];
      while (turns.length > 0) {
        const accepted = turns.splice(0, ACCEPTED_AT_ONCE).map((session) => session.submit('echo hi'));
        const commands = await whileAlive(Promise.all(accepted));
        results.push(...commands.map(async (command) => check(await command.result(), 'echo hi')));
      }
      for (const result of results) result.catch(() => {}); // the first rejection is thrown below
      await whileAlive(Promise.all(results));
    },
    async openSessions(count) {
      while (sessions.length < count) {
        const missing = Math.min(OPENING_AT_ONCE, count - sessions.length);
        sessions.push(...(await whileAlive(Promise.all(Array.from({ length: missing }, open)))));
      }
    },
    openSession: () => whileAlive(open()),
    environment: {
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_NAMESPACE: namespace,
      SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    },
    async startCold() {
      const from = performance.now();
      const session = await whileAlive(open());
      const tookMs = performance.now() - from;
      await session.close();
      return tookMs;
    },
    async close() {
      await fleet.close();
      worker.kill('SIGINT'); // ends the shells of the worker too
      await died.catch(() => {});
      await removeContainers(options);
    },
  };
}

async function run(session: Session, script: Script): Promise<void> {
  check(await session.run(script), script);
}

function check(result: Result, script: Script): void {
  if (result.outcome !== 'success') throw new Error(`${script}: ${result.outcome} ${result.error?.message ?? ''}`);
  expectOutput(result.stdout, script);
}

/** Removes the containers of a worker that was killed. */
async function removeContainers({ docker, namespace }: ShellfleetOptions): Promise<void> {
  const left = await docker.listContainers({ all: true, filters: { label: [`shellfleet.namespace=${namespace}`] } });
  for (const { Id } of left) await docker.getContainer(Id).remove({ force: true });
}
