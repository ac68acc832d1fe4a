import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { untilFound } from '../support/until.ts';

// Colours and progress are shown to a person at a terminal. Without a host the command waits, so that its progress is
// shown.

let stage: ClientStage;
let cli: FleetCli;
beforeAll(async () => {
  stage = await setClientStage();
  cli = new FleetCli({ redisUrl: stage.own.url, namespace: stage.namespace, sealKey: stage.sealKey });
});
afterAll(() => stage[Symbol.asyncDispose]());

const COLOR = '\u001b[2m';
const CLEAR_LINE = '\u001b[2K';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const untilSubmitted = (session: string) =>
  untilFound('it is submitted', async () => (await stage.keys()).some((key) => key.includes(`:${session}}:record:`)));

/** Submits a command that waits, interrupts it after the time at which progress is shown, and leaves. */
async function runWaiting(session: string, env: Record<string, string>, progress: boolean): Promise<string> {
  const { shown } = await cli.atTerminal(
    ['exec', session, '--', 'true'],
    async (type, untilShown) => {
      await untilSubmitted(session);
      // Progress is shown after 0.5 s without output.
      if (progress) await untilShown('queued');
      else await pause(1_500);
      type('\u0003');
      await untilShown('Cancelling');
    },
    { env },
  );
  return shown;
}

describe('`shellfleet exec` that waits', () => {
  test.each([
    ['a terminal', { TERM: 'xterm' }, { color: true, progress: true }],
    ['NO_COLOR', { TERM: 'xterm', NO_COLOR: '1' }, { color: false, progress: true }],
    ['CI', { TERM: 'xterm', CI: '1' }, { color: false, progress: false }],
  ])('adapts colours and progress to %s: %j', async (name, env, expected) => {
    const shown = await runWaiting(name.replaceAll(' ', '-'), env, expected.progress);
    expect({ color: shown.includes(COLOR), progress: shown.includes(CLEAR_LINE) }).toEqual(expected);
    expect(shown.includes('queued')).toBe(expected.progress);
  });

  test('shows neither colours nor progress in a pipe', async () => {
    const { child, output, end } = cli.start(['exec', 'piped', '--', 'true'], { env: { TERM: 'xterm' } });
    await untilSubmitted('piped');
    await pause(1_500);
    child.kill('SIGINT');
    await end;
    expect(output().stderr).toMatch(/^shellfleet: Cancelling /m);
    expect(output().stderr).not.toContain('\u001b');
  });
});
