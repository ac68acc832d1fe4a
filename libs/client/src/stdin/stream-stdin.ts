import { LIMITS, type SessionKeys, type StdinSource } from '@shellfleet/protocol';
import type { InputContext } from './send-input.ts';
import { type InputCall, type InputPlace, sendInput, toWrites } from './send-input.ts';

// STDINSTREAM-1. The submitter renews its lease at least every second. When it lapses, the host stops the command.
// STDINSTREAM-2. Each chunk has its offset, so that none is stored after a gap that a loss in Redis left.
// STDINSTREAM-3. Memory is bounded: the next chunk is read from the source when the one before is stored.

const RENEW_EVERY_MS = 1_000;

/**
 * Sends the source to the command. Resolves when everything is sent, or when the command reads no more. Never rejects.
 */
export async function streamStdin(
  context: InputContext,
  keys: SessionKeys,
  entryId: string,
  source: StdinSource,
): Promise<void> {
  const place: InputPlace = { context, keys, entryId, retryMs: Number.POSITIVE_INFINITY };
  let iterator: Pieces | undefined;
  // Async, because a source may throw at once, such as a stream that another reader has locked.
  const next = async (): Promise<Step> => {
    iterator ??= toIterator(source);
    return iterator.next();
  };
  const release = async () => iterator?.return?.();
  let offset = 0;
  const send = async (call: InputCall): Promise<boolean> => {
    const written = await sendInput(place, { ...call, offset, leaseMs: LIMITS.inputLeaseMs });
    if (written.type !== 'written' && written.type !== 'misplaced') return false;
    offset += call.bytes?.byteLength ?? 0;
    if (written.offset === offset) return true;
    await sendInput(place, { closes: 'broken', offset: written.offset });
    return false;
  };
  try {
    for (;;) {
      const step = await renewing(() => send({}), next());
      if (step === 'stopped') return;
      if (step === 'failed') return void (await send({ closes: 'broken' }));
      if (step.done === true) return void (await send({ closes: 'end' }));
      if (!isPiece(step.value)) return void (await send({ closes: 'broken' }));
      for (const bytes of toWrites(step.value)) if (!(await send({ bytes }))) return;
    }
  } catch {
    // The connection was closed: the lease lapses, and the host ends the command with STDIN_INCOMPLETE.
  } finally {
    // The return is not awaited, because it may never settle if the source waits for its next piece.
    void release().catch(() => {});
  }
}

type Pieces = Iterator<Uint8Array | string> | AsyncIterator<Uint8Array | string>;

function toIterator(source: StdinSource): Pieces {
  return Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
}

function isPiece(value: unknown): boolean {
  return typeof value === 'string' || value instanceof Uint8Array;
}

type Step = IteratorResult<Uint8Array | string>;

/** Waits for a piece of the source, and renews the lease during the wait. */
async function renewing(renew: () => Promise<boolean>, piece: Promise<Step>): Promise<Step | 'stopped' | 'failed'> {
  const next = piece.catch(() => 'failed' as const);
  for (;;) {
    const timer = Promise.withResolvers<'tick'>();
    const timeout = setTimeout(() => timer.resolve('tick'), RENEW_EVERY_MS).unref();
    const step = await Promise.race([next, timer.promise]).finally(() => clearTimeout(timeout));
    if (step !== 'tick') return step;
    if (!(await renew())) return 'stopped';
  }
}
