import { root, runStep, type Step } from './steps.ts';

const bin = (name: string): string => `node_modules/.bin/${name}`;

// Biome colours whatever it writes to, log files included.
const colors = process.stdout.isTTY ? [] : ['--colors=off'];

/** What CI refuses to merge without, run from the root of a checkout. Each is shown able to fail by check.test.ts. */
export const checks = {
  types: [bin('tsc'), '-p', 'tsconfig.json'],
  format: [bin('biome'), 'ci', '--linter-enabled=false', ...colors, '.'],
  lint: [bin('biome'), 'lint', '--error-on-warnings', ...colors, '.'],
  'dead code': [bin('knip'), '--no-config-hints'],
} satisfies Record<string, Step>;

export async function runChecks(): Promise<{ passed: number; failed: number }> {
  let passed = 0;
  const steps = Object.entries(checks);
  for (const [name, step] of steps) {
    const ok = await runStep(step, root);
    console.log(`${ok ? '✓' : '✗'} ${name}`);
    if (ok) passed += 1;
  }
  return { passed, failed: steps.length - passed };
}

if (import.meta.main) process.exitCode = (await runChecks()).failed === 0 ? 0 : 1;
