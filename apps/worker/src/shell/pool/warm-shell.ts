import type { UnassignedSandbox } from '../../sandbox/sandbox.ts';
import { connectKeeper } from '../connect-shell.ts';
import { type ClaimedKeeper, claimOver, type KeeperConnection } from '../keeper-connection.ts';
import { toShell } from '../keeper-shell.ts';
import type { Shell } from '../shell.ts';

/** Fence of a shell without a session. The fences of sessions are higher, so a session's owner can claim the keeper. */
const NO_SESSION = 0;

/** A shell that waits in a sandbox without a session. Nothing has run on it. */
export class WarmShell {
  readonly #sandbox: UnassignedSandbox;
  readonly #connection: KeeperConnection;
  #connected = true;
  /** Resolves when the connection has ended before `handOver`. */
  readonly gone: Promise<void>;

  private constructor(sandbox: UnassignedSandbox, connection: KeeperConnection) {
    this.#sandbox = sandbox;
    this.#connection = connection;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.gone = promise;
    connection.release({
      frame: () => {},
      disconnected: () => {
        this.#connected = false;
        resolve();
      },
    });
  }

  /** Starts the sandbox, and waits until its shell runs. Rejects like `connectShell`. */
  static async start(
    sandbox: UnassignedSandbox,
    options: { deadlineMs: number; onMessage: (message: string) => void },
  ): Promise<WarmShell> {
    const claimed = await connectKeeper(sandbox, { ...options, fence: NO_SESSION, start: true });
    checkFresh(claimed);
    return new WarmShell(sandbox, claimed.connection);
  }

  get connected(): boolean {
    return this.#connected;
  }

  /**
   * Gives the shell to the owner of a session. Rejects if the keeper does not answer, or if anything has run on the
   * shell.
   */
  async handOver(
    fence: number,
    { deadlineMs, onMessage }: { deadlineMs: number; onMessage: (message: string) => void },
  ): Promise<Shell> {
    const { token } = this.#sandbox.link;
    const signal = AbortSignal.timeout(deadlineMs);
    const claimed = await claimOver(this.#connection, { fence, token, signal, onMessage });
    checkFresh(claimed);
    return toShell(claimed);
  }

  close(): void {
    this.#connection.close('released');
  }
}

/** Throws unless the keeper reports its first shell, on which no entry has begun. */
function checkFresh({ connection, hello }: ClaimedKeeper): void {
  if (hello.state === 'idle' && hello.shellNumber === 1 && hello.begunCount === 0) return;
  connection.close('released');
  const { state, shellNumber, begunCount, problem } = hello;
  throw new Error(`${problem || 'Its shell is not fresh'} (${state}, shell ${shellNumber}, ${begunCount} begun).`);
}
