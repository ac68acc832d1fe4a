import { expect, test } from 'vitest';
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

test('HELLO has the state, the offsets and the reason why there is no shell', () => {
  const token = Buffer.alloc(64);
  token.write('secret');
  const payload = Buffer.concat([uint32s(2, 3, 2, 9), uint64s(10, 20, 5, 6), token, Buffer.from('no /bin/sh')]);
  expect(decodeHello(payload)).toEqual({
    version: 2,
    state: 'no-shell',
    shellNumber: 2,
    begunCount: 9,
    received: { stdout: 10, stderr: 20 },
    acked: { stdout: 5, stderr: 6 },
    token,
    problem: 'no /bin/sh',
  });
});

test('END has the exit code, the reason, the totals and the state of the shell', () => {
  const payload = Buffer.concat([
    Buffer.from(Int32Array.of(143).buffer),
    Uint8Array.of(3, 1, 0, 0),
    uint32s(4, 1500),
    uint64s(7, 8),
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
  });
});

test('payloads that are too short or have unknown values are rejected', () => {
  expect(() => decodeEnd(new Uint8Array(31))).toThrow(MalformedFrame);
  expect(() => decodeEnd(Buffer.alloc(32, 255))).toThrow(MalformedFrame);
  expect(() => decodeHello(new Uint8Array(10))).toThrow(MalformedFrame);
  expect(() => decodeHello(Buffer.alloc(112, 255))).toThrow(MalformedFrame);
  expect(() => decodeRefusal(0)).toThrow(MalformedFrame);
  expect(() => decodeRefusal(99)).toThrow(MalformedFrame);
});

test('a message of the log has no control characters, and a limit', () => {
  expect(decodeLogMessage(Buffer.from('mkfifo: No space\n\u001b[31m left'))).toBe('mkfifo: No space  [31m left');
  expect(decodeLogMessage(Buffer.alloc(5_000, 'x'))).toHaveLength(200);
});

test.each([
  [104, 'Its keeper cannot write to its folder.'],
  [0, undefined],
  [137, undefined],
  [null, undefined],
])('exit code %s of a keeper: %s', (exitCode, description) => {
  expect(describeKeeperExit(exitCode)).toBe(description);
});

test('processes are a number and the rest', () => {
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
])('the directory %s is read only from an absolute path that is text', (directory, payload) => {
  expect(decodeDirectory(payload)).toBe(directory);
});
