// Connects to the shell of a sandbox, over the transport that the sandbox was created with.
import type { Duplex } from 'node:stream';
import { abortable } from '@shellfleet/concurrency';
import { describeKeeperExit, OLDEST_KEEPER_PROTOCOL } from '@shellfleet/keeper';
import { ShellfleetError } from '@shellfleet/protocol';
import type { SandboxDeath, UnassignedSandbox } from '../sandbox/sandbox.ts';
import {
  type ClaimedKeeper,
  claimKeeper,
  EndedUnclaimed,
  type KeeperClaim,
  type KeeperConnection,
  protocolMismatch,
} from './keeper-connection.ts';
import { toShell } from './keeper-shell.ts';
import type { Shell } from './shell.ts';
import { attachTransport } from './transport/attach.ts';
import { listenForKeeper } from './transport/socket.ts';
import { KeeperDialer } from './transport/tcp.ts';
import type { Transport } from './transport/transport.ts';

/** Time for a proof, which may wait for the network to apply its policies to the sandbox. */
const PROOF_WITHIN_MS = 20_000;

/** Interval at which a later deadline looks whether the network still lets nothing through. */
const LOOK_EVERY_MS = 1_000;

export interface ConnectShellOptions {
  fence: number;
  deadlineMs: number;
  /** Deadline while the network lets nothing through to the keeper of a sandbox that runs. Default: `deadlineMs`. */
  unreachedDeadlineMs?: number;
  /** Whether to start the sandbox, once its keeper can reach this host. */
  start: boolean;
  /** Receives the messages of the keeper's own log while the shell is connected. */
  onMessage: (message: string) => void;
  /** Gives up when it aborts, also while the sandbox waits for its start. */
  signal?: AbortSignal | undefined;
}

/** Connects to the shell. Rejects with PROTOCOL_MISMATCH for another version's sandbox, and with FencedOff. */
export async function connectShell(sandbox: UnassignedSandbox, options: ConnectShellOptions): Promise<Shell> {
  const claimed = await connectKeeper(sandbox, options);
  if (claimed.hello.state !== 'no-shell') return toShell(claimed);
  claimed.connection.close('released');
  throw startFailed(`No shell runs in the ${sandbox.description}: ${claimed.hello.problem}.`);
}

/** Connects to the keeper and claims it. A sandbox that was started is proven. Rejects like `connectShell`. */
export async function connectKeeper(sandbox: UnassignedSandbox, options: ConnectShellOptions): Promise<ClaimedKeeper> {
  // A newer keeper tells itself whether it works with this version.
  if (sandbox.keeperProtocol < OLDEST_KEEPER_PROTOCOL) throw protocolMismatch(sandbox.keeperProtocol);
  const giveUp = new AbortController();
  const abort = () => giveUp.abort(options.signal?.reason);
  options.signal?.addEventListener('abort', abort, { once: true });
  if (options.signal?.aborted) abort();
  const dialing = { problem: '', isUnreached: false };
  const { deadlineMs, unreachedDeadlineMs = deadlineMs } = options;
  const setDeadline = (ms: number, waitedMs = 0): NodeJS.Timeout =>
    setTimeout(() => {
      const waited = waitedMs + ms;
      const leftMs = dialing.isUnreached ? unreachedDeadlineMs - waited : 0;
      if (leftMs > 0) timer = setDeadline(Math.min(leftMs, LOOK_EVERY_MS), waited);
      else giveUp.abort(tooLate(sandbox, waited, dialing));
    }, ms);
  let timer = setDeadline(deadlineMs);
  let isOver = false;
  let started: Promise<void> | undefined;
  // The engine has a separate deadline. The keeper's deadline begins when the sandbox runs.
  const start = () => {
    clearTimeout(timer);
    started = sandbox.start().then(() => {
      if (!isOver) timer = setDeadline(deadlineMs);
    });
    started.catch((error: unknown) => giveUp.abort(error));
    return started;
  };
  void sandbox.died.then(async (death) => {
    // A failed start is a better reason than the death that it causes.
    await started?.catch(() => undefined);
    giveUp.abort(deadOnArrival(sandbox, death));
  });
  try {
    const claim = {
      fence: options.fence,
      token: sandbox.link.token,
      signal: giveUp.signal,
      onMessage: options.onMessage,
    };
    const claimed = await connect(sandbox, { ...claim, dialing }, options.start ? start : undefined);
    // A sandbox is a session's only once its shell is ready, so one that was not proven is not adopted.
    if (options.start) {
      clearTimeout(timer);
      timer = setDeadline(Math.max(deadlineMs, PROOF_WITHIN_MS));
      await prove(sandbox, claimed.connection, giveUp.signal);
    }
    return claimed;
  } finally {
    isOver = true;
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', abort);
  }
}

