import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTaskFile } from './batch-tasks.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-tasks-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Reads the tasks of a file with this name and text, or of stdin. */
async function read(name: string, text: string | Buffer, options = {}) {
  const path = name === '-' ? '-' : join(directory, name);
  if (name !== '-') await writeFile(path, text);
  await using file = await openTaskFile(path, options, Readable.from([Buffer.from(text)]));
  const twice = [await Array.fromAsync(file.tasks()), await Array.fromAsync(file.tasks())];
  expect(twice[0]).toEqual(twice[1]);
  return { count: file.count, digest: file.digest, tasks: twice[0] };
}

const YAML = `# a comment
- id: a
  script: [one, two]
  grade: { script: test -e x, fresh: true }

- id: b
  script: |
    echo several
    echo lines
`;
const TASKS = [
  { id: 'a', script: ['one', 'two'], grade: { script: 'test -e x', fresh: true } },
  { id: 'b', script: 'echo several\necho lines\n' },
];
const LINES = TASKS.map((task) => `${JSON.stringify(task)}\n`).join('');

describe('a file of tasks', () => {
  test.each([
    ['tasks.yaml', YAML],
    ['-', YAML],
    ['-', JSON.stringify(TASKS)],
    ['-', LINES],
    ['tasks.jsonl', LINES],
    ['marked.jsonl', `\uFEFF${LINES}`],
    ['marked.yaml', `\uFEFF${YAML}`],
    ['marked-list.yaml', `\uFEFF${YAML.replace('# a comment\n', '')}`],
    ['-', `\uFEFF${LINES}`],
    ['list.mjs', `export default ${JSON.stringify(TASKS)}`],
    ['generator.mjs', `export default async function* () { yield* ${JSON.stringify(TASKS)} }`],
  ])('is read as often as needed: %s', async (name, text) => {
    const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
    expect(await read(name, text)).toEqual({ count: 2, digest, tasks: TASKS });
  });

  test.each<[string, string, RegExp]>([
    ['unknown.yaml', YAML.replace('grade:', 'grades:'), /unknown\.yaml:2 is not valid: grades: unknown field$/],
    ['nested.yaml', YAML.replace('fresh:', 'fesh:'), /nested\.yaml:2 is not valid: grade\.fesh: unknown field$/],
    ['twice.yaml', YAML.replace('id: b', 'id: a'), /^Lines 2 and 6 of .*twice\.yaml have the same task id, "a"/],
    ['broken.yaml', `${YAML}- [`, /^Nothing was run: .*broken\.yaml:\d+: /],
    ['map.yaml', 'id: a', /map\.yaml is not a list of tasks/],
    ['-', `${LINES}{"id":"c"}\n`, /^Nothing was run: -:3 is not valid: script: must be a script or a list of scripts$/],
    [
      'inputs.yaml',
      `${YAML}  files: { /in: '/none/{id}' }`,
      /inputs\.yaml:6 is not valid: files\.\/in of task "b": ENOENT: .*'\/none\/b'$/,
    ],
    ['empty.jsonl', '\n', /^Nothing was run: .*empty\.jsonl has no task\. Give one JSON object per line/],
    ['empty.yaml', '[]', /^Nothing was run: .*empty\.yaml has no task\./],
    ['-', '', /^Nothing was run: - has no task\./],
    ['empty.mjs', 'export default []', /^Nothing was run: .*empty\.mjs has no task\./],
    ['none.mjs', 'export const tasks = []', /none\.mjs has no tasks\. Let its default export be a generator/],
    ['wrong.mjs', 'export default [{ id: "a" }]', /wrong\.mjs, task 1, is not valid: script: /],
  ])('is refused with the place and the field: %s', async (name, text, message) => {
    await expect(read(name, text)).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringMatching(message),
    });
  });

  test('needs {id} in each output that a fresh grade gets', async () => {
    const task = (local: string, fresh: boolean) =>
      JSON.stringify({ id: 'a', script: 'true', outputs: { '/x': local }, grade: { script: 'true', fresh } });
    for (const local of ['out', 'out/{id}/..'])
      await expect(read('fresh.jsonl', task(local, true))).rejects.toThrow(
        'outputs./x: must contain {id}, because the fresh session of the grade gets what is there',
      );
    await expect(read('fresh.jsonl', task('out/{repeat}', true), { repeats: 2 })).rejects.toThrow('must contain {id}');
    expect(await read('own.jsonl', task('out/{id}', true))).toMatchObject({ count: 1 });
    expect(await read('same.jsonl', task('out', false))).toMatchObject({ count: 1 });
  });

  test('may have any character in scripts, line ends of Windows, and no last line feed', async () => {
    const tasks = [{ id: 'a', script: 'echo "\u2028\u2029\u0085" \u{1F600}' }, TASKS[1]];
    const lines = tasks.map((task) => JSON.stringify(task)).join('\r\n');
    expect(lines).toContain('\u2028');
    for (const name of ['unicode.jsonl', '-', 'unicode.yaml'])
      expect(
        await read(name, name.endsWith('yaml') ? `[${tasks.map((task) => JSON.stringify(task))}]` : lines),
      ).toEqual({
        ...{ count: 2, digest: expect.any(String), tasks },
      });
  });

  test.each(['latin1.jsonl', 'latin1.yaml', '-'])('is refused with the line that is not UTF-8: %s', async (name) => {
    const lines = `${JSON.stringify(TASKS[0])}\n{"id":"b","script":"echo \xe9"}\n`;
    const text = name.endsWith('yaml') ? '- id: a\n  script: echo \xe9\n' : lines;
    await expect(read(name, Buffer.from(text, 'latin1'))).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringMatching(/^Nothing was run: \S+:2 has bytes that are not UTF-8\./),
    });
  });

  test('is refused with its path when it cannot be read', async () => {
    const path = join(directory, 'none.jsonl');
    await expect(openTaskFile(path, {})).rejects.toMatchObject({
      ...{ code: 'FILE_NOT_FOUND', message: expect.stringContaining(path) },
    });
  });

  test('is refused as a directory when its path names one', async () => {
    await expect(openTaskFile(directory, {})).rejects.toMatchObject({
      code: 'FILE_IS_DIRECTORY',
      message: `${directory} is a directory. Name a file of tasks.`,
    });
  });

  test('needs {repeat} in each output when its tasks are repeated', async () => {
    const lines = JSON.stringify({ id: 'a', script: 'true', outputs: { '/x': 'out/{id}' } });
    await expect(read('repeats.jsonl', lines, { repeats: 2 })).rejects.toThrow('outputs./x: must contain {repeat}');
    expect(await read('once.jsonl', lines)).toMatchObject({ count: 1 });
  });
});
