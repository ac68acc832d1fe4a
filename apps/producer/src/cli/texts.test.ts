import { ShellfleetError } from '@shellfleet/client';
import { emptyResult, fromWireResult, type WireResult } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { exitCodeOfError, exitCodeOfResult } from './exit-codes.ts';
import { toPrintable } from './printable.ts';
import { toScript } from './script-words.ts';
import { parseCount, parseDuration, parseSize } from './units.ts';

test.each([
  [['ls -la | wc'], 'ls -la | wc'],
  [['ls', '-la'], 'ls -la'],
  [['echo', 'a b', "c'd", '', '$x'], `echo 'a b' 'c'\\''d' '' '$x'`],
  [['A=1', 'env'], `'A=1' env`],
  [['echo', '--flag=/a,b:c@d'], 'echo --flag=/a,b:c@d'],
])('words %j become the script %s', (words, script) => {
  expect(toScript(words)).toBe(script);
});

test.each([
  ['500', 500],
  ['500ms', 500],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
])('the time %s is %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(['', 's', '5 m', '-1s', '1w', '1e3', '٣s'])('the time %j is refused', (text) => {
  expect(() => parseDuration(text)).toThrow(/Give a time/);
});

test.each([
  ['0', 0],
  ['4096', 4_096],
  ['64k', 65_536],
  ['1G', 2 ** 30],
])('the size %s is %i bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

test.each(['', 'k', '1.5k', '-1', '1t'])('the size %j is refused', (text) => {
  expect(() => parseSize(text)).toThrow(/Give a size/);
});

test.each(['0', '-1', '1.5', 'x', ''])('the count %j is refused', (text) => {
  expect(() => parseCount(text)).toThrow(/Give a whole number/);
});

test('control and direction characters do nothing on a terminal', () => {
  expect(toPrintable('a\u001b[2J\r\n\u009b\u202eb€')).toBe('a\\u001b[2J\\u000d\\u000a\\u009b\\u202eb€');
});

const result = (outcome: WireResult['outcome'], rest: Partial<WireResult> = {}) =>
  fromWireResult({ commandId: 'c', sessionId: 's' }, emptyResult(outcome, rest));

test.each([
  [result('success', { exitCode: 0 }), 0],
  [result('failure', { exitCode: 77 }), 77],
  [result('failure', { signal: 'SIGTERM' }), 143],
  [result('timeout', { exitCode: 143 }), 124],
  [result('error'), 125],
  [result('lost'), 125],
  [result('denial'), 126],
  [result('blocked', { exitCode: 0 }), 126],
  [result('cancellation'), 130],
])('a result leaves with its exit code: $outcome', (given, code) => {
  expect(exitCodeOfResult(given)).toBe(code);
});

test('wrong use is 2, and a failure of ours 125', () => {
  expect(exitCodeOfError(new ShellfleetError('COMMAND_INVALID', 'x'))).toBe(2);
  expect(exitCodeOfError(new ShellfleetError('REDIS_UNSUITABLE', 'x'))).toBe(2);
  expect(exitCodeOfError(new ShellfleetError('REDIS_UNSUITABLE', 'x', { setting: 'role' }))).toBe(125);
  expect(exitCodeOfError(new Error('x'))).toBe(125);
});
