import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { untilFound } from '../support/until.ts';

// Colours and progress are for a person at a terminal. Without a host the command waits, so its progress is shown.

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

/** Submits a command that waits, interrupts it when its progress was shown, or could have been, and leaves. */
async function runWaiting(session: string, env: Record<string, string>, progress: boolean): Promise<string> {
  const { shown } = await cli.atTerminal(
    ['exec', session, '--', 'true'],
    async (type, untilShown) => {
      await untilSubmitted(session);
      // Progress comes after 0.5 s without output.
      if (progress) await untilShown('queued');
      else await pause(1_500);
      type('\u0003');
      await untilShown('Cancelling');
    },
    { env },
  );
  return shown;
}

test.each([
  ['a terminal', { TERM: 'xterm' }, { color: true, progress: true }],
  ['NO_COLOR', { TERM: 'xterm', NO_COLOR: '1' }, { color: false, progress: true }],
  ['CI', { TERM: 'xterm', CI: '1' }, { color: false, progress: false }],
])('%s: %j', async (name, env, expected) => {
  const shown = await runWaiting(name.replaceAll(' ', '-'), env, expected.progress);
  expect({ color: shown.includes(COLOR), progress: shown.includes(CLEAR_LINE) }).toEqual(expected);
  expect(shown.includes('queued')).toBe(expected.progress);
});

test('into a pipe neither colours nor progress', async () => {
  const { child, output, end } = cli.start(['exec', 'piped', '--', 'true'], { env: { TERM: 'xterm' } });
  await untilSubmitted('piped');
  await pause(1_500);
  child.kill('SIGINT');
  await end;
  expect(output().stderr).toMatch(/^shellfleet: Cancelling /m);
  expect(output().stderr).not.toContain('\u001b');
});
