import { setTimeout as delay } from 'node:timers/promises';
import { isShellfleetError, type Result } from '@shellfleet/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnSentinels, startOwnSentinels } from '../support/own-sentinel.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when the primary of a Redis with sentinels dies, the fleet goes on with the promoted replica. Every command of a caller ends once
// or its caller is told, no command runs twice, and shells keep their state.

const SESSIONS = 4;
const COMMANDS = 25;

let own: OwnSentinels;
let stack: TestFleet;
let inspect: FleetInspector;

beforeEach(async () => {
  own = await startOwnSentinels('--appendonly', 'yes');
  ({ stack, inspect } = await startInspectedFleet({ redisUrl: own.url }));
});
afterEach(() => endInspectedFleet(stack, inspect).finally(() => own[Symbol.asyncDispose]()));

test('the primary is killed under load: sessions go on with the promoted replica, nothing runs twice, losses are reported', async () => {
  const ids = Array.from({ length: SESSIONS }, (_, index) => `load-${index}`);
  let ended = 0;
  const load = ids.map(async (id) => {
    const session = await stack.fleet.session(id);
    const outcomes: (Result | Error)[] = [];
    for (let index = 0; index < COMMANDS; index += 1) {
      const script = `echo ${index} >> /tmp/ran; echo ${index}; sleep 0.05`;
      const outcome: Result | Error = await session.run(script).catch((error) => error);
      outcomes.push(outcome);
      ended += 1;
      if (isShellfleetError(outcome) && outcome.retryable) await delay(500);
    }
    return outcomes;
  });
  await until(
    () => ended,
    (count) => count > SESSIONS * 3,
  );
  await own.primary.kill();
  const outcomes = await Promise.all(load);
  expect(await own.replica.redis.info('replication')).toContain('role:master');
  for (const [index, id] of ids.entries()) {
    const session = await stack.fleet.session(id);
    const ran = (await session.run('cat /tmp/ran')).stdout.trim().split('\n').map(Number);
    const ended = (outcomes[index] ?? []).map((outcome) => ('outcome' in outcome ? outcome : undefined));
    const succeeded = ended.flatMap((result, number) => (result?.outcome === 'success' ? [number] : []));
    const wrong = ended.filter((result, number) => result?.outcome === 'success' && result.stdout !== `${number}\n`);
    expect({
      twice: ran.filter((number, at) => ran.indexOf(number) !== at),
      notRun: succeeded.filter((number) => !ran.includes(number)),
      wrong,
      broken: await inspect.broken(id),
    }).toEqual({ twice: [], notRun: [], wrong: [], broken: [] });
    expect(succeeded.length).toBeGreaterThan(COMMANDS / 2);
  }
});
