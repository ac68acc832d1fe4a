import type { PrefixRule } from '@shellfleet/protocol';
import { compileRules } from '../src/exec/compile-rules.ts';
import { decide } from '../src/exec/decide.ts';

const DECISIONS = ['allow', 'prompt', 'forbid'] as const;
const SCRIPTS = {
  'one word': 'ls',
  'one command': 'git commit -m "Fix the parser"',
  'many commands': `cd x && tool7 sub3 --flag "$HOME/x" 'a b' | grep -v foo | head -20; tool42 sub1 a b c; ${'echo some more words here; '.repeat(3)}tool199 sub7 a b c d e f g h`,
  'no plain commands': `for f in *.txt; do if grep -q foo "$f"; then tool7 sub3 "$(basename "$f" .txt)" > out/"$f" 2>&1; fi; done; (cd x && tool9 sub2) | tee log; cat <<EOF\nhello $USER\nEOF\n# the end..`,
  'behind sudo': `sudo ${'tool7 sub3 x '.repeat(15)}`.slice(0, 200),
};

/** Returns scripts of at most 200 bytes by name, with a function that decides about each under 200 rules. */
export function rulesLoad(): { name: string; bytes: number; decideOnce: () => void }[] {
  const rules: PrefixRule[] = Array.from({ length: 200 }, (_, index) => ({
    pattern: [`tool${index}`, [`sub${index % 8}`, 'other']],
    decision: DECISIONS[index % 3] ?? 'allow',
  }));
  const operator = [compileRules(rules, { source: 'the benchmark' })];
  return Object.entries(SCRIPTS).map(([name, script]) => ({
    name,
    bytes: Buffer.byteLength(script),
    decideOnce: () => void decide(script, { operator, approval: 'unless-trusted', sandboxed: true, escalate: false }),
  }));
}
