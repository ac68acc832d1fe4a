import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TerminalOutput, type TerminalStage } from './terminal-output.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const createOpenStage = (): TerminalStage => ({ push: (bytes) => bytes, end: () => Buffer.alloc(0), pendingBytes: 0 });

/** Creates a stage that masks one word, and holds a possible beginning of it. */
function masks(word: string): TerminalStage {
  let pending = '';
  const release = (text: string) => {
    pending = '';
    return Buffer.from(text.replaceAll(word, '*'));
  };
  return {
    push(bytes) {
      const text = (pending + bytes.toString()).replaceAll(word, '*');
      let kept = Math.min(word.length - 1, text.length);
      while (kept > 0 && !word.startsWith(text.slice(-kept))) kept -= 1;
      const released = release(text.slice(0, text.length - kept));
      pending = text.slice(text.length - kept);
      return released;
    },
    end: () => release(pending),
    get pendingBytes() {
      return pending.length;
    },
  };
}

function outputOf(options: { createStage?: (before: Uint8Array) => TerminalStage; secrets?: string[] } = {}) {
  const onReady = vi.fn();
  const onBlocked = vi.fn();
  const { createStage = createOpenStage, secrets = [] } = options;
  const output = new TerminalOutput(10, { createStage, secrets, onReady, onBlocked });
  const take = () => {
    const { pieces, rawTo } = output.take();
    return { text: Buffer.concat(pieces).toString(), rawTo };
  };
  return { output, take, onReady, onBlocked };
}

describe('the output of a terminal', () => {
  test('passes bytes at once, in messages that fit, with the raw offset after them', () => {
    const { output, onReady } = outputOf();
    output.push(Buffer.alloc(40_000, 'x'));
    expect(onReady).toHaveBeenCalledTimes(1);
    const { pieces, rawTo } = output.take();
    expect([pieces.map((piece) => piece.length), rawTo, output.isEmpty]).toEqual([
      [16_384, 16_384, 7_232],
      40_010,
      true,
    ]);
  });

  test('excludes pending text from `rawTo`, and releases that text after a silence', () => {
    const { output, take } = outputOf({ createStage: () => masks('hunter2') });
    output.push(Buffer.from('$ hun'));
    expect(take()).toEqual({ text: '$ ', rawTo: 12 });
    vi.advanceTimersByTime(49);
    expect(output.isEmpty).toBe(true);
    vi.advanceTimersByTime(1);
    expect(take()).toEqual({ text: 'hun', rawTo: 15 });
  });

  test('keeps the beginning of a known secret pending, however long no output follows', () => {
    const { output, take } = outputOf({ createStage: () => masks('hunter2'), secrets: ['hunter2'] });
    output.push(Buffer.from('a hunt'));
    vi.advanceTimersByTime(60_000);
    expect(take()).toEqual({ text: 'a ', rawTo: 12 });
    output.push(Buffer.from('er2 b'));
    expect(take()).toEqual({ text: '* b', rawTo: 21 });
  });

  test('releases all pending text at its end', () => {
    const { output, take } = outputOf({ createStage: () => masks('hunter2'), secrets: ['hunter2'] });
    output.push(Buffer.from('hunter'));
    output.end();
    expect(take()).toEqual({ text: 'hunter', rawTo: 16 });
  });

  test('gives the shown text to the next redactor as its context', () => {
    const befores: string[] = [];
    const createStage = (before: Uint8Array) => {
      befores.push(Buffer.from(before).toString());
      return masks('hunter2');
    };
    const { output, take } = outputOf({ createStage });
    output.push(Buffer.from('key: hun'));
    vi.advanceTimersByTime(50);
    expect([take(), befores]).toEqual([{ text: 'key: hun', rawTo: 18 }, ['', 'key: hun']]);
  });

  test('continues after a reconnection from the first offset that was not taken', () => {
    const { output, take } = outputOf({ createStage: () => masks('hunter2') });
    output.push(Buffer.from('one hun'));
    expect(take()).toEqual({ text: 'one ', rawTo: 14 });
    output.push(Buffer.from('gry '));
    expect(output.restart()).toBe(14);
    output.push(Buffer.from('hungry two'));
    vi.advanceTimersByTime(50);
    expect(take()).toEqual({ text: 'hungry two', rawTo: 24 });
  });

  test('calls onBlocked when a rule blocks', () => {
    const createStage = () => ({
      push: () => Buffer.alloc(0),
      end: () => Buffer.alloc(0),
      pendingBytes: 0,
      blocked: {},
    });
    const { output, take, onBlocked } = outputOf({ createStage });
    output.push(Buffer.from('4111 1111 1111 1111'));
    expect([take(), onBlocked.mock.calls.length]).toEqual([{ text: '', rawTo: 29 }, 1]);
  });
});
