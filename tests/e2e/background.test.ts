import { expect, test } from 'vitest';
import { startFleet } from '../support/start-fleet.ts';

test('lists what runs in the background of a session, and nothing once it has ended', async () => {
  await using stage = await startFleet();
  const session = await stage.fleet.session('listed');
  const { stdout } = await session.run('sleep 1000 & echo $!');
  const pid = Number(stdout);
  expect((await session.info()).background).toEqual([{ pid, command: 'sleep 1000' }]);
  await session.run(`kill ${pid}; wait`);
  expect((await session.info()).background).toEqual([]);
});
