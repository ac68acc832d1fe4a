import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskResult } from '@shellfleet/client';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { writeJunit } from './batch-junit.ts';

describe('a file of JUnit', () => {
  test('has each task with its verdict, and only characters that XML may have', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-junit-'));
    const base = { repeat: 1, sessionId: 's', attempts: 1, startedAt: '', durationMs: 1_500, outputBytes: 0 };
    const failed = { ...sampleResult('failure'), commandId: 's.1', output: 'red \u001b[31m <&> \u0000' };
    const timedOut = { ...sampleResult('timeout'), commandId: 's.2', output: ', hung' };
    const error = { code: 'IMAGE_UNAVAILABLE', message: 'no "x"', retryable: false };
    const results = [
      { ...base, id: 'a', task: 'a', passed: true, outcome: 'success', results: [] },
      { ...base, id: 'b', task: 'b', passed: false, outcome: 'failure', endedIn: 'script', results: [failed] },
      { ...base, id: 'c', task: 'c', passed: false, outcome: 'error', results: [], error },
      { ...base, id: 'd', task: 'd', passed: false, outcome: 'cancellation', endedBy: 'signal', results: [] },
      { ...base, id: 'e', task: 'e', passed: false, outcome: 'success', score: 0, results: [failed], grade: timedOut },
      {
        ...base,
        id: 'f',
        task: 'f',
        passed: false,
        outcome: 'failure',
        score: 0.5,
        results: [failed],
        grade: timedOut,
      },
    ] as TaskResult[];
    await writeFile(join(directory, 'out'), results.map((result) => `${JSON.stringify(result)}\n`).join(''));
    await writeJunit(join(directory, 'out'), join(directory, 'xml'), 'batch');
    const about = 'name="batch" tests="6" failures="3" errors="1" skipped="1" time="9.000"';
    const failure = `message="failure in script, exit code ${failed.exitCode}" type="failure"`;
    const hung = 'the grade timed out, score';
    expect((await readFile(join(directory, 'xml'), 'utf8')).split('\n')).toEqual([
      '<?xml version="1.0" encoding="UTF-8"?>',
      `<testsuites ${about}>`,
      `<testsuite ${about}>`,
      '<testcase classname="batch" name="a" time="1.500"></testcase>',
      `<testcase classname="batch" name="b" time="1.500"><failure ${failure}>red \ufffd[31m &lt;&amp;&gt; \ufffd</failure></testcase>`,
      '<testcase classname="batch" name="c" time="1.500"><error message="IMAGE_UNAVAILABLE: no &quot;x&quot;" type="error"></error></testcase>',
      '<testcase classname="batch" name="d" time="1.500"><skipped message="cancellation (signal)"/></testcase>',
      `<testcase classname="batch" name="e" time="1.500"><failure message="${hung} 0" type="success">, hung</failure></testcase>`,
      `<testcase classname="batch" name="f" time="1.500"><failure message="failure, exit code ${failed.exitCode}; ${hung} 0.5" type="failure">red \ufffd[31m &lt;&amp;&gt; \ufffd, hung</failure></testcase>`,
      '</testsuite>',
      '</testsuites>',
      '',
    ]);
    await rm(directory, { recursive: true });
  });
});