/** How the last attempt to dial a keeper failed. */
interface Dialing {
  problem: string;
  /** Whether the network let nothing through to the keeper. */
  isUnreached: boolean;
}

async function connect(
  { link }: UnassignedSandbox,
  { dialing, ...claim }: KeeperClaim & { signal: AbortSignal; dialing: Dialing },
  start: (() => Promise<void>) | undefined,
): Promise<ClaimedKeeper> {
  const { token, signal } = claim;
  if (link.type === 'attach') {
    if (link.opensAfterStart) await start?.();
    const stream = await unlessAborted(link.open(), signal);
    const transport = attachTransport(stream, Buffer.from(link.syncWord, 'hex'));
    if (!link.opensAfterStart) await start?.();
    return claimKeeper({ ...claim, transport });
  }
  if (link.type === 'tcp') {
    if (start !== undefined) await abortable(start(), signal);
    const dialer = new KeeperDialer(link, ({ message, isUnreached }) => {
      Object.assign(dialing, { problem: message, isUnreached });
    });
    const dial = async () => {
      const transport = await dialer.connect(signal);
      dialing.isUnreached = false;
      return transport;
    };
    return claimFirst(dial, claim);
  }
  // The listener is closed after the keeper has connected, so that user code cannot connect later.
  const listener = await listenForKeeper({ path: link.path, token });
  try {
    // The keeper connects before the engine has written down that the container runs. The signal reports a failure.
    void start?.();
    return await claimFirst(() => listener.accept({ signal }), claim);
  } finally {
    listener.close();
  }
}

/** Claims the keeper over the first connection that lasts. */
async function claimFirst(
  nextTransport: () => Promise<Transport & { isLast?: boolean }>,
  claim: KeeperClaim & { signal: AbortSignal },
): Promise<ClaimedKeeper> {
  for (;;) {
    const transport = await nextTransport();
    try {
      return await claimKeeper({ ...claim, transport });
    } catch (error) {
      // The keeper ends a silent connection, for example while this process stands still, and can be reached again.
      if (!(error instanceof EndedUnclaimed) || transport.isLast || claim.signal.aborted) throw error;
    }
  }
}

/** Lets the sandbox refuse itself for what its keeper finds unenforced. */
async function prove(sandbox: UnassignedSandbox, connection: KeeperConnection, signal: AbortSignal): Promise<void> {
  try {
    await sandbox.prove?.((probes) => connection.examine(probes, signal));
  } catch (error) {
    connection.close('released');
    throw signal.aborted ? signal.reason : error;
  }
}

/** Waits for the stream until the signal aborts. A stream that opens later is closed at once. */
function unlessAborted(opening: Promise<Duplex>, signal: AbortSignal): Promise<Duplex> {
  const closeIfLate = (stream: Duplex) => {
    if (signal.aborted) stream.destroy();
  };
  void opening.then(closeIfLate, () => {});
  return abortable(opening, signal);
}

function tooLate({ description }: UnassignedSandbox, deadlineMs: number, { problem }: Dialing): ShellfleetError {
  const last = problem && ` The last attempt: ${problem}.`;
  return startFailed(`The keeper in the ${description} did not answer within ${deadlineMs} ms.${last}`);
}

function deadOnArrival({ description }: UnassignedSandbox, { exitCode, detail }: SandboxDeath): ShellfleetError {
  const cause = detail && `The cause: ${detail}.`;
  const why = cause ?? describeKeeperExit(exitCode) ?? "Is it made for this machine's architecture?";
  return startFailed(`The ${description} ended before its keeper answered. ${why}`);
}

function startFailed(message: string): ShellfleetError {
  return new ShellfleetError('SESSION_START_FAILED', message);
}
