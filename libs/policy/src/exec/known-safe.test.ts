import { describe, expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';

// tests/integration/safe-programs.test.ts runs the real programs to check that none writes or starts anything.
const classify = (script: string) => evaluate(script, {}).classification;

describe('the list of commands known to be safe', () => {
  test.each([
    'ls -l',
    'cat x | head -1 && pwd',
    'find . -name x -type f -mtime -5',
    'find . ! -empty -newermt now',
    'sed -n 1,3p x',
    'sed -n -e 1p -e 2p x',
    'sed -ne1p x',
    'sed --quiet --expression=1p -- x',
    'sed 1p -n x',
    'base64 -d x',
    'base64 --wrap=0 x',
    'uniq x',
    'uniq -c -f 1 x',
    'uniq -- x',
    'rg -n --glob x y',
    '/bin/ls',
  ])('contains %s', (script) => {
    expect(classify(script)).toBe('safe');
  });

  // Programs accept options after operands, several options in one word, options together with their value, and
  // abbreviations.
  test.each([
    'sed -n 1p -fFILE',
    'sed -n 1p -f FILE',
    "sed -n 1p '-e1e id'",
    "sed -n 1p -e '1e id'",
    'sed -n 1p --file=x',
    'sed -n 1p --fil=x',
    "sed -n 1p --expr='1e id'",
    'sed -n 1p -i',
    'sed -n 1p -nibak',
    'sed -n 1p --in-place',
    "sed -n -- '1e id'",
    "sed -n '1p;1e id'",
    "sed -n '1p\n1e id'",
    'sed -n',
    'uniq x y',
    'uniq x -- y',
    'uniq -- x y',
    'uniq -f 1 x y',
    'uniq -1 x y',
    'uniq --outfile x',
    'base64 -o x',
    'base64 -dox',
    'base64 --output=x',
    'base64 x --outp y',
    'find . -delete',
    'find . -exec x',
    'find . -fls x',
    'find . -name x -execdir x',
    'find . -fprintf x y',
    'find . -action-of-tomorrow',
    'rg --pre x',
    'rg x -z',
    'rg -nz x',
    'rg --option-of-tomorrow',
    'tac x',
    'sort x',
    'env',
    './ls',
    '/tmp/ls',
    'git status',
  ])('does not contain %j', (script) => {
    expect(classify(script)).toBe('unknown');
  });
});
