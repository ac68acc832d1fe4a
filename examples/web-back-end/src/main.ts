import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { Fleet } from '@shellfleet/client';
import { type Reading, read } from './reader.ts';
import { createBackEnd } from './server.ts';

// Two independent back ends, one run, and three readers of that run. The first reader stays connected, the second one
// leaves and comes back to the other back end, and the third one comes after the end of the run. In the end all readers
// have the same text.

const { values } = parseArgs({
  options: {
    serve: { type: 'string' },
    lines: { type: 'string', default: '100' },
    help: { type: 'boolean', default: false },
  },
});
const usage = `main.ts [--lines N]   a run of N lines with three readers (default: 100)
main.ts --serve PORT  serves, until it is interrupted`;

async function main(): Promise<number> {
  if (values.help) return say(usage);
  await using fleet = await Fleet.connect();
  if (values.serve !== undefined) return serve(fleet, Number(values.serve));

  await using first = await listen(createBackEnd(fleet));
  await using second = await listen(createBackEnd(fleet));
  const lines = Number(values.lines);
  const script = `for i in $(seq ${lines}); do echo "line $i"; sleep 0.05; done`;
  const started = await fetch(`${first.url}/runs`, { method: 'POST', body: script });
  const { id } = (await started.json()) as { id: string };
  const path = `/runs/${encodeURIComponent(id)}/events`;

  const [steady, { reading: coming, visits }] = await Promise.all([
    read(first.url + path),
    comeAndGo([first.url + path, second.url + path]),
  ]);
  const late = await read(second.url + path);
  const wanted = Array.from({ length: lines }, (_, index) => `line ${index + 1}\n`).join('');
  const readers = { steady, coming, late };
  for (const [name, { text, end }] of Object.entries(readers))
    say(`${name}: ${text === wanted ? 'every line once' : 'NOT every line once'}, and the end: ${end?.outcome}`);
  say(`The one that came and went did so ${visits} times.`);
  return Object.values(readers).every(({ text, end }) => text === wanted && end?.outcome === 'success') ? 0 : 1;
}

/** Reads three events at a time, each time from the other back end, until the run has ended. */
async function comeAndGo(urls: string[]): Promise<{ reading: Reading; visits: number }> {
  let reading: Reading | undefined;
  for (let visits = 0; ; visits += 1) {
    reading = await read(urls[visits % urls.length] as string, reading, 3);
    if (reading.end !== undefined) return { reading, visits: visits + 1 };
  }
}

async function listen(server: Server, port = 0): Promise<AsyncDisposable & { url: string }> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: stop };
}

async function serve(fleet: Fleet, port: number): Promise<number> {
  await using server = await listen(createBackEnd(fleet), port);
  say(`Serving at ${server.url}`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  return 0;
}

function say(line: string): number {
  console.log(line);
  return 0;
}

process.exitCode = await main();
