import { expect, test } from 'vitest';
import { startFleet } from '../support/start-fleet.ts';

test("a start that fails inside the keeper: the reason is in the worker's log, and no secret is", async () => {
  await using stack = await startFleet();
  const session = await stack.fleet.session('no-shell', { shell: ['/bin/false'] });
  expect(await session.run('echo precious', { env: { SECRET: 'hunter2' } })).toMatchObject({
    outcome: 'error',
    error: { code: 'SESSION_START_FAILED' },
  });
  const lines = (stack.workers[0]?.log ?? '').split('\n').filter((line) => line.includes('"keeper.reported"'));
  const messages = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(messages[0]).toMatchObject({
    level: 'warn',
    'shellfleet.session.id': 'no-shell',
    'container.id': expect.any(String),
    message: 'the shell /bin/false ended with status 1 before it was ready',
  });
  expect(lines.join('\n')).not.toMatch(/precious|hunter2|SECRET|SF_TOKEN=/);
  await session.close();
});
