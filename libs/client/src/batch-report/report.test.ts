import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Outcome, Result } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import type { TaskResult } from '../batch/task-result.ts';
import { ReportCollector } from './collect-report.ts';
import { causeOf, lastLinesOf } from './failure-cause.ts';
import { html, toScriptJson } from './html.ts';
import { ListedTasks } from './listed-tasks.ts';
import { renderPage } from './render-page.ts';
import { linkToTasks, readSelection, selectTasks } from './select-tasks.ts';
import { factsOf } from './task-facts.ts';
import { HostStays, TIMELINE_BINS } from './timeline.ts';
import { writeBatchReport } from './write-batch-report.ts';

const BEGIN = Date.parse('2026-01-01T00:00:00Z');
const at = (ms: number) => new Date(BEGIN + ms).toISOString();

function command(outcome: Outcome, own: Partial<Result> = {}): Result {
  return { ...sampleResult(outcome), commandId: 's.1', sessionId: 's', ...own } as Result;
}

/** Returns a command that waited for a slot, opened its shell and ran, from a time on. */
function commandAt(
  from: number,
  [slot, opening, running]: [number, number, number],
  own: Partial<Result> = {},
): Result {
  const ends = from + slot + opening + running;
  const timings = { queuedMs: slot, startMs: opening, runMs: running, totalMs: ends - from };
  const parts = [
    { step: 'slot' as const, ms: slot, clock: 'redis' as const },
    { step: 'opening' as const, ms: opening, clock: 'host' as const },
    { step: 'running' as const, ms: running, clock: 'host' as const },
  ];
  const times = {
    acceptedAt: at(from),
    startedAt: at(from + slot + opening),
    storedAt: at(ends),
    totalMs: ends - from,
  };
  return command('success', { hostId: 'h1', timings, receipt: { ...times, parts }, ...own });
}

function taskResult(own: Partial<TaskResult> = {}): TaskResult {
  return {
    ...{ id: 'task-7', task: 'task-7', repeat: 1, passed: false, outcome: 'failure', sessionId: 's', results: [] },
    ...{ attempts: 1, startedAt: at(0), durationMs: 1_000, outputBytes: 10, ...own },
  };
}

const failing = (own: Partial<Result>, task: Partial<TaskResult> = {}) =>
  taskResult({ results: [command('failure', own)], ...task });

describe('the facts of a task', () => {
  test('are the times of its commands, and a stay for each session on its host', () => {
    const results = [commandAt(0, [300, 100, 50]), commandAt(460, [0, 0, 40])];
    const grade = commandAt(600, [20, 80, 100], { sessionId: 's.g', hostId: 'h2' });
    expect(factsOf(taskResult({ passed: true, outcome: 'success', results, grade, score: 0.5 }))).toMatchObject({
      ...{ verdict: 'passed', score: 0.5, queueMs: 320, runMs: 190, restMs: 490, hostId: 'h2' },
      stays: [
        { hostId: 'h1', from: BEGIN + 300, to: BEGIN + 500 },
        { hostId: 'h2', from: BEGIN + 620, to: BEGIN + 800 },
      ],
    });
  });

  test('are those of the driver alone for a task that never came to a host', () => {
    expect(factsOf(taskResult({ outcome: 'error' }))).toMatchObject({
      ...{ verdict: 'infrastructure', queueMs: 0, runMs: 0, restMs: 1_000, hostId: undefined, stays: [] },
    });
  });
});

describe('the cause of a task that did not pass', () => {
  const error = { code: 'IMAGE_UNAVAILABLE', message: 'no image for task-7', retryable: false, context: {} } as const;
  test.each<[string, TaskResult, title: string, line: string]>([
    [
      'a failed script',
      failing({ exitCode: 3, output: 'a\nerror 17 at 0x7ffe12ab34\n' }),
      'Exit code 3 in script',
      'error # at #',
    ],
    ['its own name', failing({ output: 'cannot read task-7.json\n' }), 'Exit code 1 in script', 'cannot read ….json'],
    ['memory', failing({ reason: 'oom', output: '' }), 'Out of memory in script', ''],
    ['a signal', failing({ signal: 'SIGSEGV', output: '' }), 'Ended by SIGSEGV in script', ''],
    ['a setup', taskResult({ endedIn: 'setup', setup: [command('timeout')] }), 'Timeout in setup', ''],
    [
      'an error',
      taskResult({ outcome: 'error', endedIn: 'files', error }),
      'IMAGE_UNAVAILABLE in files',
      'no image for …',
    ],
    ['a lost host', taskResult({ outcome: 'lost', results: [command('lost')] }), 'Host lost in script', ''],
    [
      'a stop',
      taskResult({ outcome: 'cancellation', endedBy: 'failure' }),
      'Cancelled because another task did not pass',
      '',
    ],
    [
      'a deadline',
      failing({ output: '' }, { outcome: 'timeout', endedBy: 'deadline' }),
      'Stopped at the deadline of the task in script',
      '',
    ],
    ['rules', taskResult({ outcome: 'denial', results: [command('denial')] }), 'Denied by rules in script', ''],
    [
      'a grade with a score',
      taskResult({
        outcome: 'success',
        results: [command('success')],
        grade: command('success', { output: '3 wrong\n{"pass": false}\n' }),
      }),
      'The grade did not pass, exit code 0',
      '# wrong',
    ],
  ])('names %s, and the last line without details', (_, result, title, line) => {
    expect(causeOf(result)).toEqual({ title, line });
  });

  test('has the last lines without codes of a terminal and without control characters', () => {
    const output = `${'x\n'.repeat(100)}\u001b[31mred\u001b[0m\r\n\u0007bell \ud800\n\n`;
    expect(lastLinesOf(failing({ output }))).toBe(`${'x\n'.repeat(18)}red\n\ufffdbell \ufffd`);
    expect(lastLinesOf(failing({ output: `${'y'.repeat(9_000)}\n` }))).toHaveLength(1_500);
  });
});

