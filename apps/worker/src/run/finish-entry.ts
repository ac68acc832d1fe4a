import { SpanKind, trace } from '@opentelemetry/api';
import {
  type AvailabilityListener,
  type Entry,
  type Fenced,
  type Finished,
  finish,
  notify,
  type Owner,
  retryWhileRedisIsDown,
  sealPlace,
} from '@shellfleet/mailbox';
import { ATTRIBUTES, ShellfleetError, SPANS, toCommandId, type WireResult } from '@shellfleet/protocol';
import { totalOf } from '../output/redactor.ts';
import { failedEntry } from './entry-frame.ts';
import type { Executed, RunDeps } from './run-deps.ts';

/** Records how an entry came out: once, whatever has to be tried again for it. The only place where one becomes terminal here. */
export async function finishEntry(entry: Entry, executed: Executed, deps: RunDeps): Promise<Finished | Fenced> {
  const { owner, sealer, signal, redaction } = deps;
  const { session } = owner.keys;
  let { result, output } = executed;
  const place = sealPlace('answer', owner.keys, entry.id);
  const answer = executed.answer === undefined ? {} : { answer: sealer.seal(executed.answer, place) };
  for (;;) {
    const call = () => {
      const takeNext = deps.mayTakeNext();
      return finish(owner, entry.id, {
        // Paths, scripts and what the shell said of itself: texts of the session that are no output.
        result: { ...result, ...redaction.value({ shell: result.shell, ...pick(result.error) }) },
        output,
        ...answer,
        epoch: result.shell.epoch,
        takeNext,
        inbox: entry.inbox,
      });
    };
    const finished = await retryWhileRedisIsDown(call, signal, { availability: pauseClocksWhileDown(deps) });
    if (finished.type === 'cancelled') {
      result = { ...result, outcome: 'cancellation', reason: 'cancelled' };
    } else if (finished.type === 'misplaced') {
      // An append whose reply was lost had arrived: what it stored is not sent again.
      const rest = output.filter((piece) => piece.rawFrom >= finished.offsets[piece.stream]);
      if (rest.length < output.length) output = rest;
      else {
        const message = `The output of ${session}.${entry.id} does not follow what is stored.`;
        ({ result, output } = failedEntry(entry, new ShellfleetError('INTERNAL', message), deps));
      }
    } else {
      if (finished.type === 'finished') {
        if (finished.endedBefore) tellProducer(entry, finished.event, owner);
        else describe(entry, result, deps);
      }
      return finished;
    }
  }
}

const pick = (error: WireResult['error']) => (error === undefined ? {} : { error });

/** The call that ended it may have told nobody. Only a hint, so nobody waits for it; which Result counts stands in the session. */
function tellProducer(entry: Entry, event: string, { redis, keys }: Owner): void {
  const { namespace, tenant, session } = keys;
  void notify(redis, namespace, entry.inbox, { tenant, session, entryId: entry.id, event, result: '' }).catch(() => {});
}

/** Stops the keeper's clocks while Redis is down and nothing can be stored. */
export function pauseClocksWhileDown({ shell }: RunDeps): AvailabilityListener {
  const say = (state: 'away' | 'back') => {
    if (shell.hasSandbox && shell.turns.connected) shell.turns.shell.storage(state);
  };
  return { onDown: () => say('away'), onUp: () => say('back') };
}

/** One wide line, and one span, for each entry. Never its text, nor its output. */
function describe(entry: Entry, result: WireResult, { owner, logger }: RunDeps): void {
  const { runMs } = result.timings;
  const attributes = {
    [ATTRIBUTES.sessionId]: owner.keys.session,
    [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id),
    [ATTRIBUTES.outcome]: result.outcome,
    [ATTRIBUTES.fence]: owner.fence,
    [ATTRIBUTES.hostId]: owner.host,
    [ATTRIBUTES.outputBytes]: result.totals.stdoutBytes + result.totals.stderrBytes,
    [ATTRIBUTES.outputRedactions]: totalOf(result.redactions),
    ...(result.exitCode === null ? {} : { [ATTRIBUTES.exitCode]: result.exitCode }),
    ...(result.error === undefined ? {} : { [ATTRIBUTES.errorType]: result.error.code }),
  };
  const endTime = Date.now();
  trace
    .getTracer('@shellfleet/worker')
    .startSpan(SPANS.run, { kind: SpanKind.CONSUMER, startTime: endTime - runMs, attributes })
    .end(endTime);
  if (result.outcome === 'error') logger.warn({ ...attributes, timings: result.timings }, 'command.completed');
  else logger.debug({ ...attributes, timings: result.timings }, 'command.completed');
}
