import { expect, test } from 'vitest';
import { MalformedFrame } from './frames.ts';
import {
  decodeEnd,
  decodeHello,
  decodeProcesses,
  decodeRefusal,
  parseFileRecords,
  uint32s,
  uint64s,
} from './messages.ts';

test('a hello says what runs, how far it is, and why there is no shell', () => {
  const token = Buffer.alloc(64);
  token.write('secret');
  const payload = Buffer.concat([uint32s(2, 3, 2, 9), uint64s(10, 20, 5, 6), token, Buffer.from('no /bin/sh')]);
  expect(decodeHello(payload)).toEqual({
    version: 2,
    state: 'no-shell',
    generation: 2,
    begunCount: 9,
    received: { stdout: 10, stderr: 20 },
    acked: { stdout: 5, stderr: 6 },
    token,
    problem: 'no /bin/sh',
  });
});

test('an end says how, and what became of the shell', () => {
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
    errno: 0,
    generation: 4,
    runMs: 1500,
    totals: { stdout: 7, stderr: 8 },
  });
});

test('words that no keeper says are refused', () => {
  expect(() => decodeEnd(new Uint8Array(31))).toThrow(MalformedFrame);
  expect(() => decodeEnd(Buffer.alloc(32, 255))).toThrow(MalformedFrame);
  expect(() => decodeHello(new Uint8Array(10))).toThrow(MalformedFrame);
  expect(() => decodeHello(Buffer.alloc(112, 255))).toThrow(MalformedFrame);
  expect(() => decodeRefusal(0)).toThrow(MalformedFrame);
  expect(() => decodeRefusal(99)).toThrow(MalformedFrame);
});

test('file records keep names with newlines and spaces', () => {
  const stdout = Buffer.from(
    'f\x0012\x00644\x001700000000123\0a\nb c\0d\x000\x00755\x001\0sub\0l\x001\x00777\x002\0link\0',
  );
  expect(parseFileRecords(stdout)).toEqual([
    { type: 'file', size: 12, mode: 0o644, modifiedMs: 1_700_000_000_123, name: 'a\nb c' },
    { type: 'directory', size: 0, mode: 0o755, modifiedMs: 1, name: 'sub' },
    { type: 'symlink', size: 1, mode: 0o777, modifiedMs: 2, name: 'link' },
  ]);
});

test('processes are a number and the rest', () => {
  expect(decodeProcesses(Buffer.from('12 sleep 100\x00013 node server.js\0'))).toEqual([
    { pid: 12, command: 'sleep 100' },
    { pid: 13, command: 'node server.js' },
  ]);
});