describe('the timeline of a batch', () => {
  const stay = (hostId: string, from: number, to: number) => ({ hostId, from, to });
  const stays = new HostStays();
  stays.add({ verdict: 'passed', stays: [stay('h10', 0, 100)] }, 0);
  stays.add({ verdict: 'failed', stays: [stay('h10', 50, 150), stay('h2', 150, 200)] }, 1);
  stays.add({ verdict: 'passed', stays: [stay('h10', 100, 200)] }, 2);

  test('has a bar for each stay, in the first free lane of its host', () => {
    expect(stays.toTimeline()).toMatchObject({
      ...{ begin: 0, lengthMs: 200 },
      hosts: [
        { hostId: 'h2', stays: 1, most: 1, busyMs: 50, bars: [{ lane: 0, from: 150, to: 200, row: 1 }] },
        {
          ...{ hostId: 'h10', stays: 3, most: 2, busyMs: 300 },
          bars: [
            { lane: 0, from: 0, to: 100, verdict: 'passed', row: 0 },
            { lane: 1, from: 50, to: 150, verdict: 'failed', row: 1 },
            { lane: 0, from: 100, to: 200, verdict: 'passed', row: 2 },
          ],
        },
      ],
    });
  });

  test('has the load of each host when there are too many bars', () => {
    const [h2, h10] = stays.toTimeline(2)?.hosts ?? [];
    expect([h2?.bars, h10?.bars]).toEqual([undefined, undefined]);
    const meanOf = (load: number[] = []) => load.reduce((sum, value) => sum + value, 0) / TIMELINE_BINS;
    expect([meanOf(h2?.load), meanOf(h10?.load)]).toEqual([expect.closeTo(0.25), expect.closeTo(1.5)]);
    expect(h10?.load?.[TIMELINE_BINS / 2]).toBeCloseTo(2);
  });

  test('is undefined when no task was on a host', () => {
    expect(new HostStays().toTimeline()).toBeUndefined();
  });
});

describe('the tasks that a report lists', () => {
  const task = (id: string, verdict: 'passed' | 'failed', text?: string) => {
    const numbers = { startMs: 0, durationMs: 1, queueMs: 0, runMs: 1, outputBytes: 0, attempts: 1, cause: 0 };
    const rest = { hostId: 'h', cpuMs: null, peakMemoryBytes: null, score: null };
    return { id, task: id, verdict, ...numbers, ...rest, ...(text === undefined ? {} : { text }) };
  };

  test('are all up to a number, and above it the first that did not pass', () => {
    const listed = new ListedTasks(3);
    const add = (id: string, verdict: 'passed' | 'failed') => listed.add(task(id, verdict));
    for (const [id, verdict] of [
      ['a', 'passed'],
      ['b', 'failed'],
      ['c', 'passed'],
    ] as const)
      add(id, verdict);
    expect(listed.tasks.map((one) => one.task.id)).toEqual(['a', 'b', 'c']);
    for (const id of ['d', 'e', 'f', 'g']) add(id, 'failed');
    expect(listed.tasks.map((one) => [one.row, one.task.id])).toEqual([
      [1, 'b'],
      [3, 'd'],
      [4, 'e'],
    ]);
    expect([listed.count, listed.unpassed]).toEqual([7, 5]);
  });

  test('have their last lines until those are too many together', () => {
    const listed = new ListedTasks();
    for (let n = 0; n < 5; n++) listed.add(task(`t${n}`, 'failed', 'x'.repeat(2 ** 20)));
    expect(listed.tasks.map((one) => one.task.text?.length)).toEqual([2 ** 20, 2 ** 20, 2 ** 20, 2 ** 20, undefined]);
  });

  test('are selected and sorted, those without a value last', () => {
    const tasks = [
      { ...task('t10', 'failed'), score: 1 },
      { ...task('t2', 'failed'), score: null },
      { ...task('T1', 'passed'), score: 3, cause: -1 },
    ];
    const select = (link: string) => selectTasks(tasks, readSelection(link) as never).map((place) => tasks[place]?.id);
    expect(select(linkToTasks({ sort: 'id' }))).toEqual(['T1', 't2', 't10']);
    expect(select(linkToTasks({ sort: 'score', descending: true }))).toEqual(['T1', 't10', 't2']);
    expect(select(linkToTasks({ sort: 'score' }))).toEqual(['t10', 'T1', 't2']);
    expect(select(linkToTasks({ text: 't1' }))).toEqual(['t10', 'T1']);
    expect(select(linkToTasks({ cause: '0', verdict: 'failed', task: 't2' }))).toEqual(['t2']);
    expect(readSelection('#timeline')).toBeUndefined();
  });
});

