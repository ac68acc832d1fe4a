import { glob, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { root } from './steps.ts';
import { readTestRecord, renderRecord } from './testing/test-record.ts';

// node scripts/test-times.ts [COUNT]: shows from the reports in .cache how the last `npm test` spent its time: its
// parts, processor time by cause, groups of tests, and the COUNT slowest files (20 by default), in seconds.

type File = { path: string; group: string; from: number; to: number };

async function main(count: number): Promise<void> {
  const files = await readFiles();
  if (files.length === 0) throw new Error('There is no report in .cache: run npm test first.');
  const record = await readTestRecord();
  if (record !== undefined) console.log(`${renderRecord(record)}\n`);
  const start = Math.min(...files.map(({ from }) => from));
  const seconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(7);
  console.log('  start     end     sum  files  group');
  for (const [group, own] of Map.groupBy(files, ({ group }) => group)) {
    const from = Math.min(...own.map(({ from }) => from)) - start;
    const to = Math.max(...own.map(({ to }) => to)) - start;
    const sum = own.reduce((all, { from, to }) => all + to - from, 0);
    console.log(`${seconds(from)} ${seconds(to)} ${seconds(sum)} ${String(own.length).padStart(6)}  ${group}`);
  }
  console.log('\n   time  file');
  for (const { path, from, to } of files.toSorted((a, b) => b.to - b.from - (a.to - a.from)).slice(0, count))
    console.log(`${seconds(to - from)}  ${path}`);
}

async function readFiles(): Promise<File[]> {
  const files: File[] = [];
  for await (const report of glob(['.cache/vitest.json', '.cache/unit/**/*.json'], { cwd: root })) {
    const { testResults } = JSON.parse(await readFile(join(root, report), 'utf8'));
    for (const { name, startTime, endTime } of testResults) {
      const path = relative(root, name);
      const [directory, group = ''] = path.split('/');
      files.push({ path, group: directory === 'tests' ? group : 'unit', from: startTime, to: endTime });
    }
  }
  return files;
}

await main(Number(process.argv[2] ?? 20));
