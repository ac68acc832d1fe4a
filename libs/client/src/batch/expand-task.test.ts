import { describe, expect, test } from 'vitest';
import { expandTask, taskSessionId } from './expand-task.ts';

describe('expandTask', () => {
  test('merges variables and limits with the common spec, and replaces other fields', () => {
    const common = {
      image: 'a',
      env: { A: '1', B: '1' },
      limits: { cpus: 1, pids: 64 },
      startupCommands: ['one', 'two'],
    };
    const own = { env: { B: '2' }, limits: { cpus: 2 }, startupCommands: ['three'] };
    expect(expandTask({ id: 't', script: 'true', spec: own }, 1, common, 5)).toEqual([
      {
        ...{ id: 't', script: 'true', timeoutMs: 5 },
        spec: { image: 'a', env: { A: '1', B: '2' }, limits: { cpus: 2, pids: 64 }, startupCommands: ['three'] },
      },
    ]);
    expect(expandTask({ id: 't', script: 'true', timeoutMs: 9 }, 1, undefined, 5)).toEqual([
      { id: 't', script: 'true', timeoutMs: 9 },
    ]);
  });

  test('gives each repetition of a task a separate id, numbered from 1', () => {
    expect(expandTask({ id: 't', script: 'true' }, 3, undefined).map(({ id }) => id)).toEqual(['t#1', 't#2', 't#3']);
  });

  test('returns a value unchanged that is no task, since a later check refuses it', () => {
    expect(expandTask(null as never, 2, { image: 'a' })).toEqual([null]);
  });
});

describe('session ids of tasks', () => {
  test('are valid, and differ between batches, tasks and attempts', () => {
    const long = 'ä/'.repeat(128);
    const ids = ['a', 'a.2', 'a#1', 'a_1', long, `${long}x`.slice(1)].flatMap((id) =>
      ['n', 'n-a', 'x'.repeat(64)].flatMap((batch) => [taskSessionId(batch, id), `${taskSessionId(batch, id)}.100`]),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  });
});
