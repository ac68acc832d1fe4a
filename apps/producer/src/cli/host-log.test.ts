import { describe, expect, test } from 'vitest';
import { formatLine } from './host-log.ts';

const lineOf = (fields: object) => ({
  text: JSON.stringify({ level: 'warn', time: 0, pid: 1, hostname: 'm', 'host.id': 'h', ...fields }),
});

describe('a line of the log of a host', () => {
  test('is shown with its event and the fields that differ from line to line', () => {
    const fields = {
      'shellfleet.session.id': 'a',
      'process.exit.code': 3,
      problem: 'no "room"',
      timings: { runMs: 1 },
    };
    expect(formatLine(lineOf({ ...fields, msg: 'session.failed' }))).toBe(
      String.raw`1970-01-01T00:00:00.000Z warn  session.failed session.id=a process.exit.code=3 problem="no \"room\"" timings={"runMs":1}`,
    );
  });

  test('shows an error as its message', () => {
    const err = { type: 'Error', message: 'It broke.', stack: 'Error: It broke.\n at a.ts' };
    expect(formatLine(lineOf({ err, msg: 'calls.failed' }))).toBe(
      '1970-01-01T00:00:00.000Z warn  calls.failed err="It broke."',
    );
  });

  test('is shown without control characters, also when it is no JSON', () => {
    expect(formatLine(lineOf({ reason: 'a\u009bb', msg: 'a.b' }))).toBe(
      String.raw`1970-01-01T00:00:00.000Z warn  a.b reason=a\u009bb`,
    );
    expect(formatLine({ text: 'half a line\u001b[2J' })).toBe(String.raw`half a line\u001b[2J`);
  });
});
