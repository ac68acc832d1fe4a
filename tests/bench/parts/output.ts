import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';

/** Megabytes per second of processor time, by what flows. */
export interface OutputFigures {
  /** a command's whole chain (decode, redact, count, cut, release) with all built-in rules */
  chain: Record<string, number>;
  /** text that is built to make redaction slow */
  hostile: Record<string, number>;
}

/** Each in a process of its own, because the code of this one is compiled for other work. */
export async function measureOutput(): Promise<OutputFigures> {
  const chain = ratesOf(await runBench('apps/worker/src/output/output-chain.bench.ts', 'all built-in rules'));
  const hostile: Record<string, number> = {};
  for (const name of ['bearer headers', 'URLs side by side', 'cards with spaces'])
    Object.assign(hostile, ratesOf(await runBench('libs/policy/src/redaction/hostile.bench.ts', name)));
  return { chain, hostile };
}

/** Lines of `NAME: 12 MB/s [11–13]`, or of a rate and a name. */
export function ratesOf(text: string): Record<string, number> {
  const found = text.split('\n').flatMap((line): [string, number][] => {
    const [, name, rate] = /^(.+): ([\d.]+) MB\/s /.exec(line) ?? [];
    const [, bare, named] = /^ *([\d.]+) {2}(.+)$/.exec(line) ?? [];
    if (name !== undefined) return [[name, Number(rate)]];
    return named !== undefined ? [[named, Number(bare)]] : [];
  });
  if (found.length === 0) throw new Error(`no rate was measured: ${text}`);
  return Object.fromEntries(found);
}

async function runBench(file: string, name: string): Promise<string> {
  const args = ['--conditions=@shellfleet/source', '--no-warnings', join(checkoutRoot, file), name];
  return (await promisify(execFile)(process.execPath, args)).stdout;
}
