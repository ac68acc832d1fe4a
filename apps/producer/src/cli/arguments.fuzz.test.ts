import { toPrintable } from '@shellfleet/protocol';
import { fuzzText } from '@shellfleet/protocol/test-support';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { describe, expect, test } from 'vitest';
import { addCommandFlags, toRunOptions } from './command-flags.ts';
import { parseDetachKeys } from './detach-keys.ts';
import { toSpec } from './session-flags.ts';
import { parseCount, parseDuration, parseSize } from './units.ts';

// Every argument is either used or refused as wrong usage.

const NO_TERMINAL = expect.objectContaining({
  code: 'COMMAND_INVALID',
  message: expect.stringMatching(/^A command has no terminal\. Use `shellfleet attach SESSION`/),
});

describe('words of the command line', () => {
  test.each<[string, (text: string) => number, string[]]>([
    ['a time', parseDuration, ['30s', '1.5h', '500', '2d']],
    ['a count', parseCount, ['1', '999']],
    ['a size', parseSize, ['64k', '1G', '4096']],
  ])('take any text as %s, or refuse the text', (_what, parse, valid) => {
    fuzzText(valid, (text) => {
      try {
        expect(parse(text)).toBeGreaterThanOrEqual(0);
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidArgumentError);
      }
    });
  });

  test('take any keys as detach keys, or refuse them', () => {
    fuzzText(['ctrl-p,ctrl-q', 'x', 'ctrl-]'], (text) => {
      try {
        expect(parseDetachKeys(text).length).toBeLessThanOrEqual(text.length);
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidArgumentError);
      }
    });
  });

  test('take any words after a verb as flags and arguments, or as wrong usage', () => {
    const lines = [
      's --timeout 30s -e A=b --image a --redact email:mask -- true',
      's --cwd /x --secret PATH -- ls -l',
      '-- x',
      's -t -- true',
    ];
    fuzzText(lines, (line) => {
      const verb = new Command('exec').argument('<session>').argument('[script...]').exitOverride();
      addCommandFlags(verb, { PATH: '/bin' }).configureOutput({ writeErr: () => {}, writeOut: () => {} });
      try {
        verb.parse(line.split(' '), { from: 'user' });
      } catch (error) {
        expect(error).toBeInstanceOf(CommanderError);
        return;
      }
      const flags = verb.opts();
      // Only `-t` is refused after parsing, so that its message can name the verb that opens a terminal.
      if (flags.tty) expect(() => toRunOptions({ ...flags, stdin: false })).toThrow(NO_TERMINAL);
      else toRunOptions({ ...flags, stdin: false });
      toSpec(flags);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });
  });

  test('are printed without control characters', () => {
    fuzzText(
      ['\u001b]0;owned\u0007', 'a\r\nb'],
      (text) => void expect(toPrintable(text)).not.toMatch(/[\p{Cc}\u202e]/u),
    );
  });
});
