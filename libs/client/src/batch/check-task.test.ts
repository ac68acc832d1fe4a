import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkTasks } from './check-task.ts';
import type { Task } from './task.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-inputs-'));
  for (const name of ['shared', 'a_1', 'a_2', 'b%2F_1']) await writeFile(join(directory, name), '');
  await symlink(join(directory, 'shared'), join(directory, 'link'));
  await symlink(join(directory, 'nothing'), join(directory, 'dangling'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Checks tasks with these ids, each with one local file. */
function check(ids: string[], local: string, repeats = 1): Promise<number> {
  const tasks: Task[] = ids.map((id) => ({ id, script: 'true', files: { '/in': join(directory, local) } }));
  const read = async function* () {
    for (const [index, task] of tasks.entries()) yield { task, at: index + 1 };
  };
  return checkTasks({ name: 'tasks.jsonl', counts: 'lines', read }, { repeats });
}

describe('a list of tasks', () => {
  test('is refused for ids that would be the same in UTF-8', async () => {
    await expect(check(['\ud800', '\ud801'], 'shared')).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringContaining('tasks.jsonl:1 is not valid: id: is not valid Unicode (lone surrogate)'),
    });
  });
});

describe('a list of tasks with `files`', () => {
  test.each([
    ['shared', ['a', 'b'], 2],
    ['link', ['a'], 1],
    ['.', ['a'], 1],
    ['{id}_{repeat}', ['a'], 2],
    ['{id}_{repeat}', ['b/'], 1],
  ])('is valid when each local path can be read: %s of %j', async (local, ids, repeats) => {
    expect(await check(ids, local, repeats)).toBe(ids.length);
  });

  test.each([
    ['none', ['a'], 1, 1, 'none'],
    ['dangling', ['a'], 1, 1, 'dangling'],
    ['shared/in', ['a'], 1, 1, 'shared/in'],
    ['{id}_{repeat}', ['a', 'b'], 1, 2, 'b_1'],
    ['{id}_{repeat}', ['a'], 3, 1, 'a_3'],
  ])('is refused with line, task and path of a file that cannot: %s of %j', async (local, ids, repeats, line, path) => {
    const id = ids[line - 1];
    await expect(check(ids, local, repeats)).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringMatching(
        `^Nothing was run: tasks\\.jsonl:${line} is not valid: files\\./in of task "${id}": E.*${path}'$`,
      ),
      context: { id, path: join(directory, path) },
    });
  });
});
