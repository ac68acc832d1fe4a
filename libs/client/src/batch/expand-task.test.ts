import { describe, expect, test } from 'vitest';
import { expandTask, taskSessionId, withCommon } from './expand-task.ts';

describe('tasks with shared options', () => {
  test('merges variables and limits with the common spec, and replaces other fields', () => {
    const common = {
      image: 'a',
      env: { A: '1', B: '1' },
      limits: { cpus: 1, pids: 64 },
      startupCommands: ['one', 'two'],
    };
    const own = { env: { B: '2' }, limits: { cpus: 2 }, startupCommands: ['three'] };
    expect(withCommon({ id: 't', script: 'true', spec: own }, { spec: common, timeoutMs: 5, deadlineMs: 7 })).toEqual({
      ...{ id: 't', script: 'true', timeoutMs: 5, deadlineMs: 7 },
      spec: { image: 'a', env: { A: '1', B: '2' }, limits: { cpus: 2, pids: 64 }, startupCommands: ['three'] },
    });
    expect(withCommon({ id: 't', script: 'true', timeoutMs: 9 }, { timeoutMs: 5 })).toEqual({
      ...{ id: 't', script: 'true', timeoutMs: 9 },
    });
  });

  test('gives each repetition of a task a separate id, numbered from 1', () => {
    const runs = expandTask({ id: 't', script: 'true' }, 3, {});
    expect(runs.map(({ id, task, repeat }) => `${id} ${task.id} ${repeat}`)).toEqual(['t#1 t 1', 't#2 t 2', 't#3 t 3']);
    expect(expandTask({ id: 't', script: 'true' }, 1, {}).map(({ id, repeat }) => `${id} ${repeat}`)).toEqual(['t 1']);
  });

  test('returns a value unchanged that is no task, since a later check refuses it', () => {
    const given = expandTask(null as never, 2, { spec: { image: 'a' } });
    expect(given).toEqual([{ id: 'undefined', task: null, repeat: 1 }]);
  });
});

describe('session ids of tasks', () => {
  test('are valid, and differ between batches, tasks and attempts', () => {
    const long = 'ä/'.repeat(128);
    const ids = ['a', 'a.2', 'a#1', 'a_1', long, `${long}x`.slice(1)].flatMap((id) =>
      ['n', 'n-a', 'x'.repeat(64)].flatMap((batch) => [
        taskSessionId(batch, id),
        `${taskSessionId(batch, id)}.100.gabcdefgh`,
      ]),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  });
});
