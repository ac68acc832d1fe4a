import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import type { Ratio } from '../measure/spread.ts';

/** Megabytes per second of processor time, by the kind of text: the median and the range over rounds. */
export type Rates = Record<string, Ratio>;

export interface OutputFigures {
  /** a command's whole chain (decode, redact, count, cut, release) with all built-in rules */
  chain: Rates;
  /** text that is built to make redaction slow */
  hostile: Rates;
}

/** Measures each program in its own process, because this process has compiled its code for other work. */
export async function measureOutput(): Promise<OutputFigures> {
  const chain = ratesOf(await runBench('apps/worker/src/output/output-chain.bench.ts', 'all built-in rules'));
  const hostile: Rates = {};
  for (const name of ['bearer headers', 'URLs side by side', 'cards with spaces'])
    Object.assign(hostile, ratesOf(await runBench('libs/policy/src/redaction/hostile.bench.ts', name)));
  return { chain, hostile };
}

/** Reads rates from lines such as `NAME: 12 MB/s [11–13]`. */
export function ratesOf(text: string): Rates {
  const found = text.split('\n').flatMap((line): [string, Ratio][] => {
    const [, name, ...rates] = /^(.+): ([\d.]+) MB\/s \[([\d.]+)–([\d.]+)\]$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, toRate(rates)]];
  });
  if (found.length === 0) throw new Error(`no rate was measured: ${text}`);
  return Object.fromEntries(found);
}

function toRate(texts: string[]): Ratio {
  const [value = Number.NaN, min = Number.NaN, max = Number.NaN] = texts.map(Number);
  return { value, min, max };
}

async function runBench(file: string, name: string): Promise<string> {
  const args = ['--conditions=@shellfleet/source', '--no-warnings', join(checkoutRoot, file), name];
  return (await promisify(execFile)(process.execPath, args)).stdout;
}
