import type { ShellfleetError, ToolWait } from '@shellfleet/client';
import type { CliOutput } from './terminal.ts';
import { noHostError, patienceOf } from './watch-waiting.ts';

interface Options {
  /** `--start-deadline` of the call. */
  startDeadlineMs: number | undefined;
  /** Called when for too long no live host could take the call. */
  onHopeless(reason: ShellfleetError): void;
}

/**
 * Reports on stderr, after two seconds and once for each message, why a tool call does not start. Gives up, like the
 * wait of a command, when no live host can take the call.
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
