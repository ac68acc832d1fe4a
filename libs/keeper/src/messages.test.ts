import { describe, expect, test } from 'vitest';
import { MalformedFrame } from './frames.ts';
import {
  decodeDirectory,
  decodeEnd,
  decodeHello,
  decodeLogMessage,
  decodeProcesses,
  decodeRefusal,
  describeKeeperExit,
  uint32s,
  uint64s,
} from './messages.ts';

describe('payloads of frames', () => {
  test('have state, offsets and the reason for a missing shell in HELLO', () => {
    const token = Buffer.alloc(64);
    token.write('secret');
    const payload = Buffer.concat([
      uint32s(0x0001_0002, 0x0001_0003, 2, 9),
      uint64s(10, 20, 5, 6),
      token,
      Buffer.from('no /bin/sh'),
    ]);
    expect(decodeHello(payload)).toEqual({
      version: 2,
      oldestWorker: 1,
      state: 'no-shell',
      hasBuiltin: true,
      shellNumber: 2,
      begunCount: 9,
      received: { stdout: 10, stderr: 20 },
      acked: { stdout: 5, stderr: 6 },
      token,
      problem: 'no /bin/sh',
    });
  });

  test.each([
    [1, { usage: { processorMicros: 1_234_567, memoryPeakBytes: 104_857_600 }, hasBuiltin: false }],
    [2, { usage: undefined, hasBuiltin: true }],
  ])('have exit code, reason, totals, flags (%i) and state of the shell in END', (flags, expected) => {
    const payload = Buffer.concat([
      Buffer.from(Int32Array.of(143).buffer),
      Uint8Array.of(3, 1, 0, flags),
      uint32s(4, 1500),
      uint64s(7, 8, 1_234_567, 104_857_600),
      Buffer.from('its functions are gone'),
    ]);
    expect(decodeEnd(payload)).toEqual({
      exitCode: 143,
      reason: 'wall',
      shellState: 'partial',
      shellReason: 'its functions are gone',
      signal: 0,
      shellNumber: 4,
      runMs: 1500,
      totals: { stdout: 7, stderr: 8 },
      ...expected,
    });
  });

  test('are rejected when they are too short or have unknown values', () => {
    expect(() => decodeEnd(new Uint8Array(47))).toThrow(MalformedFrame);
    expect(() => decodeEnd(Buffer.alloc(48, 255))).toThrow(MalformedFrame);
    expect(() => decodeHello(new Uint8Array(10))).toThrow(MalformedFrame);
    expect(() => decodeHello(Buffer.alloc(112, 255))).toThrow(MalformedFrame);
    expect(() => decodeRefusal(0)).toThrow(MalformedFrame);
    expect(() => decodeRefusal(99)).toThrow(MalformedFrame);
  });

  test('have limited log messages without control characters', () => {
    expect(decodeLogMessage(Buffer.from('mkfifo: No space\n\u001b[31m left'))).toBe('mkfifo: No space  [31m left');
    expect(decodeLogMessage(Buffer.alloc(5_000, 'x'))).toHaveLength(200);
  });

  test.each([
    [104, 'Its keeper cannot write to its directory.'],
    [0, undefined],
    [137, undefined],
    [null, undefined],
  ])('explain the exit code %s of a keeper as: %s', (exitCode, description) => {
    expect(describeKeeperExit(exitCode)).toBe(description);
  });

  test('have processes as a number and a text', () => {
    expect(decodeProcesses(Buffer.from('12 sleep 100\x00013 node server.js\0'))).toEqual([
      { pid: 12, command: 'sleep 100' },
      { pid: 13, command: 'node server.js' },
    ]);
  });

  test.each([
    ['/a b', Buffer.from('/a b')],
    [undefined, Buffer.alloc(0)],
    [undefined, Buffer.from('(unreachable)/a')],
    [undefined, Buffer.from([0x2f, 0xff])],
  ])('have a directory only when it is an absolute path in text: %s', (directory, payload) => {
    expect(decodeDirectory(payload)).toBe(directory);
  });
});
