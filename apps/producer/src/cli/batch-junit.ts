import { type FileHandle, open } from 'node:fs/promises';
import { type Result, readBatchResults, type TaskResult, verdictOf } from '@shellfleet/client';

/** Most characters of a task's output in the file. Its end is kept. */
const MOST_OUTPUT = 8_192;

/** Writes the results of a batch as a file of JUnit, which CI systems show. It is read in bounded memory. */
export async function writeJunit(resultsPath: string, junitPath: string, name: string): Promise<void> {
  const counts = { tests: 0, failures: 0, errors: 0, skipped: 0, ms: 0 };
  for await (const result of readBatchResults(resultsPath)) {
    const verdict = verdictOf(result);
    counts.tests++;
    counts.ms += result.durationMs;
    if (verdict === 'failed') counts.failures++;
    if (verdict === 'infrastructure') counts.errors++;
    if (verdict === 'cancelled') counts.skipped++;
  }
  const { ms, ...numbers } = counts;
  const all = attributes({ name, ...numbers, time: toSeconds(ms) });
  await using file = await open(junitPath, 'w');
  await file.appendFile(`<?xml version="1.0" encoding="UTF-8"?>\n<testsuites${all}>\n<testsuite${all}>\n`);
  for await (const result of readBatchResults(resultsPath)) await writeCase(file, result, name);
  await file.appendFile('</testsuite>\n</testsuites>\n');
}

async function writeCase(file: FileHandle, result: TaskResult, batch: string): Promise<void> {
  const { id, durationMs } = result;
  const about = attributes({ classname: batch, name: id, time: toSeconds(durationMs) });
  await file.appendFile(`<testcase${about}>${describeEnd(result)}</testcase>\n`);
}

function describeEnd(result: TaskResult): string {
  const message = messageOf(result);
  const type = result.outcome;
  const text = escapeXml(outputOf(result));
  switch (verdictOf(result)) {
    case 'passed':
      return '';
    case 'failed':
      return `<failure${attributes({ message, type })}>${text}</failure>`;
    case 'infrastructure':
      return `<error${attributes({ message, type })}>${text}</error>`;
    case 'cancelled':
      return `<skipped${attributes({ message })}/>`;
  }
}

function messageOf({ outcome, endedIn, endedBy, error, grade, score, results, setup = [] }: TaskResult): string {
  if (error !== undefined) return `${error.code}: ${error.message}`;
  if (endedBy !== undefined) return `${outcome} (${endedBy})`;
  const graded = grade === undefined ? '' : `the grade ${describeEndOfGrade(grade)}, score ${score}`;
  if (outcome === 'success') return graded;
  const last = results.at(-1) ?? setup.at(-1);
  const exit = last?.exitCode === null || last === undefined ? '' : `, exit code ${last.exitCode}`;
  const ended = `${outcome}${endedIn === undefined ? '' : ` in ${endedIn}`}${exit}`;
  return grade === undefined ? ended : `${ended}; ${graded}`;
}

const describeEndOfGrade = ({ outcome }: Result) => (outcome === 'timeout' ? 'timed out' : 'did not pass');

/** Returns the end of the output of the script that did not succeed, and of the grade. */
function outputOf({ outcome, grade, results, setup = [] }: TaskResult): string {
  const last = results.at(-1) ?? setup.at(-1);
  const decisive = grade === undefined ? [last] : outcome === 'success' ? [grade] : [last, grade];
  return decisive.map((result) => (result?.output ?? '').slice(-MOST_OUTPUT)).join('');
}

const toSeconds = (ms: number) => (ms / 1_000).toFixed(3);

function attributes(values: Record<string, string | number>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');
}

/** Escapes a text for XML. Characters that XML cannot have, such as those that colour a terminal, become U+FFFD. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
