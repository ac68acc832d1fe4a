import type { Result } from '@shellfleet/client';

/** One turn: what the agent thinks, and the script that it runs. */
export interface Turn {
  thought: string;
  script: string;
}

export const TEST = 'node --test /workspace/repo/sum.test.mjs';

const program = 'export const sum = (numbers) => numbers.reduce((a, b) => a - b, 0);';
const mended = 'export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);';
const test = `import assert from 'node:assert';
import test from 'node:test';
import { sum } from './sum.mjs';
test('adds', () => assert.equal(sum([1, 2, 3]), 6));`;

/** Repository on which the agent works: a program with a fault, its test, and leftovers of a build. */
export const repository = {
  '/workspace/repo/sum.mjs': program,
  '/workspace/repo/sum.test.mjs': test,
  '/workspace/repo/build/sum.js': 'old',
  '/workspace/repo/notes.txt': 'not in the repository yet',
};

/**
 * Stands in for a language model: returns the next turn from the Results of earlier turns, or undefined when the work
 * is finished.
 */
export function nextTurn(results: readonly Result[]): Turn | undefined {
  const last = results.at(-1);
  switch (results.length) {
    case 0:
      return { thought: 'What is here?', script: 'ls /workspace/repo' };
    case 1:
      return { thought: 'I run the test.', script: TEST };
    case 2:
      return { thought: 'It fails. I read the program.', script: 'cat /workspace/repo/sum.mjs' };
    case 3:
      return {
        thought: 'It takes away instead of adding. I mend it.',
        script: `printf '%s\\n' '${mended}' > /workspace/repo/sum.mjs`,
      };
    case 4:
      return { thought: 'The same test again.', script: TEST };
    case 5:
      return { thought: 'It passes. I tidy up.', script: 'rm -rf /workspace/repo/build /workspace/repo/notes.txt' };
    case 6:
      if (last?.outcome !== 'denial') return undefined;
      return { thought: 'I may not remove the notes. Then only the build.', script: 'rm -rf /workspace/repo/build' };
    default:
      return undefined;
  }
}
