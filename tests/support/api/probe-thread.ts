import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

// A client in a thread of its own, which a thousand readers in the main thread do not delay. It makes a request every
// now and then until it gets a message, and replies with the milliseconds of each.

const EVERY_MS = 50;
const { url, key } = workerData as { url: string; key: string };

let going = true;
parentPort?.once('message', () => {
  going = false;
});
const times: number[] = [];
while (going) {
  const from = performance.now();
  const reply = await fetch(`${url}/v1/sessions?limit=1`, { headers: { authorization: `Bearer ${key}` } });
  await reply.text();
  if (reply.status !== 200) throw new Error(`A request has the status ${reply.status}.`);
  times.push(performance.now() - from);
  await delay(EVERY_MS);
}
parentPort?.postMessage(times);
