import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli } from '../support/run-cli.ts';

// What a reader without the fleet's seal key, such as a dashboard, can see.

let stage: ClientStage;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  const fleet = await stage.connect();
  await (await fleet.session('seen', { labels: { team: 'a' } })).run('echo shown');
});
afterAll(() => stage[Symbol.asyncDispose]());

const NO_KEY = /This needs the seal key of the fleet, and none is configured; .* Set SHELLFLEET_SEAL_KEY/;

describe('a client without the seal key', () => {
  test('reads sessions, hosts, the queue and output', async () => {
    const env = { SHELLFLEET_SEAL_KEY: '' };
    const rows = await runCli(stage, ['ps', '--json'], { env });
    expect(JSON.parse(rows.stdout.toString())).toMatchObject({ id: 'seen', state: 'ready', labels: { team: 'a' } });
    for (const [args, shown] of [
      [['hosts', 'ls'], 'docker'],
      [['queue'], 'POSITION'],
      [['logs', 'seen'], 'shown'],
    ] as const) {
      const { exitCode, stdout, stderr } = await runCli(stage, args, { env });
      expect({ exitCode, stderr: stderr.replace(/^shellfleet: 0 sessions.*\n/, '') }).toEqual({
        exitCode: 0,
        stderr: '',
      });
      expect(stdout.toString()).toContain(shown);
    }
  });

  test('reports that a call needs the key, and submits nothing', async () => {
    const env = { SHELLFLEET_SEAL_KEY: '' };
    const run = await runCli(stage, ['exec', 'never', '--', 'true'], { env });
    expect(run).toMatchObject({ exitCode: 125, stderr: expect.stringMatching(NO_KEY) });
    const fleet = await stage.connect({ sealKeys: undefined });
    await expect(fleet.session('never')).rejects.toMatchObject({
      code: 'SEAL_KEY_UNKNOWN',
      message: expect.stringMatching(NO_KEY),
    });
    const seen = await fleet.attach('seen');
    await expect(seen?.submit('true')).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
    expect(await seen?.info()).toMatchObject({ id: 'seen', backgroundUnknown: true });
    expect(await fleet.attach('never')).toBeUndefined();
  });
});
