import { statSync } from 'node:fs';
import { ShellfleetError, writeBatchReport } from '@shellfleet/client';
import { Option } from 'commander';
import type { CliOutput } from './terminal.ts';

export interface ReportFlags {
  report?: string;
  compare?: string;
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

/** Refuses an earlier run that no report would show or that does not exist, before hours of work. */
export function refuseComparison({ compare, report }: ReportFlags): void {
  if (compare === undefined) return;
  if (report === undefined)
    throw new ShellfleetError('COMMAND_INVALID', '--compare needs --report, which shows the comparison.');
  if (statSync(compare, { throwIfNoEntry: false })?.isFile() === true) return;
  throw new ShellfleetError('COMMAND_INVALID', `${compare}, which --compare names, is not a file.`, { path: compare });
}

/** Writes the report about a file of results, if one is wanted. */
export async function writeReport(terminal: CliOutput, out: string, { report, compare }: ReportFlags): Promise<void> {
  if (report === undefined) return;
  await writeBatchReport({ results: out, report, compareWith: compare });
  terminal.say(`The report is in ${report}.`);
}
