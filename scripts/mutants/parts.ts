import type { Language } from './code-mask.ts';

/** Code that is mutated together, and the tests that must detect the mutants. */
export interface Part {
  /** Paths from the root of the repository, as patterns of `fs.glob`. Matching test files are left out. */
  files: readonly string[];
  /** Number of mutants of this part in a run of 200 mutants. */
  share: number;
  /** Arguments of vitest for each step, cheapest first. A mutant that a step detects skips the later steps. */
  tests: readonly (readonly string[])[];
}

/** Arguments for tests without processes or shared state, which load modules once for all files. */
const quick = ['--no-isolate', '--maxWorkers=1'];

export const parts: Record<string, Part> = {
  mailbox: {
    files: ['libs/{mailbox,placement}/src/**/*.lua'],
    share: 60,
    tests: [['libs/mailbox/src', 'libs/placement/src', 'tests/integration/mailbox-', 'tests/integration/placement']],
  },
  keeper: {
    files: ['ladder.c', 'processes.c', 'reaper.c', 'ending.c', 'shell.c', 'shell.sh'].map(
      (name) => `libs/keeper/src/${name}`,
    ),
    share: 50,
    tests: [
      ['tests/integration/shell-stop', 'tests/integration/shell-state', 'tests/integration/shell-semantics'],
      ['fork-bombs', 'terminals', 'robustness'].map((name) => `tests/integration/shell-${name}`),
    ],
  },
  lease: {
    files: ['apps/worker/src/lease/*.ts'],
    share: 20,
    tests: [['apps/worker/src/lease', ...quick]],
  },
  policy: {
    files: ['libs/policy/src/**/*.ts'],
    share: 45,
    tests: [
      [
        'execution',
        'secrets',
        'detectors',
        'redaction/compile',
        'redaction/redactor',
        'anchor',
        'finding',
        'false-alarms',
      ]
        .map(inPolicy)
        .concat(quick),
      ['tokens', 'patterns'].map(inPolicy).concat(quick),
      [inPolicy('leaks'), '--testNamePattern=^2000 ', ...quick],
    ],
  },
  output: {
    files: ['apps/worker/src/output/*.ts'],
    share: 25,
    tests: [['apps/worker/src/output', 'apps/worker/src/run', ...quick]],
  },
};

function inPolicy(name: string): string {
  return `libs/policy/src/${name.includes('/') || name === 'execution' ? '' : 'redaction/'}${name}`;
}

export function languageOf(path: string): Language {
  if (path.endsWith('.c')) return 'c';
  if (path.endsWith('.lua')) return 'lua';
  return path.endsWith('.sh') ? 'shell' : 'typescript';
}
