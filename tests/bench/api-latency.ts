import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Result } from '@shellfleet/client';
import { startApiStage } from './api/start-api-stage.ts';
import { percentile, toSpread } from './measure/spread.ts';

// `npm run api-latency`: the time of `echo hi` in an open session, from the call to the Result, through the SDK and
// through the HTTP API. The two take turns, so that both have the same noise. Client, server, worker and Redis are
// processes of their own; the client of HTTP is the one of Node, with one connection that stays open.

const ROUNDS = 9;
const COMMANDS = 200;
const WARM_UP = 300;
/** Rest after a command, in which the worker stores what nobody waits for. */
const REST_MS = 2;
const SHARES = [0.5, 0.95] as const;
const SCRIPT = 'echo hi';

await using stage = await startApiStage();
const { fleet, api, caller } = stage;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const session = await fleet.session('s');

const ways = {
  SDK: async () => session.run(SCRIPT),
  HTTP: async () => {
    const sent = request(`${api.url}/v1/sessions/s/commands`, {
      ...{ method: 'POST', agent },
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', prefer: 'wait=30' },
    });
    sent.end(JSON.stringify({ script: SCRIPT }));
    const body = await new Promise<string>((resolve, reject) => {
      sent.once('error', reject).once('response', (reply) => text(reply).then(resolve, reject));
    });
    return JSON.parse(body) as Result;
  },
};
type Way = keyof typeof ways;
const NAMES = Object.keys(ways) as Way[];

async function measure(way: Way): Promise<number> {
  const from = performance.now();
  const { stdout } = await ways[way]();
  const ms = performance.now() - from;
  if (stdout !== 'hi\n') throw new Error(`${way}: the command printed ${stdout}`);
  await delay(REST_MS);
  return ms;
}

/** Measures one round, and returns the percentiles of each way. */
async function measureRound(commands: number): Promise<Record<Way, number[]>> {
  const times: Record<Way, number[]> = { SDK: [], HTTP: [] };
  for (let turn = 0; turn < commands; turn++)
    for (const way of turn % 2 === 0 ? NAMES : NAMES.toReversed()) times[way].push(await measure(way));
  return {
    SDK: SHARES.map((share) => percentile(times.SDK, share)),
    HTTP: SHARES.map((share) => percentile(times.HTTP, share)),
  };
}

await measureRound(WARM_UP);
const rounds: Record<Way, number[]>[] = [];
for (let round = 0; round < ROUNDS; round++) rounds.push(await measureRound(COMMANDS));

const show = (values: readonly number[]) => {
  const { median, min, max } = toSpread(values);
  return `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
};
console.log(`ms: median of ${ROUNDS} rounds of ${COMMANDS} commands each (least–most)`);
for (const [index, share] of SHARES.entries()) {
  const [sdk, http] = NAMES.map((way) => rounds.map((round) => round[way][index] ?? Number.NaN)) as [
    number[],
    number[],
  ];
  const added = http.map((value, round) => value - (sdk[round] ?? Number.NaN));
  console.log(`p${100 * share}: SDK ${show(sdk)}, HTTP ${show(http)}, HTTP adds ${show(added)}`);
}
agent.destroy();
await session.close();
