import { LIMITS, type SessionKeys, type StdinSource } from '@shellfleet/protocol';
import type { InputContext } from './send-input.ts';
import { type InputCall, type InputPlace, sendInput, toWrites } from './send-input.ts';

// STDIN-STREAM-1. While it streams, its submitter is heard at least every second; a host that misses it for long enough stops the command.
// STDIN-STREAM-2. Each chunk names its offset, so that none is put behind a gap that Redis left.
// STDIN-STREAM-3. What is read of the source is bounded: a chunk is asked for when the one before is stored.

const RENEW_EVERY_MS = 1_000;

/** Sends all of the source to the command, then its end. Resolves when that is done, or nobody wants it any more; never rejects. */
export async function streamStdin(
  context: InputContext,
  keys: SessionKeys,
  entryId: string,
  source: StdinSource,
): Promise<void> {
  const place: InputPlace = { context, keys, entryId, patienceMs: Number.POSITIVE_INFINITY };
  const iterator = toIterator(source);
  let offset = 0;
  /** False: the command has no use for more. */
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
      const step = await renewing(() => send({}), iterator.next());
      if (step === 'stopped') return;
      if (step === 'failed') return void (await send({ closes: 'broken' }));
      if (step.done === true) return void (await send({ closes: 'end' }));
      if (!isPiece(step.value)) return void (await send({ closes: 'broken' }));
      for (const bytes of toWrites(step.value)) if (!(await send({ bytes }))) return;
    }
  } catch {
    // This process has closed its connection: its lease runs out, and the host says so.
  } finally {
    // A source that waits for its next piece answers when that comes, or never.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

function toIterator(source: StdinSource): Iterator<Uint8Array | string> | AsyncIterator<Uint8Array | string> {
  return Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
}

function isPiece(value: unknown): boolean {
  return typeof value === 'string' || value instanceof Uint8Array;
}

type Step = IteratorResult<Uint8Array | string>;

/** Waits for a piece of the source, and is heard meanwhile. */
async function renewing(
  renew: () => Promise<boolean>,
  piece: Step | Promise<Step>,
): Promise<Step | 'stopped' | 'failed'> {
  const next = Promise.resolve(piece).catch(() => 'failed' as const);
  for (;;) {
    const timer = Promise.withResolvers<'tick'>();
    const timeout = setTimeout(() => timer.resolve('tick'), RENEW_EVERY_MS).unref();
    const step = await Promise.race([next, timer.promise]).finally(() => clearTimeout(timeout));
    if (step !== 'tick') return step;
    if (!(await renew())) return 'stopped';
  }
}
