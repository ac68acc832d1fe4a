import { describe, expect, test } from 'vitest';
import { startFleet } from '../support/start-fleet.ts';

describe('the keeper', () => {
  test('reports a failed start to the worker’s log, without any secret', async () => {
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
});
