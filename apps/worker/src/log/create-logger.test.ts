import type { EventEmitter } from 'node:events';
import { ATTRIBUTES } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { createLogger, openLogFile } from './create-logger.ts';

/** Returns the lines that `log` writes, each as its names and values in order. */
function linesOf(log: (logger: ReturnType<typeof createLogger>) => void): [string, unknown][][] {
  const lines: [string, unknown][][] = [];
  const destination = {
    write(line: string) {
      // The reviver visits the members of an object before the object.
      const members: [string, unknown][] = [];
      const found = [...line.matchAll(/(?<=[{,])"((?:other\.)?[a-z.]+)":/g)].map(([, name = '']) => name);
      const parsed = JSON.parse(line) as Record<string, unknown>;
      for (const name of found) members.push([name, parsed[name]]);
      lines.push(members.filter(([name]) => !['time', 'pid', 'hostname'].includes(name)));
    },
  };
  log(createLogger('debug', destination));
  return lines;
}

describe('the log of a worker', () => {
  test('writes a field once when the logger already has its name', () => {
    const [line] = linesOf((logger) => {
      const child = logger
        .child({ [ATTRIBUTES.sessionId]: 'a' })
        .child({}, { formatters: { log: (fields) => fields } });
      child.warn({ [ATTRIBUTES.sessionId]: 'a', [ATTRIBUTES.commandId]: 'c' }, 'command.completed');
    });
    expect(line).toEqual([
      ['level', 'warn'],
      ['shellfleet.session.id', 'a'],
      ['shellfleet.command.id', 'c'],
      ['msg', 'command.completed'],
    ]);
  });

  test('renames a field when the logger has its name with another value', () => {
    const [line] = linesOf((logger) => {
      logger.child({ key: 'a' }).info({ key: 'b', level: 'high', msg: 'said' }, 'keeper.reported');
    });
    expect(line).toEqual([
      ['level', 'info'],
      ['key', 'a'],
      ['other.key', 'b'],
      ['other.level', 'high'],
      ['other.msg', 'said'],
      ['msg', 'keeper.reported'],
    ]);
  });

  test('writes a field once when a child has that of its parent, or another value', () => {
    const [line] = linesOf((logger) => {
      const parent = logger.child({ [ATTRIBUTES.sessionId]: 'a' });
      const child = parent.child({ [ATTRIBUTES.sessionId]: 'a', [ATTRIBUTES.tenant]: 't' });
      child.child({ [ATTRIBUTES.tenant]: 'u', msg: 'said' }).info('session.opened');
    });
    expect(line).toEqual([
      ['level', 'info'],
      ['shellfleet.session.id', 'a'],
      ['shellfleet.tenant.id', 't'],
      ['other.shellfleet.tenant.id', 'u'],
      ['other.msg', 'said'],
      ['msg', 'session.opened'],
    ]);
  });

  test('writes errors, and lines without fields, unchanged', () => {
    const lines = linesOf((logger) => {
      logger.error(new Error('it broke'));
      logger.info('worker.started');
    });
    expect(lines.map((members) => Object.fromEntries(members))).toMatchObject([
      { level: 'error', msg: 'it broke', err: { message: 'it broke' } },
      { level: 'info', msg: 'worker.started' },
    ]);
  });
  test('LOG-2: keeps a limited number of lines waiting on a full disk, and stops nothing', () => {
    const destination = openLogFile('/dev/full');
    const dropped: unknown[] = [];
    (destination as unknown as EventEmitter).on('drop', (line) => dropped.push(line));
    const logger = createLogger('info', destination);
    for (let index = 0; index < 3_000; index += 1) logger.info({ text: 'x'.repeat(1_000) }, 'keeper.reported');
    expect(dropped.length).toBeGreaterThan(1_900);
  });

  test('LOG-3: writes errors about a missing Redis without a stack, and other errors with one', () => {
    const lines: { err: object }[] = [];
    const logger = createLogger('warn', { write: (line) => void lines.push(JSON.parse(line)) });
    const away = new Error("Stream isn't writeable and enableOfflineQueue options is false");
    logger.warn({ err: away }, 'host.beat-failed');
    logger.warn({ err: new Error('The call failed.', { cause: away }) }, 'calls.failed');
    logger.warn({ err: new Error('It is broken.') }, 'upkeep.failed');
    expect(lines.map(({ err }) => err)).toEqual([
      { type: 'Error', message: away.message, stack: `Error: ${away.message}` },
      { type: 'Error', message: 'The call failed.', stack: 'Error: The call failed.' },
      { type: 'Error', message: 'It is broken.', stack: expect.stringContaining('create-logger.test.ts') },
    ]);
  });
});
