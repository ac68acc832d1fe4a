// A command outside the sandbox has what the session's shell exports, whole, however its bytes arrive.
import { randomBytes } from 'node:crypto';
import { LiveShell, readSurroundings } from '@shellfleet/worker/test-support';
import { expect, test } from 'vitest';
import { openBox } from '../support/shell-box.ts';

test('variables that come in many reads of the socket are all there', async () => {
  await using it = await openBox({ transport: 'socket' });
  const exported = Object.fromEntries([1, 2, 3, 4].map((n) => [`BIG_${n}`, randomBytes(40_000).toString('hex')]));
  for (const [name, value] of Object.entries(exported)) await it.client.run(`export ${name}=${value}`);
  it.client.shell.disconnect();
  const live = new LiveShell(await it.box.connect(), { onLate() {}, onShell() {}, onGone() {} });
  const shell = { live, recordShell() {} } as unknown as Parameters<typeof readSurroundings>[0];
  for (let time = 0; time < 10; time++) {
    const { env } = await readSurroundings(shell, 'a-session');
    expect(env).toMatchObject(exported);
  }
});
