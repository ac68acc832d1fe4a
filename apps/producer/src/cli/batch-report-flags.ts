import { constants, statSync } from 'node:fs';
import { access, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { readBatchResults, ShellfleetError, writeBatchReport } from '@shellfleet/client';
import { Option } from 'commander';
import type { CliOutput } from './terminal.ts';

export interface ReportFlags {
  report?: string;
  compare?: string;
}

interface ResultFlags extends ReportFlags {
  out: string;
  junit?: string;
}

/** Flags of the verbs that write results. Each has an environment variable. */
export function reportOptions(): Option[] {
  return [
    new Option('--report <file>', 'write a report as one file of HTML, at the end').env('SHELLFLEET_BATCH_REPORT'),
    new Option('--compare <file>', 'with --report: the results of an earlier run, to compare with').env(
      'SHELLFLEET_BATCH_COMPARE',
    ),
  ];
}

/**
 * Refuses, before hours of work, an earlier run that no report would show or that has no results, a file that cannot
 * be written at the end, and files that would replace each other.
 */
export async function refuseReport({ out, junit, report, compare }: ResultFlags): Promise<void> {
  if (compare !== undefined) await refuseComparison(compare, report);
  if (report !== undefined) await refuseUnwritable('--report', report);
  if (junit !== undefined) await refuseUnwritable('--junit', junit);
  const paths = { '--out': out, 'the manifest of --out': `${out}.batch`, '--junit': junit, '--report': report };
  const names = new Map<string, string>();
  for (const [name, path] of Object.entries({ ...paths, '--compare': compare })) {
    if (path === undefined || isSpecial(path)) continue;
    const real = await realPathOf(path);
    const other = names.get(real);
    if (other !== undefined)
      throw invalid(`${name} and ${other} are the same file, ${path}: one would replace the other.`, path);
    names.set(real, name);
  }
}

async function refuseComparison(compare: string, report: string | undefined): Promise<void> {
  if (report === undefined) throw invalid('--compare needs --report, which shows the comparison.', compare);
  const found = statSync(compare, { throwIfNoEntry: false });
  if (found?.isFile() !== true) throw invalid(`${compare}, which --compare names, is not a file.`, compare);
  if (found.size === 0) return;
  for await (const _ of readBatchResults(compare)) return;
  throw invalid(`${compare}, which --compare names, has no results of a batch.`, compare);
}

async function refuseUnwritable(flag: string, path: string): Promise<void> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) throw invalid(`${path}, which ${flag} names, is a directory.`, path);
  try {
    await access(isSpecial(path) ? path : dirname(path), constants.W_OK);
  } catch (error) {
    throw invalid(`${path}, which ${flag} names, cannot be written: ${(error as Error).message}.`, path);
  }
}

/** Tells whether a path is a pipe or a device, which is written to but not read again. */
export const isSpecial = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === false;

/** Returns the error of a flag that reads what a pipe or a device does not keep. */
export function needsFile(flag: string, out: string): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', `${flag} reads ${out} at the end, so --out must name a file.`, {
    path: out,
  });
}

/** Returns the path without links, also of a file that does not exist yet. */
async function realPathOf(path: string): Promise<string> {
  const directory = async () => join(await realpath(dirname(path)).catch(() => resolve(dirname(path))), basename(path));
  return realpath(path).catch(directory);
}

const invalid = (message: string, path: string) => new ShellfleetError('COMMAND_INVALID', message, { path });

/** Writes the report about a file of results, if one is wanted. */
export async function writeReport(terminal: CliOutput, out: string, { report, compare }: ReportFlags): Promise<void> {
  if (report === undefined) return;
  await writeBatchReport({ results: out, report, compareWith: compare });
  terminal.say(`The report is in ${report}.`);
}
