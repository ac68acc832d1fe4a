import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Fleet } from '@shellfleet/client';
import { fetchTarballs } from './fetch-tarballs.ts';
import { startOwnFleet } from './own-fleet.ts';
import { readPackages } from './packages.ts';
import { describeResult, describeTotals } from './report.ts';
import { toTask } from './task.ts';

// Unpacks and exercises twenty npm packages, each in a session of its own without a network. The tarballs are fetched
// here, on the host. There are fewer slots than packages, so most tasks first wait in the queue.

const usage = `npm run example -- [--own] [--break NAME]
  --own         start a private fleet for this run (Redis and one worker with 4 slots) instead of using the running one
  --break NAME  empty the source files of that package before it is exercised, to see a task fail`;

async function main(): Promise<number> {
  const { own, broken, help } = readOptions();
  if (help) return say(usage, 0);
  const packages = await readPackages();
  if (broken !== undefined && !packages.some(({ name }) => name === broken))
    return say(`--break: ${broken} is none of ${packages.map(({ name }) => name).join(', ')}`, 2);

  await using directory = await temporaryDirectory();
  console.log(`Fetching ${packages.length} packages with npm`);
  const tarballs = await fetchTarballs(packages, directory.path);

  await using ownFleet = own ? await startOwnFleet(join(directory.path, 'fleet')) : undefined;
  await using fleet = await Fleet.connect(ownFleet?.connection ?? {});
  const slots = (await fleet.hosts()).reduce((sum, host) => sum + host.slots, 0);
  console.log(`Exercising them on ${slots} slots`);

  const startedAt = performance.now();
  const versions = new Map(packages.map(({ name, version }) => [name, version]));
  const tasks = packages.map((item) => toTask(item, tarballs, item.name === broken));
  const batch = fleet.batch(tasks, { concurrency: tasks.length });
  for await (const result of batch) console.log(describeResult(result, versions.get(result.id) ?? ''));
  console.log(describeTotals(batch.totals, performance.now() - startedAt));
  return batch.totals.success === tasks.length ? 0 : 1;
}

function readOptions(): { own: boolean; broken: string | undefined; help: boolean } {
  const options = { own: { type: 'boolean' }, break: { type: 'string' }, help: { type: 'boolean' } } as const;
  const { own = false, break: broken, help = false } = parseArgs({ options }).values;
  return { own, broken, help };
}

async function temporaryDirectory(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'npm-packages-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function say(line: string, exitCode: number): number {
  console.error(line);
  return exitCode;
}

try {
  process.exitCode = await main();
} catch (error) {
  // Messages of the fleet and of npm are written for the user; a stack would hide them.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
