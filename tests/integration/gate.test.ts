import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli } from '../support/run-cli.ts';
import { until } from '../support/until.ts';

let stage: ClientStage;
beforeAll(async () => {
  stage = await setClientStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

describe('a host with less free memory than its operator demands', () => {
  test('leaves a session to a host with room, and says why', async () => {
    await stage.startHost({ id: 'short', env: { SHELLFLEET_MIN_FREE_MEMORY: String(2 ** 50) } });
    const fleet = await stage.connect();
    const session = await fleet.session('waits');
    const command = await session.submit('echo ran');
    const why = /^The memory of the host has \d+ MiB free of \d+ MiB; SHELLFLEET_MIN_FREE_MEMORY is 1073741824 MiB\.$/;
    const [host] = await until(
      () => fleet.hosts(),
      ([found]) => found?.gate?.refusal !== null,
    );
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(host).toMatchObject({ id: 'short', state: 'up', free: 100, problems: [expect.stringMatching(why)] });
    expect(host?.gate).toMatchObject({
      ...{ reason: expect.stringMatching(why), refusal: { at, reason: expect.stringMatching(why) }, opening: 0 },
      freeMemoryBytes: expect.any(Number),
    });
    expect(await session.info()).toMatchObject({
      state: 'queued',
      noHostReason: expect.stringContaining('takes sessions now: The memory of the host has'),
    });
    const [row] = (await runCli(stage, ['hosts', 'ls', '--json'])).stdout.toString().split('\n');
    expect(JSON.parse(row ?? '')).toMatchObject({ gate: { reason: expect.stringMatching(why) } });
    expect((await runCli(stage, ['hosts', 'ls'])).stdout.toString()).toMatch(
      /^HOST .* LAST REFUSED .*\nshort +up +100\/100 .*Z +The memory of the host has .*\n$/,
    );
    await stage.startHost({ id: 'roomy' });
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'ran\n' });
    expect(await session.info()).toMatchObject({ hostId: 'roomy' });
  });
});
