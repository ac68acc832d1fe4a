import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureMachine, ensureMachineForTests, ensureRedis, stopDocker, type TestImages } from '@shellfleet/setup';
import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';
import { bundlePrograms, type Programs } from './programs.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of the one Redis of the whole run. Each test isolates itself by its own namespace. */
    redisUrl: string;
    /** The engine's address, in the form of DOCKER_HOST. */
    dockerHost: string;
    /** The default session image of this machine. */
    sessionImage: string;
    testImages: TestImages;
    programs: Programs;
  }
}

type Provided = Pick<ProvidedContext, 'redisUrl' | 'dockerHost' | 'sessionImage' | 'testImages' | 'programs'>;
type Shared = { users: number; ready: Promise<{ provided: Provided; close(): Promise<void> }> };

// Each project loads its own instance of this module, in one process, so shared state is stored on globalThis.
const holder = globalThis as { shellfleetTestMachine?: Shared };

/** Sets the machine up once for every project of the run, and stops at the end everything that it started. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  holder.shellfleetTestMachine ??= { users: 0, ready: prepare() };
  const shared = holder.shellfleetTestMachine;
  shared.users += 1;
  const { provided, close } = await shared.ready;
  for (const [key, value] of Object.entries(provided)) project.provide(key as keyof Provided, value);
  return async () => {
    shared.users -= 1;
    if (shared.users === 0) await close();
  };
}

async function prepare(): Promise<{ provided: Provided; close(): Promise<void> }> {
  const report = (line: string): void => console.error(line);
  const machine = await ensureMachine(process.env, report);
  const testImages = await ensureMachineForTests(machine, process.env, report);
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-tests-'));
  // Never the user's Redis: it may hold the user's data, and tests kill and flush their Redis.
  const redis = await ensureRedis({ env: {}, directory, persistent: false, report });
  const bundled = await bundlePrograms();
  const close = async (): Promise<void> => {
    await redis.close();
    await rm(bundled.directory, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
    if (machine.engine.startedHere) await stopDocker(process.env);
  };
  const dockerHost = machine.engine.endpoint.dockerHost;
  const { programs } = bundled;
  const provided = { redisUrl: redis.url, dockerHost, sessionImage: machine.sessionImage, testImages, programs };
  return { provided, close };
}
