import { describe, expect, test } from 'vitest';
import { MalformedFrame } from './frames.ts';
import { uint32s, uint64s } from './messages.ts';
import { decodeTerminalEnd, decodeTerminalOutput, encodeTerminalOpen } from './terminal-messages.ts';

describe('payloads of a terminal', () => {
  test('have size and variables in TERMINAL_OPEN', () => {
    const env = Buffer.from('TERM=xterm\0A=é\0');
    const opening = encodeTerminalOpen({ rows: 24, columns: 80 }, { TERM: 'xterm', A: 'é' });
    expect(opening).toEqual(Buffer.concat([uint32s(24, 80, env.length), env]));
  });

  test('count the typed input in TERMINAL_OUTPUT, with or without output', () => {
    const payload = Buffer.concat([uint64s(7), Buffer.from('$ ')]);
    expect(decodeTerminalOutput(payload)).toEqual({ typed: 7, bytes: Buffer.from('$ ') });
    expect(decodeTerminalOutput(uint64s(9))).toEqual({ typed: 9, bytes: Buffer.alloc(0) });
  });

  test('have the exit code, or the reason for no terminal, in TERMINAL_ENDED', () => {
    expect(decodeTerminalEnd(Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0))).toEqual({
      reason: 'exited',
      exitCode: 3,
      signal: 0,
      problem: '',
    });
    const none = Buffer.concat([Uint8Array.of(255, 255, 255, 255, 3, 0, 0, 0), Buffer.from('no room')]);
    expect(decodeTerminalEnd(none)).toEqual({ reason: 'no-terminal', exitCode: null, signal: 0, problem: 'no room' });
  });

  test('are rejected when they are too short or have an unknown reason', () => {
    expect(() => decodeTerminalOutput(new Uint8Array(7))).toThrow(MalformedFrame);
    expect(() => decodeTerminalEnd(new Uint8Array(7))).toThrow(MalformedFrame);
    expect(() => decodeTerminalEnd(Uint8Array.of(0, 0, 0, 0, 6, 0, 0, 0))).toThrow(MalformedFrame);
  });
});
