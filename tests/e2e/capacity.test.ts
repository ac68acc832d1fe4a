import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 4 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('a fleet beyond its capacity', () => {
  test('queues ten times as many sessions as slots, and loses or doubles no command', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `over-${index}`);
    const spec = { limits: { memoryBytes: 64 * 2 ** 20 } };
    const results = await Promise.all(
      ids.map(async (id) => {
        const session = await stack.fleet.session(id, spec);
        const own = await Promise.all([session.run('n=1'), session.run('echo $((n + 1))')]);
        await session.close();
        return own;
      }),
    );
    expect(results.map(([, second]) => second?.stdout)).toEqual(ids.map(() => '2\n'));
    await using inspector = inspectFleet(stack);
    const broken = await Promise.all(
      ids.map((id, index) =>
        inspector.broken(
          id,
          results[index]?.map(({ commandId }) => commandId),
        ),
      ),
    );
    expect(broken.flat()).toEqual([]);
    await until(
      async () => (await stack.fleet.hosts())[0]?.free,
      (free) => free === 4,
    );
    await expect.poll(() => inspector.containers()).toEqual([]);
  });

  test('runs 5,000 commands of one session in order when all are submitted without waiting', async () => {
    const session = await stack.fleet.session('many');
    const commands = await Promise.all(
      Array.from({ length: 5_000 }, (_, index) => session.submit(`[ "$((n += 1))" = ${index + 1} ]`)),
    );
    const results = await Promise.all(commands.map((command) => command.result()));
    expect(results.filter(({ outcome }) => outcome !== 'success')).toEqual([]);
    expect(new Set(results.map(({ commandId }) => commandId)).size).toBe(5_000);
    expect((await session.run('echo $n')).stdout).toBe('5000\n');
  });

  test('shows any number of readers the same output, whether they start early or late', async () => {
    const session = await stack.fleet.session('readers');
    const command = await session.submit('seq 1 20000; sleep 0.3; seq 20001 40000');
    const others = await Promise.all([1, 2].map(() => stack.connect()));
    const read = async (fleet = stack.fleet) => {
      let text = '';
      for await (const chunk of (await fleet.command(command.id)).output()) text += chunk.text;
      return text;
    };
    const early = Array.from({ length: 18 }, (_, index) => read(others[index % 2]));
    const { outcome } = await command.result();
    const whole = Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join('');
    const texts = [...(await Promise.all(early)), await read(), await read(others[0])];
    expect({ outcome, same: texts.map((text) => text === whole) }).toEqual({
      outcome: 'success',
      same: Array(20).fill(true),
    });
  });
});
