import { ShellfleetError } from '@shellfleet/client';
import { fromWireResult, type Outcome, toPrintable, type WireResult } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { DetachKeys, parseDetachKeys } from './detach-keys.ts';
import { exitCodeOfError, exitCodeOfResult } from './exit-codes.ts';
import { toScript } from './script-words.ts';
import { TerminalModes } from './terminal-modes.ts';
import { parseCount, parseDuration, parseSize } from './units.ts';

describe('texts of the command line', () => {
  test.each([
    [['ls -la | wc'], 'ls -la | wc'],
    [['ls', '-la'], 'ls -la'],
    [['echo', 'a b', "c'd", '', '$x'], `echo 'a b' 'c'\\''d' '' '$x'`],
    [['A=1', 'env'], `'A=1' env`],
    [['echo', '--flag=/a,b:c@d'], 'echo --flag=/a,b:c@d'],
  ])('turn the words %j into the script %s', (words, script) => {
    expect(toScript(words)).toBe(script);
  });

  test.each([
    ['500', 500],
    ['500ms', 500],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
  ])('read the time %s as %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(['', 's', '5 m', '-1s', '1w', '1e3', '٣s'])('refuse the time %j', (text) => {
    expect(() => parseDuration(text)).toThrow(/Give a time/);
  });

  test.each([
    ['0', 0],
    ['4096', 4_096],
    ['64k', 65_536],
    ['1G', 2 ** 30],
  ])('read the size %s as %i bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each(['', 'k', '1.5k', '-1', '1t'])('refuse the size %j', (text) => {
    expect(() => parseSize(text)).toThrow(/Give a size/);
  });

  test.each(['0', '-1', '1.5', 'x', ''])('refuse the count %j', (text) => {
    expect(() => parseCount(text)).toThrow(/Give a whole number/);
  });

  test('have no control or direction characters at a terminal', () => {
    expect(toPrintable('a\u001b[2J\r\n\u009b\u202eb€')).toBe('a\\u001b[2J\\u000d\\u000a\\u009b\\u202eb€');
  });

  describe('exit codes', () => {
    const result = <O extends Outcome>(outcome: O, own: Partial<Extract<WireResult, { outcome: O }>> = {}) =>
      fromWireResult({ commandId: 'c', sessionId: 's' }, sampleResult(outcome, own));

    test.each([
      [result('success', { exitCode: 0 }), 0],
      [result('failure', { exitCode: 77 }), 77],
      [result('failure', { exitCode: 143, signal: 'SIGTERM' }), 143],
      [result('timeout'), 124],
      [result('error'), 125],
      [result('lost'), 125],
      [result('denial'), 126],
      [result('blocked', { exitCode: 0 }), 126],
      [result('cancellation'), 130],
    ])('are set by the outcome and exit code of a Result: $outcome', (given, code) => {
      expect(exitCodeOfResult(given)).toBe(code);
    });

    test('are 2 for wrong usage, and 125 for a failure of Shellfleet itself', () => {
      expect(exitCodeOfError(new ShellfleetError('COMMAND_INVALID', 'x'))).toBe(2);
      expect(exitCodeOfError(new ShellfleetError('REDIS_UNSUITABLE', 'x'))).toBe(2);
      expect(exitCodeOfError(new ShellfleetError('REDIS_UNSUITABLE', 'x', { setting: 'role' }))).toBe(125);
      expect(exitCodeOfError(new Error('x'))).toBe(125);
    });

    test.each([
      ['a path of this machine that does not exist', { code: 'ENOENT' }, 2],
      ['a path of this machine that may not be used', { code: 'EACCES' }, 2],
      ['a full disk', { code: 'ENOSPC' }, 125],
      ['a path in a session', undefined, 125],
    ])('tell a wrong path from a failure: %s', (_what, system, code) => {
      const cause = system && Object.assign(new Error('x'), system);
      expect(exitCodeOfError(new ShellfleetError('FILE_NOT_FOUND', 'x', {}, { cause }))).toBe(code);
    });
  });

  test.each([
    ['ctrl-p,ctrl-q', [16, 17]],
    ['ctrl-@,ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_', [0, 27, 28, 29, 30, 31]],
    ['a,~,ctrl-z', [97, 126, 26]],
    ['', []],
  ])('read the detach keys %j as the bytes %j', (text, bytes) => {
    expect([...parseDetachKeys(text)]).toEqual(bytes);
  });

  test.each(['ctrl-', 'ctrl-P', 'ctrl-1', 'ab', 'a,', 'é', ' '])('refuse the detach keys %j', (text) => {
    expect(() => parseDetachKeys(text)).toThrow(/Give keys such as/);
  });

  test('find detach keys for any cut, and pass on an incomplete sequence', () => {
    const typed = (...pieces: string[]) => {
      const keys = new DetachKeys(parseDetachKeys('ctrl-p,ctrl-q'));
      return pieces.map((piece) => {
        const { pass, detached } = keys.push(Buffer.from(piece, 'latin1'));
        return pass.toString('latin1') + (detached ? '|' : '');
      });
    };
    expect(typed('ls\x10\x11no')).toEqual(['ls|']);
    expect(typed('a\x10', '\x11')).toEqual(['a', '|']);
    expect(typed('\x10', 'x')).toEqual(['', '\x10x']);
    expect(typed('\x10\x10', '\x11')).toEqual(['\x10', '|']);
    const none = new DetachKeys(parseDetachKeys(''));
    expect(none.push(Buffer.from([16, 17]))).toEqual({ pass: Buffer.from([16, 17]), detached: false });
  });

  test('restore a terminal that programs changed, for any cut of their output', () => {
    const undoneAfter = (...pieces: string[]) => {
      const modes = new TerminalModes();
      for (const piece of pieces) modes.push(Buffer.from(piece, 'latin1'));
      return modes.undo();
    };
    expect(undoneAfter('plain \u001b[31mred')).toBe('');
    expect(undoneAfter('\u001b[?1049h\u001b[?25l')).toBe('\u001b[?1049l\u001b[?25h\u001b[0m');
    expect(undoneAfter('\u001b[?2004h$ \u001b[?2004l')).toBe('');
    const words = 'x\u001b[?1000;1006hy';
    for (let at = 0; at <= words.length; at += 1) {
      expect(undoneAfter(words.slice(0, at), words.slice(at))).toBe('\u001b[?1000l\u001b[?1006l\u001b[0m');
    }
  });
});
