import type { ShellfleetError, ToolWait } from '@shellfleet/client';
import type { CliOutput } from './terminal.ts';
import { noHostError, patienceOf } from './watch-waiting.ts';

interface Options {
  /** `--start-deadline`, which the call itself has. */
  startDeadlineMs: number | undefined;
  /** No live host can take the call, for too long. */
  onHopeless(reason: ShellfleetError): void;
}

/**
 * Reports on stderr why a tool call does not start, once for each message. The first report comes when the call has
 * waited for two seconds. A wait that no live host can end ends as that of a command does.
 */
export function sayWhyItWaits(
  terminal: Pick<CliOutput, 'isTerminal' | 'say'>,
  name: string,
  { startDeadlineMs, onHopeless }: Options,
): (wait: ToolWait) => void {
  const startedAt = Date.now();
  const patienceMs = startDeadlineMs === undefined ? patienceOf(terminal, undefined) : Number.POSITIVE_INFINITY;
  let last: string | undefined;
  return ({ because, message }) => {
    if (message !== last) terminal.say(`${message} The call of ${name} waits until ${UNTIL[because]}.`);
    last = message;
    if (because === 'no-host' && Date.now() - startedAt >= patienceMs) onHopeless(noHostError(undefined, message));
  };
}

const UNTIL: Record<ToolWait['because'], string> = {
  'no-host': 'one can take it',
  busy: 'one has room',
  redis: 'Redis is back',
};