describe('a report', () => {
  test('counts, groups by cause and compares repeats', () => {
    const collector = new ReportCollector(undefined);
    const repeat = (id: string, n: number, own: Partial<TaskResult>) =>
      collector.add({ ...failing({ output: `line ${n}\n` }), id: `${id}#${n}`, task: id, repeat: n, ...own });
    const passed = { passed: true, outcome: 'success' as const, results: [commandAt(0, [0, 0, 5])] };
    repeat('a', 1, passed);
    repeat('a', 2, {});
    repeat('b', 1, {});
    repeat('b', 2, { outcome: 'lost', results: [command('lost', { hostId: 'h9' })] });
    const { counts, causes, repeats, comparison, end } = collector.end();
    expect(counts).toEqual({ passed: 1, failed: 2, infrastructure: 1, cancelled: 0 });
    expect(end).toBe(BEGIN + 1_000);
    expect(comparison).toBeUndefined();
    expect(causes).toMatchObject([
      {
        ...{ index: 0, title: 'Exit code 1 in script', line: 'line #', count: 2 },
        samples: [{ id: 'a#2' }, { id: 'b#1' }],
      },
      { index: 1, title: 'Host lost in script', count: 1, hosts: new Map([['h9', 1]]) },
    ]);
    expect(repeats).toMatchObject({ consistency: { always: 0, sometimes: 1, never: 1 }, tasks: 2 });
    expect(repeats?.passAtK[0]).toEqual({ k: 1, estimate: 0.25, tasks: 2 });
  });

  test('escapes every text, also in its data', () => {
    expect(html`<p title="${'"\'<&>'}">${['<b>', html`<i>${1}</i>`, undefined]}</p>`.text).toBe(
      '<p title="&quot;&#39;&lt;&amp;&gt;">&lt;b&gt;<i>1</i></p>',
    );
    const hostile = '</script><!--<script>alert(1)</script>';
    expect(JSON.parse(toScriptJson(hostile).text)).toBe(hostile);
    const collector = new ReportCollector(undefined);
    collector.add(failing({ output: hostile, hostId: hostile }, { id: hostile, task: hostile }));
    const page = renderPage(collector.end(), { name: hostile, earlier: '', manifest: undefined });
    expect(page.match(/<script\b[^>]*>/g)).toEqual([
      '<script type="application/json" id="data">',
      '<script type="module">',
    ]);
    expect(page).not.toContain('alert(1)</script>');
  });

  test('says which tasks it does not list', () => {
    const collector = new ReportCollector(undefined, new ListedTasks(2));
    const passed = { passed: true, outcome: 'success' as const };
    for (const own of [{}, passed, passed]) collector.add(taskResult(own));
    const page = renderPage(collector.end(), { name: 'n', earlier: '', manifest: undefined });
    expect(page).toContain('Of 3 tasks this table lists the 1 task that did not pass.');
    expect(page).toContain('"verdict":["failed"]');
  });

  test('of no task is a page as well', () => {
    const page = renderPage(new ReportCollector(undefined).end(), { name: 'none', earlier: '', manifest: undefined });
    expect(page).toContain('The results file has no task.');
  });

  test('counts lines that are no results, and is written to a device', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-report-'));
    const [results, report] = [join(directory, 'results'), join(directory, 'report')];
    const whole = taskResult({ results: [commandAt(0, [1, 1, 1], { output: '' })] });
    const odd = [
      { ...whole, startedAt: '' },
      { ...whole, results: [{ commandId: 's.1' }] },
      { id: 'a', script: 'true' },
    ];
    await writeFile(results, [whole, ...odd].map((line) => `${JSON.stringify(line)}\n`).join(''));
    await writeBatchReport({ results, report, compareWith: results });
    const page = await readFile(report, 'utf8');
    expect(page).toContain('1 task, from 2026-01-01 00:00:00');
    expect(page).toContain('Lines of the results file left out, because they are no results: 3');
    expect(page).toContain('Lines of results left out, because they are no results: 3');
    await symlink('/dev/null', join(directory, 'device'));
    await writeBatchReport({ results, report: join(directory, 'device') });
    expect((await stat(join(directory, 'device'))).isCharacterDevice()).toBe(true);
    await rm(directory, { recursive: true });
  });
});
