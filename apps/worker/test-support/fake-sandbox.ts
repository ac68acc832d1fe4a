import type { FoundSandbox, Sandbox, SandboxDeath, Sandboxes, SessionRef } from '../src/sandbox/sandbox.ts';
import { FakeKeeper, type RunScript } from './fake-keeper.ts';

/** A sandbox in memory, with a keeper. It ends for the reason that the test gives, or as `removed`. */
export class FakeSandbox implements Sandbox {
  readonly id: string;
  readonly session: SessionRef;
  readonly description = 'fake sandbox';
  readonly createdAt = Date.now();
  readonly keeperProtocol = 0;
  readonly link = { type: 'socket', path: '/nowhere', token: 'token' } as const;
  readonly keeper: FakeKeeper;
  removed = false;
  readonly #death = Promise.withResolvers<SandboxDeath>();

  constructor(id: string, session: SessionRef, runScript?: RunScript) {
    this.id = id;
    this.session = session;
    this.keeper = new FakeKeeper(runScript);
  }

  get died(): Promise<SandboxDeath> {
    return this.#death.promise;
  }

  die(reason: SandboxDeath['reason']): void {
    this.#death.resolve({ reason, exitCode: null });
    this.keeper.kill();
  }

  async start(): Promise<void> {}

  async remove(): Promise<void> {
    this.removed = true;
    this.die('removed');
  }
}

export class FakeSandboxes implements Sandboxes {
  readonly made: FakeSandbox[] = [];
  unreachable: Error | undefined;
  readonly #runScript: ((session: SessionRef) => RunScript) | undefined;

  constructor(runScript?: (session: SessionRef) => RunScript) {
    this.#runScript = runScript;
  }

  async create(session: SessionRef): Promise<FakeSandbox> {
    const sandbox = new FakeSandbox(`sandbox-${this.made.length + 1}`, session, this.#runScript?.(session));
    this.made.push(sandbox);
    return sandbox;
  }

  async list(): Promise<FoundSandbox[]> {
    return [];
  }

  /** Finds a sandbox whichever host made it. Rejects with `unreachable` while that is set. */
  async find(_session: SessionRef, id: string): Promise<FoundSandbox | undefined> {
    if (this.unreachable !== undefined) throw this.unreachable;
    const sandbox = this.made.find((made) => made.id === id && !made.removed);
    return sandbox && { sandbox, state: 'running' };
  }

  async check(): Promise<void> {}
  async pull(): Promise<void> {}
  problem(): undefined {}
  async sweep(): Promise<number> {
    return 0;
  }
  async close(): Promise<void> {}
}
