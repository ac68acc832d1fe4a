import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Stage } from '../output/stage.ts';
import { TerminalOutput } from './terminal-output.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Masks one word, and holds back what may be its beginning. */
function masks(word: string): Stage {
  let held = '';
  const release = (text: string) => {
    held = '';
    return Buffer.from(text.replaceAll(word, '*'));
  };
  return {
    push(bytes) {
      const text = (held + bytes.toString()).replaceAll(word, '*');
      let kept = Math.min(word.length - 1, text.length);
      while (kept > 0 && !word.startsWith(text.slice(-kept))) kept -= 1;
      const released = release(text.slice(0, text.length - kept));
      held = text.slice(text.length - kept);
      return released;
    },
    end: () => release(held),
    get heldBytes() {
      return held.length;
    },
  };
}

function outputOf(options: { stages?: () => Stage[]; secrets?: string[] } = {}) {
  const onReady = vi.fn();
  const output = new TerminalOutput(10, {
    createStages: options.stages ?? (() => []),
    secrets: options.secrets ?? [],
    onReady,
  });
  const take = () => {
    const { pieces, rawTo } = output.take();
    return { text: Buffer.concat(pieces).toString(), rawTo };
  };
  return { output, take, onReady };
}

test('bytes pass at once, in messages that fit, with the raw offset behind them', () => {
  const { output, onReady } = outputOf();
  output.push(Buffer.alloc(40_000, 'x'));
  expect(onReady).toHaveBeenCalledTimes(1);
  const { pieces, rawTo } = output.take();
  expect([pieces.map((piece) => piece.length), rawTo, output.isEmpty]).toEqual([[16_384, 16_384, 7_232], 40_010, true]);
});

test('what a stage holds is not accounted for, and shown after a silence', () => {
  const { output, take } = outputOf({ stages: () => [masks('hunter2')] });
  output.push(Buffer.from('$ hun'));
  expect(take()).toEqual({ text: '$ ', rawTo: 12 });
  vi.advanceTimersByTime(99);
  expect(output.isEmpty).toBe(true);
  vi.advanceTimersByTime(1);
  expect(take()).toEqual({ text: 'hun', rawTo: 15 });
});

test('the beginning of a known secret is not shown by silence', () => {
  const { output, take } = outputOf({ stages: () => [masks('hunter2')], secrets: ['hunter2'] });
  output.push(Buffer.from('a hunt'));
  vi.advanceTimersByTime(60_000);
  expect(take()).toEqual({ text: 'a ', rawTo: 12 });
  output.push(Buffer.from('er2 b'));
  expect(take()).toEqual({ text: '* b', rawTo: 21 });
});

test('at the end nothing is held back', () => {
  const { output, take } = outputOf({ stages: () => [masks('hunter2')], secrets: ['hunter2'] });
  output.push(Buffer.from('hunter'));
  output.end();
  expect(take()).toEqual({ text: 'hunter', rawTo: 16 });
});
