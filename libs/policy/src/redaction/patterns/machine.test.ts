import { MatcherInput } from 're2js';
import { describe, expect, test } from 'vitest';
import { pick, type Random, seededRandom } from '../../../test-support/token-samples.ts';
import { PatternMachine } from './machine.ts';
import { compilePattern, type Pattern } from './program.ts';

const ATOMS = [
  'a',
  'b',
  'ab',
  '.',
  '[ab]',
  '[^a]',
  String.raw`\b`,
  String.raw`\B`,
  '^',
  '$',
  '(?m:^)',
  '(?m:$)',
  String.raw`\d`,
  'é',
  '(?i:A)',
  String.raw`\n`,
  '(?s:.)',
];
const REPEATS = ['', '', '', '*', '+', '?', '*?', '+?', '{2}', '{1,3}', '{0,2}?'];
const CHARACTERS = ['a', 'b', 'A', '1', ' ', '\n', 'é', '密', '🔑', '_'];

describe('the machine that matches patterns', () => {
  test('finds the same matches as re2js in 3,000 random patterns and texts', () => {
    const random = seededRandom(11);
    let compared = 0;
    while (compared < 3_000) {
      const source = makePattern(random, 3);
      const pattern = compileOrSkip(source);
      if (!pattern) continue;
      const text = Buffer.from(Array.from({ length: random(12) }, () => pick(random, CHARACTERS)).join(''));
      expect(matchesOfMachine(pattern, text), `${source} in ${JSON.stringify(text.toString())}`).toEqual(
        matchesOfRe2(pattern, text),
      );
      compared += 1;
    }
  });

  test('reports as decided only results that later input cannot change', () => {
    const random = seededRandom(12);
    let compared = 0;
    while (compared < 3_000) {
      const source = makePattern(random, 3);
      const pattern = compileOrSkip(source);
      if (!pattern) continue;
      const make = (length: number) => Buffer.from(Array.from({ length }, () => pick(random, CHARACTERS)).join(''));
      const text = make(random(10));
      const outcome = run(pattern, text, 0, false);
      const longer = run(pattern, Buffer.concat([text, make(1 + random(6))]), 0, true);
      const label = `${source} in ${JSON.stringify(text.toString())}`;
      if (outcome.type === 'match') expect(longer, label).toEqual(outcome);
      const openAt = outcome.type === 'open' ? outcome.at : text.length;
      if (outcome.type !== 'match' && longer.type === 'match')
        expect(longer.start, label).toBeGreaterThanOrEqual(openAt);
      compared += 1;
    }
  });
});

function makePattern(random: Random, depth: number): string {
  const parts = Array.from({ length: 1 + random(3) }, () => {
    const atom = depth > 0 && random(3) === 0 ? `(?:${makePattern(random, depth - 1)})` : pick(random, ATOMS);
    return /^(?:\\[bB]|[$^]|\(\?m:)/.test(atom) ? atom : `(?:${atom})${pick(random, REPEATS)}`;
  });
  return random(4) === 0 ? `${parts.join('')}|${makePattern(random, Math.max(0, depth - 1))}` : parts.join('');
}

function compileOrSkip(source: string): Pattern | undefined {
  try {
    return compilePattern(source);
  } catch {
    return undefined;
  }
}

/** Runs the machine on the text as a redactor stores it: after a newline. */
function run(pattern: Pattern, text: Buffer, from: number, complete: boolean): ReturnType<PatternMachine['run']> {
  const bytes = Buffer.concat([Buffer.from('\n'), text]);
  const outcome = new PatternMachine(pattern).run(
    { bytes, leftFrom: 1, end: bytes.length, complete },
    from + 1,
    bytes.length,
  );
  if (outcome.type === 'match') return { type: 'match', start: outcome.start - 1, end: outcome.end - 1 };
  return outcome.type === 'open' ? { type: 'open', at: outcome.at - 1 } : outcome;
}

function matchesOfMachine(pattern: Pattern, text: Buffer): [number, number][] {
  const matches: [number, number][] = [];
  for (let from = 0; from < text.length; ) {
    const outcome = run(pattern, text, from, true);
    if (outcome.type !== 'match') break;
    matches.push([outcome.start, outcome.end]);
    from = outcome.end;
  }
  return matches;
}

function matchesOfRe2({ regex }: Pattern, text: Buffer): [number, number][] {
  const matches: [number, number][] = [];
  const matcher = regex.matcher(MatcherInput.utf8(text));
  while (matcher.find()) matches.push([matcher.start(), matcher.end()]);
  return matches;
}
